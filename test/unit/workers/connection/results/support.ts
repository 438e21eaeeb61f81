/** Shapes results into a temp folder of the test, which is removed afterwards. */
import { readFile } from "node:fs/promises";
import { onTestFinished } from "vitest";
import type { CallResult } from "../../../../../src/shared/protocol/calls.ts";
import { DEFAULT_GUARD } from "../../../../../workers/connection/config/entry/settings.ts";
import type { ShapeOptions } from "../../../../../workers/connection/results/content.ts";
import { shapeResult } from "../../../../../workers/connection/results/shape.ts";
import { createResultStore } from "../../../../../workers/connection/results/store.ts";
import { makeTempFolder, removeFolder } from "../../../../support/temp-folder.ts";

export async function tempFolder(): Promise<string> {
  const folder = await makeTempFolder("results-test");
  // A thread of the test may still write compiled code.
  onTestFinished(() => removeFolder(folder));
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

const chunk = (type: string, data: Buffer): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(data.length);
  head.write(type, 4, "latin1");
  // Nobody here checks the sum.
  return Buffer.concat([head, data, Buffer.alloc(4)]);
};

/** Headers of images of a size, with `filler` meaningless bytes, as base64. */
export const imageOf = {
  png(width: number, height: number, filler = 0): string {
    const header = Buffer.alloc(13);
    header.writeUInt32BE(width);
    header.writeUInt32BE(height, 4);
    const parts = [
      chunk("IHDR", header),
      chunk("tEXt", Buffer.alloc(filler)),
      chunk("IEND", Buffer.alloc(0)),
    ];
    return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...parts]).toString("base64");
  },
  jpeg(width: number, height: number, filler = 0): string {
    const extra = Buffer.alloc(4 + filler);
    extra.writeUInt16BE(0xffe1);
    extra.writeUInt16BE(2 + filler, 2);
    const frame = Buffer.from([0xff, 0xc2, 0, 8, 8, height >> 8, height & 255, width >> 8, width & 255, 1]);
    const scan = Buffer.from([0xff, 0xff, 0xda, 0, 2, 1, 2, 0xff, 0xd9]);
    return Buffer.concat([Buffer.from([0xff, 0xd8]), extra, frame, scan]).toString("base64");
  },
  gif(width: number, height: number): string {
    const bytes = Buffer.from("GIF89a        \x3b", "latin1");
    bytes.writeUInt16LE(width, 6);
    bytes.writeUInt16LE(height, 8);
    return bytes.toString("base64");
  },
  webp(kind: "VP8 " | "VP8L" | "VP8X", width: number, height: number): string {
    const bytes = Buffer.alloc(40);
    bytes.write("RIFF", 0, "latin1");
    bytes.writeUInt32LE(bytes.length - 8, 4);
    bytes.write(`WEBP${kind}`, 8, "latin1");
    if (kind === "VP8X") {
      bytes.writeUIntLE(width - 1, 24, 3);
      bytes.writeUIntLE(height - 1, 27, 3);
    } else if (kind === "VP8 ") {
      bytes.writeUInt16LE(width, 26);
      bytes.writeUInt16LE(height, 28);
    } else {
      bytes.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21);
    }
    return bytes.toString("base64");
  },
};

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
