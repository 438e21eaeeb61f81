/** Owns: how bytes of a server or a session become messages, and what of them is none. */
import { describe, expect, it, test } from "vitest";
import { Lines, mayBeMessage } from "../../../../workers/hub/lines.ts";
import type { Line } from "../../../../workers/hub/routes.ts";
import { lineOf } from "./make-routes.ts";

const textOf = ({ pieces }: Line): string => Buffer.concat([...pieces]).toString();

/** The lines of a text whose bytes come in pieces of this length. */
function cut(text: string, length: number, lines = new Lines()): Line[] {
  const bytes = Buffer.from(text);
  const found: Line[] = [];
  for (let at = 0; at < bytes.length; at += length)
    for (const line of lines.push(bytes.subarray(at, at + length))) if (line) found.push(line);
  return found;
}

const LONG = JSON.stringify({ id: 3, method: "x", params: { text: 'é漢😀\n"'.repeat(20_000) } });

describe("Lines", () => {
  it.each([1, 2, 3, 7, 64, 4_096, 65_536, 1_000_000])("pieces of %i bytes -> the same messages", (length) => {
    const texts = ['{"id":1,"result":{}}', " ", '{"id":"é😀","method":"y"}\r', LONG];
    const lines = cut(`\n\n${texts.join("\n")}\n`, length);
    expect(lines.map(textOf)).toEqual(texts);
    expect(lines.map(({ bytes }) => bytes)).toEqual(texts.map((text) => Buffer.byteLength(text)));
    expect(lines.map(({ envelope }) => envelope.id?.text)).toEqual(
      ["1", undefined, '"é😀"', "3"].map((id) =>
        id === undefined ? undefined : Buffer.from(id).toString("latin1"),
      ),
    );
  });

  test("a message that is not complete -> counted, and none until its end", () => {
    const lines = new Lines();
    expect(cut('{"id":1,', 3, lines)).toEqual([]);
    expect(lines.pendingBytes).toBe(8);
    expect(cut('"result":1}\n{', 100, lines).map(textOf)).toEqual(['{"id":1,"result":1}']);
    expect(lines.pendingBytes).toBe(1);
  });

  test("a long message in one piece -> others get their turn at least each 64 KiB", () => {
    const bytes = Buffer.from(`${LONG}\n`);
    const steps = [...new Lines().push(bytes)];
    expect(steps.length).toBeGreaterThanOrEqual(Math.floor(bytes.length / 65_536));
    expect(steps.filter((line) => line !== undefined)).toHaveLength(1);
  });

  test("a million pieces of one byte -> few of them are kept", () => {
    const [line] = cut(`{"id":1,"result":"${"x".repeat(1_000_000)}"}\n`, 1);
    expect(line?.pieces.length).toBeLessThan(300);
    expect(line?.bytes).toBe(1_000_020);
  });
});

describe("mayBeMessage", () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"result":{}}', true],
    [' \t{"method":"x","jsonrpc":"2\\u002e0"}', true],
    ['{"id":null,"error":{},"jsonrpc":"2.0"}', true],
    ['{"level":"info","msg":"started"}', false],
    ['{"level":"info","id":1,"msg":"x"}', false],
    ['{"id":1,"result":{}}', false],
    ['{"jsonrpc":"1.0","id":1,"result":{}}', false],
    ['{"jsonrpc":2.0,"id":1,"result":{}}', false],
    ['{"id":1,"result":{"jsonrpc":"2.0"}}', false],
    ['{"jsonrpc":"2.0","result":{}}', false],
    ["Starting...", false],
    ['[{"jsonrpc":"2.0","id":1,"method":"x"}]', false],
    ['"id"', false],
    ["{", false],
    [" ", false],
  ])("%s -> %s", (text, expected) => {
    expect(mayBeMessage(lineOf(text))).toBe(expected);
  });
});
