/**
 * Owns: JSON-RPC messages with accidents, for the mutating servers over stdio and HTTP.
 * Must not: know how a message is framed.
 * Called by: mutates.ts and support/mutating-http.ts.
 */
import { createRandom } from "../../unit/random.ts";

export type Random = ReturnType<typeof createRandom>;
export type Json = Record<string, unknown>;

/** Returns random numbers that depend only on the seed and the mutation's number, so that a mutation can run alone. */
export const randomFor = (seed: number, number: number): Random =>
  createRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));

export const pickFrom = <T>(random: Random, list: readonly T[]): T => list[random.below(list.length)] as T;

const NESTS = [
  ["[", "]"],
  ['{"a":', "}"],
] as const;
const DEPTHS = [10, 900, 5_000, 100_000] as const;

/**
 * Returns a value that JSON allows and that is unusual. Deep values are made as text, since `stringify` is recursive.
 */
export const oddValue = (random: Random): unknown =>
  pickFrom<unknown>(random, [
    ...[
      null,
      true,
      false,
      0,
      -1,
      1.5,
      1e308,
      2 ** 53 + 2,
      -(2 ** 31),
      "",
      "x",
      "\u0000",
      "\ud800",
      "💥\u202e",
    ],
    ...[[], {}, [null], [[]], [1, "a", {}], { a: 1 }, "y".repeat(70_000)],
    JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "toString": null}'),
    Array.from({ length: 3_000 }, (_, i) => i),
  ]);

/** Returns every object and list in a value. */
function holders(value: unknown, found: object[] = []): object[] {
  if (typeof value !== "object" || value === null) return found;
  found.push(value);
  for (const inner of Object.values(value)) holders(inner, found);
  return found;
}

/** Returns a copy in which some values, keys or items are replaced, removed or doubled. */
export function mutateJson(whole: unknown, random: Random): unknown {
  const copy: unknown = structuredClone(whole);
  for (let rounds = 1 + random.below(3); rounds > 0; rounds--) {
    const all = holders(copy);
    const holder = all[random.below(all.length)];
    if (!holder) return oddValue(random);
    const keys = Object.keys(holder);
    const key = keys[random.below(keys.length)] ?? "result";
    const other = keys[random.below(keys.length)] ?? key;
    const part = all[random.below(all.length)];
    switch (random.below(6)) {
      case 0:
        // A list loses the whole item, because JSON cannot express a list with a hole.
        if (Array.isArray(holder)) holder.splice(random.below(holder.length), 1);
        else Reflect.deleteProperty(holder, key);
        break;
      case 1:
        Reflect.set(holder, other, structuredClone(Reflect.get(holder, key)));
        break;
      case 2:
        Reflect.set(holder, `${key}${random.below(3)}`, oddValue(random));
        break;
      case 3:
        // A copy is needed: JSON cannot express a value that holds itself.
        Reflect.set(holder, key, structuredClone(part));
        break;
      default:
        Reflect.set(holder, key, oddValue(random));
    }
  }
  return copy;
}

const PIECES = [
  ...[
    "null",
    "1e999",
    "-0",
    "9".repeat(400),
    '"',
    "\\",
    "\\u",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\u0000",
  ],
  ...[
    "\n",
    "\r",
    "\r\n",
    "\u2028",
    "\uFEFF",
    "💥",
    " ",
    "data: ",
    "id: ",
    "\n\n",
    '"__proto__":{"x":1},',
    "NaN",
  ],
] as const;

/** Returns bytes with changes, a cut, a removed, doubled or foreign piece, or deep nesting. */
export function mutateBytes(whole: Buffer, random: Random): Buffer {
  const at = random.below(whole.length + 1);
  const end = Math.min(whole.length, at + 1 + random.below(40));
  const before = whole.subarray(0, at);
  const piece = Buffer.from(pickFrom(random, PIECES));
  switch (random.below(8)) {
    case 0: {
      const bytes = Buffer.from(whole);
      for (let flips = 1 + random.below(8); flips > 0; flips--)
        bytes[random.below(bytes.length)] = random.below(256);
      return bytes;
    }
    case 1:
      return before;
    case 2:
      return Buffer.concat([before, whole.subarray(end)]);
    case 3:
      return Buffer.concat([before, whole.subarray(at, end), whole.subarray(at)]);
    case 4:
      return Buffer.concat([before, piece, whole.subarray(at)]);
    case 5:
      return Buffer.concat([before, piece, whole.subarray(end)]);
    case 6: {
      const depth = pickFrom(random, DEPTHS);
      const [open, close] = pickFrom(random, NESTS);
      const nest = `${open.repeat(depth)}1${close.repeat(random.below(2) === 0 ? depth : 0)}`;
      const text = whole.toString("latin1");
      // The nest replaces a whole value, so the depth is the message's only fault.
      const values = [...text.matchAll(/"[^"\n]*"(?!:)|\d+|true|null/g)];
      const value = values[random.below(values.length)];
      if (!value) return Buffer.from(nest);
      const after = text.slice(value.index + value[0].length);
      return Buffer.from(`${text.slice(0, value.index)}${nest}${after}`, "latin1");
    }
    default:
      return Buffer.from(Array.from({ length: random.below(400) }, () => random.below(256)));
  }
}

/** Returns a notification or request that a server sends unasked; most are odd. */
export function unasked(random: Random, id: unknown): Json {
  const params = pickFrom<unknown>(random, [
    { progressToken: id, progress: 1, total: 2, message: "half" },
    { progressToken: id, progress: 1e308, total: -1 },
    { requestId: id, reason: "no" },
    { level: "error", data: "\u001b[2Jwords" },
    oddValue(random),
  ]);
  const notifications = ["progress", "cancelled", "message", "tools/list_changed", "initialized", "odd"];
  const method = `notifications/${pickFrom(random, notifications)}`;
  const asked = pickFrom(random, [
    "ping",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "tools/call",
  ]);
  const ids = pickFrom<unknown>(random, [id, -1, "s", null, 2 ** 60, {}]);
  return random.below(2) === 0
    ? { jsonrpc: "2.0", method, params }
    : { jsonrpc: "2.0", id: ids, method: asked, params };
}

const wrongId = (id: unknown, random: Random): unknown =>
  pickFrom<unknown>(random, [
    String(id),
    Number(id) + 1,
    Number(id) - 1,
    -1,
    null,
    1e300,
    {},
    [id],
    true,
    0.5,
  ]);

/** Returns the messages that replace one answer, each as bytes; some are sound. */
export function mutateAnswer(answer: Json, random: Random): Buffer[] {
  const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value) ?? "undefined");
  const good = bytes(answer);
  switch (random.below(10)) {
    case 0:
      return [bytes({ ...answer, id: wrongId(answer.id, random) })];
    case 1:
      return [good, random.below(2) === 0 ? good : bytes(mutateJson(answer, random))];
    case 2: {
      const some = Array.from({ length: 1 + random.below(5) }, () => bytes(unasked(random, answer.id)));
      return [...some, good, ...some.slice(0, 1)];
    }
    case 3:
      return [
        bytes({
          jsonrpc: "2.0",
          id: answer.id,
          error: mutateJson({ code: -1, message: "no", data: {} }, random),
        }),
      ];
    case 4:
      return [
        bytes(pickFrom<unknown>(random, [[answer], [answer, answer], [], { ...answer, jsonrpc: "1.0" }])),
      ];
    case 5:
    case 6:
      return [bytes(mutateJson(answer, random))];
    default:
      return [mutateBytes(good, random)];
  }
}
