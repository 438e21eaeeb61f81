/** Owns: which texts of a server are parsed, and how a text that would cost too much is refused. */
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  type Incoming,
  LONG_BYTES,
  readLong,
  readShort,
} from "../../../../../workers/connection/messages/incoming.ts";
import { createPieces } from "../../../../../workers/connection/messages/pieces.ts";
import { receive } from "../../../../../workers/connection/messages/receive.ts";
import { Noise, TooLarge } from "../../../../../workers/connection/messages/too-large.ts";

const LONG = 300_000;
const list = (item: string, count: number): string => `[${Array(count).fill(item).join(",")}]`;
const answer = (result: string, id: unknown = 7): string =>
  `{"result":${result},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`;
/** As the connection worker reads a short text, or as the thread reads a long one. */
const read = (text: string, batches = false): Incoming => {
  const bytes = Buffer.from(text);
  if (bytes.length <= LONG_BYTES) return readShort(bytes, { batches });
  return readLong(bytes, { batches, asked: new Map([["7", "tools/call"]]), onId: () => undefined });
};
const refusal = (incoming: Incoming): unknown =>
  incoming.kind === "refused" ? [incoming.id, incoming.error.message, incoming.error.excess.data] : incoming;

const { messageValues, unaskedBytes, unaskedDepth } = LIMITS;

describe("a text", () => {
  it.each<[string, string, Incoming["kind"]]>([
    ["a message", answer("{}"), "messages"],
    ["a long text in a message", answer(`"${"x".repeat(LONG)}"`), "messages"],
    ["a number of a million digits", answer("1".repeat(1_000_000)), "messages"],
    ["a million escapes", answer(`"${"\\u0041\\n\\\\".repeat(1_000_000)}"`), "messages"],
    ["a key 900,000 times", answer(`{${Array(900_000).fill('"a":1').join(",")}}`), "messages"],
    ["600,000 keys __proto__", answer(list('{"__proto__":0}', 600_000)), "messages"],
    ["as many values as may be", answer(list("0", messageValues - 10)), "messages"],
    ["an answer 500,000 levels deep", answer(`${"[".repeat(500_000)}${"]".repeat(500_000)}`), "messages"],
    ["a long line that is no JSON", "progress: ".repeat(LONG), "noise"],
    ["a long line that only begins as JSON", `{${" ".repeat(LONG)}`, "noise"],
    ["a batch", `[${answer("{}")}]`, "noise"],
    ["an id that is a text", answer("{}", "7"), "messages"],
    ["an id that is null", answer("{}", null), "messages"],
    ["an id that no text can be made of", answer("{}", { toString: null }), "noise"],
    ["a list of such an id", answer("{}", [{ toString: null }]), "noise"],
    ["white space, then a message", `${" ".repeat(LONG)}${answer("{}")}`, "messages"],
    [
      "a text of 30,000 keys",
      answer(`{${Array.from({ length: 30_000 }, (_, i) => `"${i}":1`).join(",")}}`),
      "messages",
    ],
    [
      "an answer 100,000 levels deep in a short text",
      answer(`${"[".repeat(100_000)}${"]".repeat(100_000)}`),
      "messages",
    ],
    ["a long answer to nothing that was asked", answer(`"${"x".repeat(LONG)}"`, 8), "stray"],
    ["a text id that is not ours", answer(list("0", messageValues + 10), "x"), "stray"],
  ])("%s -> %3$s", (_name, text, kind) => {
    expect(read(text).kind).toBe(kind);
  });

  it.each<[string, string, unknown[]]>([
    [
      "more values than may be",
      answer(list("{}", messageValues / 2)),
      [
        7,
        "one message of some 2,000,006 keys and values, more than 2,000,000",
        { limitValues: messageValues, values: 2_000_006 },
      ],
    ],
    [
      "more values in a notification",
      `{"jsonrpc":"2.0","method":"x","params":${list("0", messageValues)}}`,
      [undefined, expect.stringMatching(/^one message of some 2,000,00\d keys/), expect.anything()],
    ],
    [
      "a notification of more than 16 MiB",
      `{"jsonrpc":"2.0","method":"x","params":"${"x".repeat(unaskedBytes)}"}`,
      [undefined, "a notification or request of 16 MiB, more than 16 MiB", { limitBytes: unaskedBytes }],
    ],
    [
      "a notification of more than 16 MiB with an escaped key",
      `{"jsonrpc":"2.0","\\u006dethod":"x","params":"${"x".repeat(unaskedBytes)}"}`,
      [undefined, "a notification or request of 16 MiB, more than 16 MiB", { limitBytes: unaskedBytes }],
    ],
    [
      "a short notification too deep",
      `{"jsonrpc":"2.0","method":"x","params":${"[".repeat(120_000)}${"]".repeat(120_000)}}`,
      [
        undefined,
        expect.stringMatching(/120,001 levels deep, more than 1,000$/),
        { limitDepth: unaskedDepth, depth: 120_001 },
      ],
    ],
    [
      "more values in an answer whose id is escaped",
      `{"jsonrpc":"2.0","\\u0069d":7,"result":${list("{}", messageValues / 2)}}`,
      [7, expect.stringMatching(/^one message of some 2,000,00\d keys/), expect.anything()],
    ],
    [
      "a request too deep",
      `{"jsonrpc":"2.0","id":7,"method":"x","params":${"[".repeat(LONG)}${"]".repeat(LONG)}}`,
      [
        undefined,
        expect.stringMatching(/300,001 levels deep, more than 1,000$/),
        { limitDepth: unaskedDepth, depth: LONG + 1 },
      ],
    ],
  ])("%s -> refused, with the limit that it exceeds", (_name, text, expected) => {
    expect(refusal(read(text))).toEqual(expected);
  });

  test("as many messages as may come at once -> all; one more -> refused; any where none may -> no message", () => {
    const batch = (messages: number): string => list(answer("{}"), messages);
    expect(read(batch(LIMITS.batchMessages), true)).toMatchObject({ kind: "messages" });
    expect(refusal(read(batch(LIMITS.batchMessages + 1), true))).toEqual([
      undefined,
      "101 messages at once, more than 100",
      { limitMessages: 100, messages: 101 },
    ]);
    expect(read(batch(2)).kind).toBe("noise");
  });
});

describe("receive, as the HTTP transports use it", () => {
  /** What is handed on; `no message` for what is none. */
  const received = async (text: string): Promise<unknown[]> => {
    const found: unknown[] = [];
    const told = (what: unknown): void => void found.push(what);
    const pieces = createPieces();
    pieces.push(Buffer.from(text));
    await receive(pieces.take(), {
      server: "some",
      batches: () => true,
      asked: () => new Map([["7", "tools/call"]]),
      isOver: () => false,
      hand: told,
      noise: new Noise(() => undefined),
      onNoise: () => told("no message"),
      onNote: told,
    });
    return found;
  };

  test("an answer that is refused -> the error for its request, with the reason itself", async () => {
    const [message] = await received(answer(list("{}", messageValues / 2)));
    expect(message).toMatchObject({ id: 7, error: { data: expect.any(TooLarge) } });
  });

  test("a refused batch, whose requests are not known -> throws", async () => {
    await expect(received(`[${answer(list("{}", messageValues / 2))}]`)).rejects.toThrow(TooLarge);
    await expect(received(list(answer("{}"), 1_000))).rejects.toThrow(TooLarge);
  });

  test("a batch -> its messages; any other text -> no message", async () => {
    expect(await received(`[${answer("{}")},${answer("{}")}]`)).toHaveLength(2);
    expect(await received(`[${answer("{}")},1]`)).toEqual(["no message"]);
    expect(await received("x".repeat(LONG))).toEqual(["no message"]);
    expect(await received("1,2,3,".repeat(LONG * 10))).toEqual(["no message"]);
  });
});
