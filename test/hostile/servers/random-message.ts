/**
 * Owns: random answers to a call, as texts of JSON that are all within the limits of size: keys, depth, strings, numbers,
 * parts, errors, notifications before the answer. A seed and a number decide an answer, alone.
 * Called by: heavy-random.ts, which sends them, and heavy.test.ts, which says what failed.
 */
import { createRandom } from "../../unit/random.ts";

type Pick = (count: number) => number;

const VALUES: readonly string[] = ["0", "{}", "[]", '""', "null", "-1.5e300", "12345678901234567890", '"x"'];
const STRINGS = ["x", "\\n", "\\u202e", "é", "😀", '\\"', "{\\", "a b\\tc"].map((text) =>
  text.replace("{\\", "{"),
);

const NESTED = [
  ["[", "]"],
  ['{"a":', "}"],
] as const;

const one = <T>(items: readonly T[], pick: Pick): T => items[pick(items.length)] as T;

/** Arguments: the bytes that the value may have, at most, and `pick(count)`. */
const KINDS: Record<string, (bytes: number, pick: Pick) => string> = {
  keys: (bytes, pick) => {
    const value = one(VALUES, pick);
    const each = 14 + value.length;
    const count = Math.min(Math.floor(bytes / each), 990_000);
    return `{${Array.from({ length: count }, (_, i) => `"key${i.toString(36)}":${value}`).join(",")}}`;
  },
  same: (bytes) =>
    `[${Array(Math.min(Math.floor(bytes / 8), 600_000))
      .fill('{"a":0}')
      .join(",")}]`,
  list: (bytes, pick) => {
    const value = one(VALUES, pick);
    return `[${Array(Math.min(Math.floor(bytes / (value.length + 1)), 900_000))
      .fill(value)
      .join(",")}]`;
  },
  deep: (bytes, pick) => {
    const [open, close] = one(NESTED, pick);
    const depth = Math.min(Math.floor(bytes / (open.length + 1)), 600_000);
    return `${open.repeat(depth)}1${close.repeat(depth)}`;
  },
  text: (bytes, pick) => {
    const piece = one(STRINGS, pick);
    return `"${piece.repeat(Math.floor(bytes / Buffer.byteLength(piece)))}"`;
  },
  /** JSON as text, which the guard outlines. */
  json: (bytes) =>
    JSON.stringify(
      `[${Array(Math.floor(bytes / 25))
        .fill('{"a":[1,2],"b":"c"}')
        .join(",")}]`,
    ),
  digits: (bytes) => "1".repeat(Math.min(bytes, 1_000_000)),
};
const KIND_NAMES = Object.keys(KINDS);

const PARTS = {
  odd: '{"type":"odd"}',
  text: '{"type":"text","text":"a\\nb"}',
  link: '{"type":"resource_link","uri":"file:///x","name":"n"}',
  user: '{"type":"text","text":"x","annotations":{"audience":["user"]}}',
  image: '{"type":"image","data":"AAAA","mimeType":"image/png"}',
};

const BEFORE = [
  '"method":"notifications/message","params":{"level":"info","data":',
  '"method":"notifications/progress","params":{"progressToken":1,"progress":1,"x":',
  '"\\u006dethod":"notifications/x","params":{"x":',
  '"id":"s1","method":"elicitation/create","params":{"x":',
  '"id":"s2","method":"x","params":{"x":',
];

const PLACES = [
  "structured",
  "meta",
  "other",
  "error",
  "text",
  "parts",
  "before",
  "id last",
  "escaped id",
] as const;

/** The lines of the answer, and what they are in words. */
export function randomMessage(
  seed: number,
  number: number,
  id: number,
  mostBytes: number,
): { what: string; lines: string[] } {
  const { next: random } = createRandom(seed * 100_003 + number);
  const pick: Pick = (count) => Math.floor(random() * count);
  // As often small as large, up to the limit.
  const bytes = Math.floor(1_000 * (mostBytes / 1_000) ** random());
  const kind = one(KIND_NAMES, pick);
  const of = (name: string): string => KINDS[name]?.(bytes, pick) ?? "null";
  const value = (): string => of(kind);
  const answer = (body: string): string => `{"jsonrpc":"2.0","id":${id},${body}}`;
  const done = '"content":[{"type":"text","text":"done"}]';
  const where = one(PLACES, pick);
  const what = `${kind} of ${bytes} bytes, ${where}`;
  if (where === "structured")
    return { what, lines: [answer(`"result":{${done},"structuredContent":${value()}}`)] };
  if (where === "meta") return { what, lines: [answer(`"result":{${done},"_meta":{"x":${value()}}}`)] };
  if (where === "other") return { what, lines: [answer(`"result":{${done},"x":${value()}}`)] };
  if (where === "error")
    return { what, lines: [answer(`"error":{"code":1,"message":"no","data":${value()}}`)] };
  if (where === "text") {
    const text = of(one(["text", "json"], pick));
    return { what, lines: [answer(`"result":{"content":[{"type":"text","text":${text}}]}`)] };
  }
  if (where === "parts") {
    const part = one(Object.values(PARTS), pick);
    const count = Math.min(Math.floor(bytes / (part.length + 1)), 250_000);
    return { what, lines: [answer(`"result":{"content":[${Array(count).fill(part).join(",")}]}`)] };
  }
  if (where === "before") {
    const before = `{"jsonrpc":"2.0",${one(BEFORE, pick)}${value()}}}`;
    return { what, lines: [before, answer(`"result":{${done}}`)] };
  }
  const body = `"result":{${done},"structuredContent":${value()}},"jsonrpc":"2.0"`;
  return { what, lines: [`{${body},${where === "id last" ? '"id"' : '"\\u0069d"'}:${id}}`] };
}
