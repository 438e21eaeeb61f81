/** Owns: the parts of a message that the hub reads and replaces, compared with `JSON.parse` over random messages. */
import { describe, expect, it, test } from "vitest";
import {
  type Envelope,
  EnvelopeReader,
  SUBSCRIPTION,
  withChanges,
} from "../../../../workers/hub/envelope.ts";

const PATHS: Record<keyof Envelope, string[]> = {
  jsonrpc: ["jsonrpc"],
  id: ["id"],
  method: ["method"],
  token: ["params", "_meta", "progressToken"],
  progressOf: ["params", "progressToken"],
  cancels: ["params", "requestId"],
  subscription: ["params", "_meta", SUBSCRIPTION],
  waits: ["params", "_meta", "pi-mcp-threads/waits"],
  error: ["error"],
};

const at = (value: unknown, path: string[]): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && !Array.isArray(inner)
        ? (inner as Record<string, unknown>)[key]
        : undefined,
    value,
  );

function read(text: string, cut: (left: number) => number): { envelope: Envelope; pieces: Buffer[] } {
  const bytes = Buffer.from(text);
  const reader = new EnvelopeReader();
  const pieces: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const piece = bytes.subarray(start, start + Math.max(1, cut(bytes.length - start)));
    pieces.push(piece);
    reader.push(piece);
    start += piece.length;
  }
  return { envelope: reader.envelope, pieces };
}

const whole = (text: string) => read(text, (left) => left);
const texts = (envelope: Envelope) =>
  Object.fromEntries(Object.entries(envelope).map(([name, part]) => [name, part.text]));

/** Repeats itself for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const WORDS = [
  "jsonrpc",
  "id",
  "method",
  "error",
  "params",
  "_meta",
  "progressToken",
  "requestId",
  SUBSCRIPTION,
  "x",
  "\\",
  '"',
  "ü",
  "\u2028",
];
const SCALARS = [0, 17, -1.5e300, "7", "a\\b", '"', "🦉", "", null, true, "x".repeat(300), '\\\\\\"{[,:]}'];

function randomJson(next: () => number, depth = 0): string {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  const space = () => (next() < 0.1 ? pick([" ", "\t", "  "]) : "");
  const key = () => {
    const word = pick(WORDS);
    // JSON may write any character as an escape.
    return next() < 0.1
      ? `"${[...word].map((char) => (char.length === 1 ? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}` : char)).join("")}"`
      : JSON.stringify(word);
  };
  const kind = depth === 0 ? 0 : next();
  if (depth < 6 && kind < 0.45) {
    const entries = Array.from(
      { length: Math.floor(next() * 5) },
      () => `${space()}${key()}${space()}:${space()}${randomJson(next, depth + 1)}${space()}`,
    );
    return `{${entries.join(",")}${space()}}`;
  }
  if (depth < 6 && kind < 0.6)
    return `[${Array.from({ length: Math.floor(next() * 4) }, () => randomJson(next, depth + 1)).join(",")}]`;
  return JSON.stringify(pick(SCALARS));
}

test("10,000 random messages in random pieces -> the parts that JSON.parse finds, and replaced as JSON.parse sees", () => {
  const next = random(7);
  for (let round = 0; round < 10_000; round++) {
    const text = randomJson(next);
    const { envelope, pieces } = read(text, (left) => Math.ceil(next() * next() * left));
    const value: unknown = JSON.parse(text);
    for (const [name, path] of Object.entries(PATHS) as [keyof Envelope, string[]][]) {
      const found = at(value, path);
      const part = envelope[name];
      const isReadable =
        found !== undefined && (typeof found !== "object" || found === null) && String(found).length < 200;
      if (part?.text && isReadable)
        expect(JSON.parse(Buffer.from(part.text, "latin1").toString()), text).toEqual(found);
      // A dead part, in an object that a later key replaces, may be found beside it.
      if (isReadable) expect(part, `${name} of ${text}`).toBeDefined();
      if (!part?.text || !isReadable) continue;
      const changed = JSON.parse(Buffer.concat(withChanges(pieces, [[part, "4711"]])).toString());
      expect(at(changed, path), text).toBe(4711);
    }
  }
});

describe("single messages", () => {
  it.each<[string, Record<string, string>]>([
    ['{"jsonrpc":"2.0","id":5,"method":"ping"}', { jsonrpc: '"2.0"', id: "5", method: '"ping"' }],
    [
      '{"result":{"id":9,"content":[{"id":8}]},"jsonrpc":"2.0","id":"a-1"}',
      { jsonrpc: '"2.0"', id: '"a-1"' },
    ],
    ['{ "id" : null , "error":{"id":1} }', { id: "null", error: "" }],
    ['{"\\u0069d":3,"method":"x"}', { id: "3", method: '"x"' }],
    ['{"params":["requestId",{"requestId":3}],"id":1}', { id: "1" }],
    ['{"params":{"requestId":"r\\"1","_meta":{"progressToken":2}}}', { cancels: '"r\\"1"', token: "2" }],
    ['{"params":{"_meta":[{"progressToken":2}],"progressToken":4}}', { progressOf: "4" }],
    ['{"id":1,"id":2}', { id: "2" }],
    // Unreadable: whoever asks for the text gets none.
    ['{"id":{"a":1},"method":"x"}', { id: "", method: '"x"' }],
    [`{"id":"${"i".repeat(500)}","method":"x"}`, { id: "", method: '"x"' }],
  ])("%s", (text, parts) => {
    expect(texts(whole(text).envelope)).toEqual(parts);
    expect(texts(read(text, () => 1).envelope)).toEqual(parts);
  });

  test("several parts replaced, also beyond the ends of pieces -> each stands for its own", () => {
    const text = '{"id":12,"params":{"_meta":{"progressToken":"to\\"ken"}},"method":"tools/call"}';
    for (let size = 1; size < text.length; size++) {
      const { envelope, pieces } = read(text, () => size);
      const { id, token } = envelope;
      if (!id || !token) throw new Error("not found");
      const changed = withChanges(pieces, [
        [token, "900"],
        [id, "31"],
      ]);
      expect(Buffer.concat(changed).toString()).toBe(
        '{"id":31,"params":{"_meta":{"progressToken":900}},"method":"tools/call"}',
      );
    }
  });
});

test("20 MB of escapes, of braces or of short strings -> read to the end", { tags: "thorough" }, () => {
  for (const unit of ['\\"', "{}", '"a",', "\\\\"]) {
    const isText = unit.startsWith("\\");
    const body = unit.repeat((20 * 2 ** 20) / unit.length);
    const text = isText ? `{"result":"${body}","id":3}` : `{"result":[${body}"z"],"id":3}`;
    const { envelope } = read(text, () => 65_536);
    expect(envelope.id?.text).toBe("3");
  }
});
