/** Owns: which texts of a server are parsed, and how a text that would cost too much is refused. */
import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { type Incoming, readIncoming } from "../../../../../workers/connection/messages/incoming.ts";
import { parseMessages } from "../../../../../workers/connection/messages/kinds.ts";
import { TooLarge } from "../../../../../workers/connection/messages/too-large.ts";

const LONG = 300_000;
const list = (item: string, count: number): string => `[${Array(count).fill(item).join(",")}]`;
const answer = (result: string, id: unknown = 7): string =>
  `{"result":${result},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`;
const read = (text: string, isAsked = (id: unknown) => id === 7): Incoming =>
  readIncoming(Buffer.from(text), { batches: false, isAsked });
const refusal = (incoming: Incoming): unknown =>
  incoming.kind === "refused" ? [incoming.id, incoming.error.message, incoming.error.excess.data] : incoming;

const { messageValues, unaskedBytes, unaskedDepth } = LIMITS;

describe("readIncoming", () => {
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
    ["a long line with commas", "1,2,3,".repeat(LONG * 10), "noise"],
    ["a long line that only begins as JSON", `{${" ".repeat(LONG)}`, "noise"],
    ["a batch", `[${answer("{}")}]`, "noise"],
    ["an id that is a text", answer("{}", "7"), "messages"],
    ["an id that is null", answer("{}", null), "messages"],
    ["an id that no text can be made of", answer("{}", { toString: null }), "noise"],
    ["a list of such an id", answer("{}", [{ toString: null }]), "noise"],
    ["white space, then a message", `${" ".repeat(LONG)}${answer("{}")}`, "messages"],
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

  test("a heap with no room for the message -> refused, and the thread lives", async () => {
    const url = new URL(`file://${join(import.meta.dirname, "../../../../fixtures/reads-incoming.ts")}`);
    const worker = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: 64 } });
    const [outcomes] = await once(worker, "message");
    await worker.terminate();
    expect(outcomes).toEqual([
      "messages",
      "one message of 40 MiB, for which the MCP worker has no memory left beside other results",
      "messages",
    ]);
  });
});

describe("parseMessages, as the HTTP transports use it", () => {
  test("an answer that is refused -> the error for its request, with the reason itself", () => {
    const [message] = parseMessages(answer(list("{}", messageValues / 2))) ?? [];
    expect(message).toMatchObject({ id: 7, error: { data: expect.any(TooLarge) } });
  });

  test("a refused batch, whose requests are not known -> throws", () => {
    expect(() => parseMessages(`[${answer(list("{}", messageValues / 2))}]`)).toThrow(TooLarge);
  });

  test("a batch -> its messages; any other text -> undefined", () => {
    expect(parseMessages(`[${answer("{}")},${answer("{}")}]`)).toHaveLength(2);
    expect(parseMessages(`[${answer("{}")},1]`)).toBeUndefined();
    expect(parseMessages("x".repeat(LONG))).toBeUndefined();
  });
});
