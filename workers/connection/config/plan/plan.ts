/**
 * Owns: what follows from two configurations: which servers start, stop or change (changes.ts), and the same in words
 * (text.ts). Must not: carry anything out. Called by: config.ts, session. Pure.
 */

export { type Configuration, isIdle, type Plan, plan } from "./changes.ts";
export { describeEffect } from "./text.ts";
