/**
 * Owns: the extensions of a measured Pi, in the order that makes the measurement right.
 * Must not: start Pi.
 * Called by: the demo and the scenarios that run Pi.
 */
import { fileURLToPath } from "node:url";

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** An extension that does nothing: what bare Pi gets in place of ours. */
export const EMPTY_EXTENSION = here("./empty.mjs");

/** `subject` between the two halves of the probe; the first extension of all also pays for Pi's loader. */
export const withProbe = (subject: string): string[] => [
  here("./probe.mjs"),
  subject,
  here("./probe-after.mjs"),
];
