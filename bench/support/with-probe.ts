/**
 * Owns: the extensions of a measured Pi, in the order that the measurement needs.
 * Must not: start Pi.
 * Called by: the demo and the scenarios that run Pi.
 */
import { fileURLToPath } from "node:url";

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Bare Pi gets this extension, which does nothing, in place of a client. */
export const EMPTY_EXTENSION = here("./empty.mjs");

/** Puts `subject` between the two halves of the probe. The probe loads first, so it carries the cost of Pi's loader. */
export const withProbe = (subject: string): string[] => [
  here("./probe.mjs"),
  subject,
  here("./probe-after.mjs"),
];
