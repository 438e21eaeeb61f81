/** Owns: the input of shaping one result, as types. */

import type { GuardLimits } from "../config/entry/settings.ts";
import type { Redactor } from "../secrets/redact.ts";
import type { ResultStore } from "./store.ts";

export interface ShapeOptions {
  server: string;
  tool: string;
  /** Time from the request to the server's answer. */
  durationMs: number;
  store: ResultStore;
  /** `false`: nothing is left out. */
  guard: GuardLimits | false;
  /** The model gets JSON as TOON if that is shorter. */
  toon: boolean;
  /** The caller, a codemode script, reads the server's own result, so the result is also sent unchanged. */
  wantsStructured: boolean;
  /** Takes the server's secrets out of a text. */
  redact: Redactor;
  /** One sentence on how the model reads this resource of the server; undefined if no tool reads it. */
  readResource: (uri: string) => string | undefined;
}

/** Settings for the results of one server. */
export type ResultSettings = Pick<ShapeOptions, "guard" | "toon" | "readResource">;

/** A block as the server sent it. Nothing in it has been checked. */
export type Block = Record<string, unknown>;

/** `value` if it is a string that is not empty, or `otherwise`. */
export const word = (value: unknown, otherwise: string): string =>
  typeof value === "string" && value !== "" ? value : otherwise;
