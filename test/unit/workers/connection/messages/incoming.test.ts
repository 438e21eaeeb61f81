/** Owns: which texts of a server are parsed, and how a text that would cost too much is refused. */

import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { JSONRPCMessage, RequestId } from "../../../../../workers/connection/mcp/wire/wire.ts";
import {
  cancelledRequest,
  type Incoming,
  isAnswer,
  isRequest,
  LONG_BYTES,
  measureJson,
  readLong,
  readShort,
} from "../../../../../workers/connection/messages/incoming.ts";
import { LongBytes, Pieces, type Received } from "../../../../../workers/connection/messages/pieces.ts";
import { receive } from "../../../../../workers/connection/messages/receive.ts";
import { Noise, TooLarge, tooSlow } from "../../../../../workers/connection/messages/too-large.ts";
import { jsonOf } from "../../../../../workers/shared/json.ts";
import { LongMessages, type LongReader } from "../../../../../workers/shared/pace/long-messages.ts";
import { createRandom } from "../../../random.ts";

const LONG = 300_000;
const LONGEST_BYTES = 6_000_001;
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

test.each([
  ["", (result: Record<string, unknown>) => result],
  [" of a task", (result: Record<string, unknown>) => result.result as Record<string, unknown>],
])(
  "a result%s with numbers that JavaScript cannot hold -> they stay as the server wrote them",
  (of, resultIn) => {
    const written = '{"id":12345678901234567890,"far":1e400}';
    const result = `{"structuredContent":${written}}`;
    for (const filler of ["", "x".repeat(LONG)]) {
      const text = answer(of === "" ? result : `{"status":"completed","result":${result}}`);
      const incoming = read(text.replace('"jsonrpc"', `"filler":"${filler}","jsonrpc"`));
      const [message] = incoming.kind === "messages" ? incoming.messages : [];
      const found = (message as { result: Record<string, unknown> }).result;
      expect(jsonOf(resultIn(found).structuredContent)).toBe(written);
    }
  },
);

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
  ])("%s -> $2", (_name, text, kind) => {
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

describe("a message that the SDK would refuse -> what is handed on", () => {
  const progress = "notifications/progress";
  it.each<[string, object, object]>([
    [
      "progress with nulls",
      { id: null, method: progress, params: { progressToken: 7, progress: 1, total: null, message: null } },
      { method: progress, params: { progressToken: 7, progress: 1 } },
    ],
    ["no params", { method: "a", params: null }, { method: "a" }],
    ["params that are a list", { id: "x", method: "ping", params: [] }, { id: "x", method: "ping" }],
    ["_meta null", { method: "a", params: { b: null, _meta: null } }, { method: "a", params: { b: null } }],
    [
      "a token of null",
      { id: 1, method: "a", params: { _meta: { progressToken: null, c: 0 } } },
      { id: 1, method: "a", params: { _meta: { c: 0 } } },
    ],
    ["parts of an answer", { id: 1, method: "a", result: {}, error: "no" }, { id: 1, method: "a" }],
    [
      "a batch's answer",
      { id: 7, result: { a: null }, error: null, params: {} },
      { id: 7, result: { a: null } },
    ],
    [
      "an error of nobody",
      { id: null, error: { code: 1, message: "no" } },
      { error: { code: 1, message: "no" } },
    ],
  ])("%s", (_name, message, expected) => {
    const handed = read(`[${JSON.stringify({ jsonrpc: "2.0", ...message })}]`, true);
    expect(handed).toEqual({ kind: "messages", messages: [{ jsonrpc: "2.0", ...expected }] });
  });

  it.each([[1], [{}], [["ping"]], [true]])("a method that is %j -> no message", (method) => {
    expect(read(JSON.stringify({ jsonrpc: "2.0", id: 7, method, result: {} }))).toEqual({ kind: "noise" });
  });
});

describe("receive, as the HTTP transports use it", () => {
  /** What is handed on; `no message` for what is none. */
  const received = async (text: string): Promise<unknown[]> => {
    const found: unknown[] = [];
    const told = (what: unknown): void => void found.push(what);
    const pieces = new Pieces(LIMITS.messageBytes);
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

const measure = (text: string) => measureJson(Buffer.from(text));

describe("measureJson", () => {
  it.each<[string, number, number]>([
    ["[]", 1, 1],
    ["[1]", 1, 1],
    ["[1,2,3]", 3, 1],
    ['{"a":1,"b":2}', 4, 1],
    ["[[[1]]]", 3, 3],
    ['["[{,:",2]', 2, 1],
    ['["a\\"[,",2]', 2, 1],
    ['["a\\\\",[2]]', 3, 2],
    ['["\\\\\\"[[",2]', 2, 1],
    ["", 0, 0],
    ['"', 0, 0],
    ['["a', 1, 1],
    ["]]]]", 0, 0],
    [`["${"x".repeat(1_000)}",[2]]`, 3, 2],
    [`["${'\\"'.repeat(1_000)}",[2]]`, 3, 2],
    [`["${"\\\\".repeat(1_000)}",[2]]`, 3, 2],
    [`["${"x".repeat(127)}\\",[",[2]]`, 3, 2],
    [`["${"漢\\u005c".repeat(300)}",[2]]`, 3, 2],
  ])("%j -> %i values, %i levels", (text, values, depth) => {
    expect(measure(text)).toMatchObject({ values, depth });
  });

  it.each<[string, string | undefined, boolean]>([
    ['{"jsonrpc":"2.0","id":7,"result":{}}', "7", false],
    ['{"result":{"id":1,"method":"x"},"jsonrpc":"2.0","id":7}', "7", false],
    ['{"result":{},"id" : "a,}" }', '"a,}"', false],
    ['{"id":1,"id":2}', "2", false],
    ['{"id":3,"method":"ping"}', "3", true],
    ['{"id":3,"method": null,"result":{}}', "3", false],
    ['{"method":"null","method":null}', undefined, true],
    ['{"method":"notifications/message","params":{"id":4}}', undefined, true],
    ['{"result":"id","x":"method"}', undefined, false],
    ['{"result":[{"id":5}]}', undefined, false],
    ['[{"id":5,"method":"x"}]', undefined, false],
    [`{"id":"${"x".repeat(1_000)}","result":{}}`, undefined, false],
  ])("%j -> id %j, method %j", (text, id, hasMethod) => {
    expect(measure(text)).toMatchObject({ id, hasMethod });
  });

  test("random values -> as many values as parsing finds, and as deep", () => {
    const random = createRandom(20_261_122);
    const text = (): string =>
      Array.from({ length: random.below(200) }, () => '"\\[]{},:x漢\n\u2028'[random.below(13)] ?? "").join(
        "",
      );
    const make = (levels: number): unknown => {
      const kind = levels === 0 ? random.below(2) : random.below(4);
      if (kind === 0) return random.below(1_000) / 7;
      if (kind === 1) return text();
      const items = Array.from({ length: 1 + random.below(4) }, () => make(levels - 1));
      return kind === 2 ? items : Object.fromEntries(items.map((item, i) => [`${text()}${i}`, item]));
    };
    /** A list counts one for each item, an object two. */
    const count = (value: unknown): { values: number; depth: number } => {
      if (typeof value !== "object" || value === null) return { values: 0, depth: 0 };
      const inner = Object.values(value).map(count);
      const own = Array.isArray(value) ? inner.length : 2 * inner.length;
      return {
        values: inner.reduce((sum, { values }) => sum + values, own),
        depth: 1 + Math.max(...inner.map(({ depth }) => depth)),
      };
    };
    for (let round = 0; round < 500; round++) {
      const value = [make(5)];
      const written = JSON.stringify(value, undefined, random.below(3));
      expect(measure(written), written).toMatchObject(count(value));
    }
  });
});

type Kind = "request" | "answer" | "other";

test.each<[string, object, Kind]>([
  ["a request", { id: 1, method: "ping" }, "request"],
  ["a request with the id 0", { id: 0, method: "ping" }, "request"],
  ["a result", { id: 1, result: {} }, "answer"],
  ["an error", { id: 1, error: { code: 1, message: "no" } }, "answer"],
  ["an error without an id", { error: { code: 1, message: "no" } }, "answer"],
  ["a notification", { method: "notifications/progress" }, "other"],
  ["a notification with an undefined id", { id: undefined, method: "x" }, "other"],
  ["nothing but its version", {}, "other"],
])("%s -> $2", (_name, message, kind) => {
  const whole = { jsonrpc: "2.0", ...message } as JSONRPCMessage;
  expect([isRequest(whole), isAnswer(whole)]).toEqual([kind === "request", kind === "answer"]);
});

test.each<[string, object, RequestId | undefined]>([
  ["a cancelled request", { method: "notifications/cancelled", params: { requestId: 7 } }, 7],
  ["the id 0", { method: "notifications/cancelled", params: { requestId: 0 } }, 0],
  ["an id of text", { method: "notifications/cancelled", params: { requestId: "a" } }, "a"],
  ["no id", { method: "notifications/cancelled", params: {} }, undefined],
  ["no params", { method: "notifications/cancelled" }, undefined],
  ["params null", { method: "notifications/cancelled", params: null }, undefined],
  ["another notification", { method: "notifications/progress", params: { requestId: 7 } }, undefined],
  ["an answer", { id: 7, result: { requestId: 7 } }, undefined],
])("cancelledRequest: %s -> $2", (_name, message, id) => {
  expect(cancelledRequest({ jsonrpc: "2.0", ...message } as JSONRPCMessage)).toBe(id);
});

const { noiseBytes, noiseLines, noiseLinesRead, noiseWindowMs } = LIMITS;

test("as many lines and bytes as may be, in each window -> taken; one more -> refused, with a note", () => {
  const notes: string[] = [];
  let now = 0;
  const noise = new Noise(
    (note) => notes.push(note),
    () => now,
  );
  for (let window = 0; window < 3; window++) {
    noise.add(noiseLines, noiseBytes);
    now += noiseWindowMs;
  }
  noise.add(noiseLines, 0);
  expect(() => noise.add(1, 0)).toThrow(TooLarge);
  now += noiseWindowMs;
  expect(() => noise.add(1, noiseBytes + 1)).toThrow("more than 64 MiB within 10 s that hold no message");
  expect(notes).toEqual([
    "sent more than 100,000 lines within 10 s that hold no message; nothing more of that is read",
    "sent more than 64 MiB within 10 s that hold no message; nothing more of that is read",
  ]);
});

test("lines that begin as messages -> parsed and told up to the limit; a message between them is still read", () => {
  const told: string[] = [];
  const to = {
    server: "loud",
    batches: () => false,
    asked: () => new Map<string, string>(),
    isOver: () => false,
    hand: () => told.push("message"),
    noise: new Noise(() => undefined),
    onNoise: () => told.push("noise"),
    onNote: () => undefined,
  };
  for (let i = 0; i < noiseLinesRead + 500; i++) receive(Buffer.from("{"), to);
  void receive(Buffer.from('{"jsonrpc":"2.0","method":"x"}'), to);
  expect(told.filter((what) => what === "noise")).toHaveLength(noiseLinesRead + 1);
  expect(told.at(-1)).toBe("message");
});

const allOf = (received: Received): Buffer =>
  received instanceof LongBytes ? Buffer.from(received.buffer, 0, received.length) : received;

test("pieces of every size, taken at random times -> the same bytes in order", () => {
  const random = createRandom(7);
  const pieces = new Pieces(LONGEST_BYTES);
  for (let round = 0; round < 20; round++) {
    const expected: Buffer[] = [];
    for (let i = random.below(300); i > 0; i--) {
      const size = random.below(10) === 0 ? random.below(50_000) : random.below(100);
      const piece = Buffer.alloc(size, random.below(256));
      expected.push(piece);
      pieces.push(piece);
    }
    const whole = Buffer.concat(expected);
    expect(pieces.bytes).toBe(whole.length);
    expect(allOf(pieces.take()).equals(whole)).toBe(true);
    expect(pieces.bytes).toBe(0);
  }
});

test("bytes that were taken -> unchanged when more bytes come", () => {
  const pieces = new Pieces(LONGEST_BYTES);
  const take = (byte: string): Received => {
    for (let i = 0; i < 100; i++) pieces.push(Buffer.from(byte));
    return pieces.take();
  };
  const first = take("a");
  take("b");
  expect(allOf(first).toString()).toBe("a".repeat(100));
});

test("one large piece -> not copied", () => {
  const pieces = new Pieces(LONGEST_BYTES);
  const piece = Buffer.alloc(100_000);
  pieces.push(piece);
  expect(pieces.take()).toBe(piece);
});

test("a long message, in pieces of every size -> the same bytes, in a memory of its own, which does not grow beyond the limit", () => {
  const random = createRandom(11);
  const pieces = new Pieces(LONGEST_BYTES);
  const expected: Buffer[] = [];
  while (pieces.bytes < 5 * 1024 * 1024) {
    const piece = Buffer.alloc(
      random.below(2) === 0 ? random.below(200_000) : random.below(100),
      random.below(256),
    );
    expected.push(piece);
    pieces.push(piece);
  }
  const taken = pieces.take();
  if (!(taken instanceof LongBytes)) throw new Error("not long");
  expect(taken.length).toBe(Buffer.concat(expected).length);
  expect(allOf(taken).equals(Buffer.concat(expected))).toBe(true);
  expect(taken.head.equals(Buffer.concat(expected).subarray(0, 64 * 1024))).toBe(true);
  expect(taken.buffer.maxByteLength).toBe(LONGEST_BYTES);
  expect(pieces.bytes).toBe(0);
});

test("a long message of as many bytes as may come -> all of them", () => {
  const pieces = new Pieces(LONGEST_BYTES);
  for (let left = LONGEST_BYTES; left > 0; left -= 65_536)
    pieces.push(Buffer.alloc(Math.min(left, 65_536), "x"));
  const taken = pieces.take();
  expect(taken.length).toBe(LONGEST_BYTES);
  expect(allOf(taken).equals(Buffer.alloc(LONGEST_BYTES, "x"))).toBe(true);
});

const MEBIBYTE = 1024 * 1024;

describe("places for long messages", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function places(count: number) {
    const long = new LongMessages(count);
    const givenUp: string[] = [];
    return {
      givenUp,
      open: (name: string): LongReader =>
        long.open((bytes) => givenUp.push(`${name}: ${tooSlow(bytes).message}`)),
    };
  }

  /** Whether the reader may go on at once, and by now. */
  function watch(turn: Promise<void> | undefined): { waits: boolean; goesOn: () => boolean } {
    let goesOn = turn === undefined;
    void turn?.then(() => {
      goesOn = true;
    });
    return { waits: turn !== undefined, goesOn: () => goesOn };
  }

  describe("LongMessages", () => {
    test("many short messages -> none waits", () => {
      const { open } = places(1);
      for (let i = 0; i < 100; i++) expect(open(`r${i}`).hold(MEBIBYTE - 1)).toBeUndefined();
    });

    test("more long messages than slots -> each waits until an earlier one is complete, in order", async () => {
      const { open } = places(2);
      const [a, b, c, d] = ["a", "b", "c", "d"].map(open);
      expect(watch(a?.hold(MEBIBYTE)).waits).toBe(false);
      expect(watch(b?.hold(MEBIBYTE)).waits).toBe(false);
      const third = watch(c?.hold(MEBIBYTE));
      const fourth = watch(d?.hold(2 * MEBIBYTE));
      expect([third.waits, fourth.waits]).toEqual([true, true]);
      expect(a?.hold(60 * MEBIBYTE)).toBeUndefined();
      b?.hold(0);
      await vi.advanceTimersByTimeAsync(0);
      expect([third.goesOn(), fourth.goesOn()]).toEqual([true, false]);
      a?.end();
      await vi.advanceTimersByTimeAsync(0);
      expect(fourth.goesOn()).toBe(true);
    });

    test("a reader that ends while it waits -> goes on at once and takes no slot", async () => {
      const { open } = places(1);
      const [a, b, c] = ["a", "b", "c"].map(open);
      a?.hold(MEBIBYTE);
      const second = watch(b?.hold(MEBIBYTE));
      const third = watch(c?.hold(MEBIBYTE));
      b?.end();
      await vi.advanceTimersByTimeAsync(0);
      expect([second.goesOn(), third.goesOn()]).toEqual([true, false]);
      a?.end();
      await vi.advanceTimersByTimeAsync(0);
      expect(third.goesOn()).toBe(true);
    });

    test("a message that makes no progress while another one waits -> given up after some seconds", async () => {
      const { open, givenUp } = places(1);
      const stuck = open("stuck");
      stuck.hold(3 * MEBIBYTE);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(givenUp).toEqual([]);
      const waiting = watch(open("waiting").hold(MEBIBYTE));
      await vi.advanceTimersByTimeAsync(5_000);
      expect(givenUp).toEqual([
        "stuck: 3 MiB of a message and then hardly more, while long messages of other servers wait",
      ]);
      expect(waiting.goesOn()).toBe(true);
      expect(stuck.hold(5 * MEBIBYTE)).toBeUndefined();
    });

    test("the machine sleeps for an hour in the midst of a message while another one waits -> not given up for that", async () => {
      const { open, givenUp } = places(1);
      let sleptMs = 0;
      const now = performance.now.bind(performance);
      const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + sleptMs);
      try {
        const asleep = open("asleep");
        asleep.hold(3 * MEBIBYTE);
        open("waiting").hold(MEBIBYTE);
        sleptMs = 3_600_000;
        await vi.advanceTimersByTimeAsync(5_000);
        expect(asleep.hold(4 * MEBIBYTE)).toBeUndefined();
        expect(givenUp).toEqual([]);
        await vi.advanceTimersByTimeAsync(15_000);
        expect(givenUp).toHaveLength(1);
      } finally {
        clock.mockRestore();
      }
    });

    test("a message that comes slowly but steadily -> keeps its slot", async () => {
      const { open, givenUp } = places(1);
      const steady = open("steady");
      steady.hold(MEBIBYTE);
      const waiting = watch(open("waiting").hold(MEBIBYTE));
      for (let second = 1; second <= 60; second++) {
        await vi.advanceTimersByTimeAsync(1_000);
        expect(steady.hold(MEBIBYTE + (second * MEBIBYTE) / 2)).toBeUndefined();
      }
      expect(givenUp).toEqual([]);
      expect(waiting.goesOn()).toBe(false);
      steady.hold(0);
      await vi.advanceTimersByTimeAsync(0);
      expect(waiting.goesOn()).toBe(true);
    });
  });
});
