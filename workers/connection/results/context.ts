/** What the shaping of one result is given. Types only. */

import type { GuardLimits } from "../config/entry/guard.ts";
import type { Redactor } from "../secrets/secrets.ts";
import type { ResultStore } from "./store.ts";

export interface ShapeOptions {
  server: string;
  tool: string;
  /** From the request to the server until its answer. */
  durationMs: number;
  store: ResultStore;
  /** `false`: nothing is left out. */
  guard: GuardLimits | false;
  /** JSON is given to the model as TOON where that is shorter. */
  toon: boolean;
  /** The caller reads the server's own result (a codemode script), so that crosses as it is. */
  wantsStructured: boolean;
  /** Takes the server's secrets out of a text. */
  redact: Redactor;
  /** How the model reads this resource of the server, in a sentence; undefined where no tool does. */
  readResource: (uri: string) => string | undefined;
}

/** What settings say of a server's results. */
export type ResultSettings = Pick<ShapeOptions, "guard" | "toon" | "readResource">;

/** A block as the server sent it: nothing of it can be relied on. */
export type Block = Record<string, unknown>;

/** A string that says something, or `otherwise`. */
export const word = (value: unknown, otherwise: string): string =>
  typeof value === "string" && value !== "" ? value : otherwise;
