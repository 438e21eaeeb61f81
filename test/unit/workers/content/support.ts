/** Shapes results into a temp folder of the test, which is gone afterwards. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { CallResult } from "../../../../src/protocol/types.ts";
import type { ShapeOptions } from "../../../../workers/connection/content/context.ts";
import { shapeResult } from "../../../../workers/connection/content/shape.ts";
import { createResultStore } from "../../../../workers/connection/content/store.ts";
import { DEFAULT_GUARD } from "../../../../workers/connection/output-guard.ts";

export async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "results-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function shape(result: unknown, options: Partial<ShapeOptions> = {}): Promise<CallResult> {
  return shapeResult(result as never, {
    server: "server",
    tool: "tool",
    durationMs: 1,
    store: createResultStore({ root: await tempFolder() }),
    guard: DEFAULT_GUARD,
    toon: false,
    wantsStructured: false,
    redact: (text) => text,
    readResource: () => undefined,
    ...options,
  });
}

/** All text that the model reads. */
export const textOf = ({ content }: Pick<CallResult, "content">): string =>
  content.map((part) => (part.type === "text" ? part.text : `<${part.mimeType}>`)).join("\n");

/** The file that a text names. */
export function pathIn(text: string): string {
  const path = /(?:saved to|Saved to|Full text:) (\/[^\s\];]+)/.exec(text)?.[1];
  if (path === undefined) throw new Error(`no path in: ${text}`);
  return path;
}

export const storedText = (text: string): Promise<string> => readFile(pathIn(text), "utf8");

/** Numbers from 0 to 1, the same in each run (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
