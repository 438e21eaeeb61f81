/**
 * Shapes a result in the thread in which it is: here, or in the thread for long messages, which then writes files through
 * this one. That thread does not load this file, nor how files are written.
 */

import type { CallToolResult } from "../mcp/wire/wire.ts";
import { heldIn } from "../messages/heavy.ts";
import { callTooLarge, TooLarge } from "../messages/too-large.ts";
import type { Secrets } from "../secrets/redact.ts";
import type { ShapeOptions } from "./content.ts";
import type { Saved } from "./files.ts";
import { type Shaped, shapeResult, toShaped } from "./shape.ts";

export interface ResultOptions extends ShapeOptions {
  /** The secrets that `redact` takes out. */
  secrets: Secrets;
}

/** The options that are plain data. */
export type HeldOptions = Omit<ResultOptions, "store" | "redact" | "readResource">;

interface SaveArgs {
  parts: Uint8Array[];
  label: string;
  extension: string;
}

/** Rejects with `message_too_large` if the result could not be shaped within the limits of its thread. */
export async function shapeAnywhere(result: CallToolResult, options: ResultOptions): Promise<Shaped> {
  const held = heldIn(result);
  if (!held) return toShaped(await shapeResult(result, options));
  const { store, redact: _redact, readResource, ...data } = options;
  const answer = async (args: SaveArgs | string[]): Promise<Saved | (string | undefined)[]> =>
    Array.isArray(args) ? args.map(readResource) : store.save(args.parts, args.label, args.extension);
  if (options.guard !== false) store.prepare?.();
  try {
    return (await held.shape({ ...data }, answer)) as Shaped;
  } catch (error) {
    throw error instanceof TooLarge ? callTooLarge(options.server, options.tool, error) : error;
  }
}
