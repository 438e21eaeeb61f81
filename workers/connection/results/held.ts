/**
 * Shapes a result in whichever thread it is: here, or in the thread for long messages, which then writes files through
 * this one. Owns: what crosses the two threads.
 */
import type { CallResult } from "../../../src/shared/protocol/calls.ts";
import { encode } from "../../../src/shared/protocol/codec.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { heldIn } from "../messages/heavy.ts";
import { callTooLarge, TooLarge } from "../messages/too-large.ts";
import type { Secrets } from "../secrets/redact.ts";
import { type ShapeOptions, word } from "./context.ts";
import { shapeResult } from "./shape.ts";
import { joined, type Saved } from "./store.ts";

export interface Shaped {
  /** A msgpackr-encoded `CallResult`. */
  bytes: Uint8Array<ArrayBuffer>;
  isError: boolean;
  sizes: CallResult["bytes"];
}

export const toShaped = (result: CallResult): Shaped => ({
  bytes: encode(result),
  isError: result.isError,
  sizes: result.bytes,
});

export interface ResultOptions extends ShapeOptions {
  /** The secrets that `redact` takes out. */
  secrets: Secrets;
}

/** The options that are plain data. */
export type HeldOptions = Omit<ResultOptions, "store" | "redact" | "readResource">;

/** More links than fit into what a model is shown. */
const LINKS = 500;
const LINK_CHARS = 2_000;

/** The addresses to which a result links, each once. */
export function linksIn({ content }: CallToolResult): string[] {
  const links = new Set<string>();
  for (const block of Array.isArray(content) ? (content as unknown[]) : []) {
    if (links.size === LINKS) break;
    const uri = isObject(block) && block.type === "resource_link" ? word(block.uri, "") : "";
    if (uri !== "" && uri.length <= LINK_CHARS) links.add(uri);
  }
  return [...links];
}

/** A buffer with memory of its own. `TextEncoder` takes twice as long for 60 MB. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** The parts of a file as bytes that can be handed to another thread. */
export const inBytes = (parts: readonly (string | Uint8Array)[]): Uint8Array<ArrayBuffer>[] =>
  [...joined(parts)].map((part) => (typeof part === "string" ? bytesOf(part) : new Uint8Array(part)));

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
  try {
    return (await held.shape({ ...data }, answer)) as Shaped;
  } catch (error) {
    throw error instanceof TooLarge ? callTooLarge(options.server, options.tool, error) : error;
  }
}
