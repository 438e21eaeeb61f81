/**
 * From two configurations to what must happen: which servers start, stop or change (changes), and that in words (text).
 * Pure. Called by: session.
 */

export { type Configuration, isIdle, type Plan, plan } from "./changes.ts";
export { describeEffect } from "./text.ts";
