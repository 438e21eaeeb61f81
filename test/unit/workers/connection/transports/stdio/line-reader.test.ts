/** Owns: lines from a byte stream, however it is cut. */
import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { describe, expect, it, test } from "vitest";
import { LineReader } from "../../../../../../workers/connection/transports/stdio/inbox.ts";

function read(chunks: readonly (Buffer | string)[], maxBytes = 1_000): { lines: string[]; tooLong: number } {
  const lines: string[] = [];
  let tooLong = 0;
  const reader = new LineReader({
    maxBytes,
    onLine: (line) => void lines.push(line.toString("utf8")) as undefined,
    onTooLong: () => {
      tooLong++;
    },
  });
  for (const chunk of chunks) for (const _ of reader.push(Buffer.from(chunk)));
  return { lines, tooLong };
}

describe("LineReader", () => {
  it.each([
    ["one line", ["a\n"], ["a"]],
    ["a line without end", ["a"], []],
    ["several lines in one chunk", ["a\nb\nc\n"], ["a", "b", "c"]],
    ["a line over several chunks", ["a", "b", "", "c\n"], ["abc"]],
    ["a newline of its own chunk", ["a", "\n", "b", "\n"], ["a", "b"]],
    ["empty lines", ["\n\na\n\n\n"], ["a"]],
    ["a newline at the start of the next chunk", ["a", "\nb\n"], ["a", "b"]],
    ["nothing", [], []],
    ["an empty chunk", [""], []],
  ])("%s -> $2", (_name, chunks, lines) => {
    expect(read(chunks)).toEqual({ lines, tooLong: 0 });
  });

  test("a stream of several scripts cut at every two positions -> the same lines", () => {
    const bytes = Buffer.from('{"a":"é"}\n\n漢字\n😀x\nrest');
    const lines = ['{"a":"é"}', "漢字", "😀x"];
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const chunks = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
        expect(read(chunks).lines, `cut at ${first} and ${second}`).toEqual(lines);
      }
    }
  });

  test("a stream byte by byte -> the same lines", () => {
    expect(read([..."ab\ncd\n"]).lines).toEqual(["ab", "cd"]);
  });

  it.each([
    ["exactly the limit", ["abcd\n"], ["abcd"], 0],
    ["exactly the limit over chunks", ["ab", "cd", "\n"], ["abcd"], 0],
    ["one byte more", ["abcde\n"], [], 1],
    ["one byte more over chunks", ["ab", "cde"], [], 1],
    ["one byte more without an end", ["abcde"], [], 1],
    ["lines before it", ["ab\nabcde\ncd\n"], ["ab"], 1],
    ["lines of chunks after it", ["abcde", "\nab\n", "cd\n"], [], 1],
    ["two of them", ["abcde\nabcde\n", "abcde\n"], [], 1],
    ["many short lines, more than the limit together", ["ab\ncd\nef\n"], ["ab", "cd", "ef"], 0],
  ])("limit of 4 bytes, %s -> $2, onTooLong called $3 times", (_name, chunks, lines, tooLong) => {
    expect(read(chunks, 4)).toEqual({ lines, tooLong });
  });

  test("a limit in the middle of a character -> counted in bytes", () => {
    expect(read(["漢\n"], 2)).toEqual({ lines: [], tooLong: 1 });
    expect(read(["漢\n"], 3)).toEqual({ lines: ["漢"], tooLong: 0 });
  });
});

test("a line of 400,000 pieces of one byte -> read in a heap of 24 MiB", async () => {
  const url = new URL(`file://${join(import.meta.dirname, "../../../../../fixtures/reads-line.ts")}`);
  const worker = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: 24 } });
  const [length] = await once(worker, "message");
  await worker.terminate();
  expect(length).toBe(400_000);
});
