/** Owns: the thread for long messages: what comes back, in which order, and what a message that takes too long costs. */
import { readdir } from "node:fs/promises";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { decode } from "../../../../../src/shared/protocol/calls.ts";
import type { CallToolResult } from "../../../../../workers/connection/mcp/wire/wire.ts";
import { asToolResult, heldIn, readHeavy } from "../../../../../workers/connection/messages/heavy.ts";
import { compileHeavyIn, HeavyThread } from "../../../../../workers/connection/messages/heavy-thread.ts";
import type { Incoming } from "../../../../../workers/connection/messages/incoming.ts";
import { LongBytes, Pieces } from "../../../../../workers/connection/messages/pieces.ts";
import { type ResultOptions, shapeAnywhere } from "../../../../../workers/connection/results/anywhere.ts";
import { inBytes } from "../../../../../workers/connection/results/shape.ts";
import { PATIENCE_MS } from "../../../../support/patience.ts";
import { tempFolder } from "../results/support.ts";

/** Far below the time that `KEYS` take on any machine. */
const SHORT = { workMs: 400, idleMs: 60_000 };
const LONG = { workMs: 60_000, idleMs: 60_000 };
const KEYS = `{${Array.from({ length: 800_000 }, (_, i) => `"k${i}":0`).join(",")}}`;
const TEXT = "x".repeat(300_000);

const threads: HeavyThread[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.close();
});
const open = (limits: typeof SHORT): HeavyThread => {
  const thread = new HeavyThread(limits);
  threads.push(thread);
  return thread;
};
/** Of all tests that end no thread. */
const kept = new HeavyThread(LONG);
afterAll(() => kept.close());

const bytesOf = (text: string): LongBytes => {
  const pieces = new Pieces(64 * 1024 * 1024);
  pieces.push(Buffer.from(text));
  const taken = pieces.take();
  if (!(taken instanceof LongBytes)) throw new Error("not long");
  return taken;
};
const answer = (result: string, id = 7): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
const said = (text: string): string => `{"content":[{"type":"text","text":${JSON.stringify(text)}}]}`;

const read = (
  thread: HeavyThread,
  text: string,
  more: { server?: string; method?: string; isOver?: () => boolean } = {},
) =>
  readHeavy(bytesOf(text), {
    server: more.server ?? "docs",
    batches: false,
    asked: new Map([["7", more.method ?? "tools/call"]]),
    onNote: () => undefined,
    isOver: more.isOver ?? (() => false),
    thread,
  });

const resultOf = (incoming: Incoming): CallToolResult => {
  if (incoming.kind !== "messages") throw new Error(JSON.stringify(incoming));
  return (incoming.messages[0] as unknown as { result: CallToolResult }).result;
};

const saved: { bytes: number; label: string }[] = [];
const options: ResultOptions = {
  server: "docs",
  tool: "search",
  durationMs: 1,
  guard: { maxBytes: 50_000, maxLines: 2_000 },
  toon: false,
  wantsStructured: false,
  redact: (text) => text,
  secrets: { values: ["the-secret-key"], named: [] },
  readResource: (uri) => (uri === "x:1" ? "Read it with the tool docs_read." : undefined),
  store: {
    save: async (parts, label) => {
      const bytes = parts.reduce((all, part) => all + Buffer.byteLength(part), 0);
      saved.push({ bytes, label });
      return { path: "/stored", bytes };
    },
  },
};
const shape = async (result: CallToolResult) => {
  const { bytes, isError, sizes } = await shapeAnywhere(result, options);
  const { content } = decode(bytes) as { content: { text: string }[] };
  return { text: content.map(({ text }) => text).join("\n"), isError, sizes };
};

test("a long result -> nothing of it here, until it is shaped there and stored here", async () => {
  const result = resultOf(await read(kept, answer(said(`first ${TEXT} last`))));
  expect(heldIn(result)).toBeDefined();
  expect(JSON.stringify({ ...result, held: 0 })).toBe('{"held":0}');
  const { text, isError, sizes } = await shape(result);
  expect(text).toMatch(/^first x+\n\[\.\.\. .* bytes .* left out here\. Full text: \/stored\]\nx+ last$/);
  expect(isError).toBe(false);
  expect(sizes?.received).toBe(TEXT.length + 11);
  expect(saved.at(-1)).toEqual({ bytes: TEXT.length + 11, label: "docs-search" });
});

/** ASCII, characters of two, three and four bytes, a half of a pair, and what JSON writes as escapes. */
const MIXED = 'a"\\\n\u0000 \u00e9 \u20ac \u{1f600} \ud83d '.repeat(20_000);

test("two files of a long result, the first in the memory of the message -> the bytes of each", async () => {
  const files: Buffer[] = [];
  const store: ResultOptions["store"] = {
    save: async (parts) => {
      files.push(Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array))));
      return { path: `/stored-${files.length}`, bytes: 0 };
    },
  };
  const audio = Buffer.alloc(100_000, 7);
  const blocks = [
    { type: "audio", mimeType: "audio/wav", data: audio.toString("base64") },
    { type: "text", text: MIXED },
    { type: "text", text: "end" },
  ];
  const result = resultOf(await read(kept, answer(JSON.stringify({ content: blocks }))));
  await shapeAnywhere(result, { ...options, store });
  expect(files[0]?.equals(audio)).toBe(true);
  expect(files[1]?.toString()).toBe(
    `[Audio content: audio/wav] Saved to /stored-1 (audio/wav, 97.7 KB).\n${MIXED.toWellFormed()}\nend`,
  );
});

test.each([
  ["enough", 10, true],
  ["one byte too little", 3, false],
  ["none", -99, false],
])("parts of a file, and room for them: %s -> the same bytes", (_, spare, fits) => {
  const parts = ["\u20ac".repeat(100_000), Buffer.from("bytes"), "\u00e9", "\n", "x".repeat(70_000)];
  const whole = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  const room = new ArrayBuffer(whole.length + spare);
  const bytes = inBytes(parts, room);
  expect(Buffer.concat(bytes).equals(whole)).toBe(true);
  expect(bytes.some(({ buffer }) => buffer === room)).toBe(fits);
});

test("links and secrets of a long result -> a sentence of this thread, no secret", async () => {
  const long = `{"isError":true,"content":[{"type":"resource_link","uri":"x:1","name":"n"},{"type":"text","text":"the-secret-key"},{"type":"text","text":"${TEXT}"}]}`;
  const { text, isError } = await shape(resultOf(await read(kept, answer(long))));
  expect(isError).toBe(true);
  expect(text).toContain("Read it with the tool docs_read.");
  expect(text).not.toContain("the-secret-key");
});

test("a long prompt and a long resource -> shaped as such", async () => {
  const thread = kept;
  const prompt = `{"messages":[{"role":"assistant","content":{"type":"text","text":"hello"}},{"role":"user","content":{"type":"text","text":"${TEXT}"}}]}`;
  const told = resultOf(await read(thread, answer(prompt), { method: "prompts/get" }));
  expect((await shape(asToolResult("prompt", told))).text).toMatch(/^\[assistant\]\nhello\n\[user\]\nx/);
  const resource = `{"contents":[{"uri":"x:2","text":"${TEXT}"}]}`;
  const found = resultOf(await read(thread, answer(resource), { method: "resources/read" }));
  expect((await shape(asToolResult("resource", found))).text).toMatch(/^\[Resource: x:2\]\nx/);
});

test("a message that takes too long -> it alone is refused, with its request; those that wait are read", async () => {
  const thread = open(SHORT);
  const poison = read(thread, answer(`{"structuredContent":${KEYS}}`), { server: "bad" });
  const others = [1, 2, 3].map(() => read(thread, answer(`"${TEXT}"`), { method: "ping" }));
  const refused = await poison;
  if (refused.kind !== "refused") {
    // Read in time, and too long to shape.
    await expect(shape(resultOf(refused))).rejects.toMatchObject({
      code: "message_too_large",
      data: { server: "docs" },
    });
  } else {
    expect(refused).toMatchObject({
      id: 7,
      error: { message: expect.stringMatching(/^one message of 9 MiB that takes more than 2 s to read$/) },
    });
  }
  expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(["messages", "messages", "messages"]);
});

test("a result that waits to be shaped -> the message of another server waits behind it", async () => {
  const thread = open(SHORT);
  const mine = read(thread, answer(said(TEXT)));
  const poison = read(thread, answer(`{"structuredContent":${KEYS}}`), { server: "bad" });
  const { text } = await shape(resultOf(await mine));
  expect(text).toMatch(/^x+\n/);
  await poison;
});

test("a result that nobody shapes -> delays the others, and no more", async () => {
  const thread = kept;
  expect(heldIn(resultOf(await read(thread, answer(said(TEXT)))))).toBeDefined();
  const { text } = await shape(resultOf(await read(thread, answer(said(`next ${TEXT}`)))));
  expect(text).toMatch(/^next /);
});

test("many messages of one server before one of another -> the other one is read next but one", async () => {
  const thread = kept;
  const order: string[] = [];
  const one = (server: string, text: string) =>
    read(thread, answer(text), { server, method: "ping" }).then(() => order.push(server));
  // The thread knows how much time a server has taken by its name.
  await one("greedy", `"${TEXT.repeat(30)}"`);
  const greedy = Array.from({ length: 5 }, () => one("greedy", `"${TEXT.repeat(10)}"`));
  await Promise.all([...greedy, one("modest", `"${TEXT}"`)]);
  expect(order.slice(0, 3)).toEqual(["greedy", "greedy", "modest"]);
});

test("a connection that is closed while its message waits -> the message is not read", async () => {
  const thread = kept;
  let isOver = false;
  const first = read(thread, answer(`"${TEXT}"`), { method: "ping" });
  const second = read(thread, answer(`"${TEXT}"`), { method: "ping", isOver: () => isOver });
  isOver = true;
  expect((await first).kind).toBe("messages");
  expect(await second).toMatchObject({
    kind: "refused",
    error: { message: expect.stringContaining("the connection was closed") },
  });
});

test("the thread is ended for its rest -> the next message starts another one", async () => {
  const thread = open({ workMs: 60_000, idleMs: 1 });
  for (let i = 0; i < 3; i++) {
    expect((await read(thread, answer(`"${TEXT}"`), { method: "ping" })).kind).toBe("messages");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

test("a folder for compiled code -> the thread leaves there what the next one finds", async () => {
  const folder = await tempFolder();
  compileHeavyIn(folder);
  try {
    const thread = open(LONG);
    expect((await read(thread, answer(`"${TEXT}"`), { method: "ping" })).kind).toBe("messages");
    thread.close();
    await vi.waitFor(
      async () => expect(await readdir(folder, { recursive: true })).not.toHaveLength(0),
      PATIENCE_MS,
    );
  } finally {
    compileHeavyIn(undefined);
  }
});
