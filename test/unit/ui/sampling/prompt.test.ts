/** Owns: the dialogs of a server's prompt for the model, and what the model is sent. */
import { expect, test } from "vitest";
import type { ModelMessage, PiModel } from "../../../../src/pi/api.ts";
import type { ServerPrompt } from "../../../../src/shared/protocol/calls.ts";
import { answerPrompt } from "../../../../src/ui/sampling/prompt.ts";
import { createRecordingContext, type RecordingOptions } from "../../recording-context.ts";

const MODEL: PiModel = {
  id: "m-1",
  api: "openai-completions",
  provider: "acme",
  maxTokens: 1_000,
  reasoning: false,
};
const COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const USAGE = { input: 5, output: 7, cacheRead: 2, cacheWrite: 1, totalTokens: 15, cost: COST };
const REPLY: ModelMessage = {
  content: [{ type: "thinking" }, { type: "text", text: "Blue" }, { type: "text", text: "." }],
  model: "m-1-2026",
  usage: USAGE,
  stopReason: "stop",
};
/** What that costs: what is read from a cache, and written into one, is read. */
const USE = { model: "m-1-2026", tokens: { read: 8, written: 7 } };
const PROMPT: ServerPrompt = {
  system: "Be\nkind.",
  messages: [
    { role: "user", text: "Colour?" },
    { role: "assistant", text: "Which?" },
    { role: "user", text: "Sky." },
  ],
  maxTokens: 4_096,
  temperature: 0.2,
};
const SEND = "Send it";
const REVIEW = "Send it, and show me the answer before the server gets it";

interface Case extends RecordingOptions {
  /** The answers to the dialogs; undefined presses Escape. */
  user: (string | undefined)[];
  reply?: ModelMessage | Error;
  prompt?: ServerPrompt;
}

async function answered({ user, reply = REPLY, prompt = PROMPT, ...options }: Case) {
  const sent: unknown[][] = [];
  const left = [...user];
  const { ctx, dialogs, notices } = createRecordingContext({
    model: MODEL,
    modelRegistry: {
      streamSimple: (...request) => {
        sent.push(request);
        return { result: async () => (reply instanceof Error ? Promise.reject(reply) : reply) };
      },
    },
    select: () => left.shift(),
    ...options,
  });
  const controller = new AbortController();
  const { signal } = controller;
  let turns = 0;
  const inTurn = async <T>(task: () => Promise<T>): Promise<T> => {
    turns++;
    return task();
  };
  const answer = await answerPrompt(ctx, { server: "docs", prompt }, { signal, inTurn });
  return { answer, sent, dialogs, notices, turns: () => turns };
}

test("a yes -> the model reads exactly what the person has read, and no more", async () => {
  const { answer, sent, dialogs, notices } = await answered({ user: [SEND] });
  expect(dialogs).toEqual([
    {
      method: "select",
      title: [
        "Send this of the MCP server docs to acme/m-1? The answer has at most 1,000 tokens.",
        "System prompt:\n│ Be\n│ kind.",
        "User:\n│ Colour?",
        "Assistant:\n│ Which?",
        "User:\n│ Sky.",
      ].join("\n"),
      options: [SEND, REVIEW, "No"],
    },
  ]);
  const [model, context, options] = sent[0] ?? [];
  expect(model).toBe(MODEL);
  expect(context).toMatchObject({
    systemPrompt: "Be\nkind.",
    messages: [
      { role: "user", content: [{ type: "text", text: "Colour?" }] },
      { role: "assistant", content: [{ type: "text", text: "Which?" }], model: "m-1", stopReason: "stop" },
      { role: "user", content: [{ type: "text", text: "Sky." }] },
    ],
  });
  expect(Object.keys(context as object)).toEqual(["systemPrompt", "messages"]);
  expect(options).toMatchObject({ maxTokens: 1_000, temperature: 0.2, cacheRetention: "none" });
  expect(answer).toEqual({
    action: "accept",
    text: "Blue.",
    isCut: false,
    use: USE,
  });
  expect(notices).toEqual([]);
});

test("a long prompt -> its pages are shown on demand, whole", async () => {
  const words = Array.from({ length: 400 }, (_, at) => `line ${at}`);
  const prompt = { messages: [{ role: "user" as const, text: words.join("\n") }], maxTokens: 10 };
  const pages = ["Show all of it", ...Array.from({ length: 100 }, () => "Next page")];
  const { answer, dialogs, sent } = await answered({ user: pages, prompt });
  expect(answer).toEqual({ action: "cancel" });
  expect(sent).toEqual([]);
  const shown = dialogs.map(({ title }) => title).join("\n");
  for (const line of words) expect(shown).toContain(`│ ${line}\n`.trimEnd());
});

test.each<[string, (string | undefined)[], object, number]>([
  ["No", ["No"], { action: "decline" }, 0],
  ["Escape", [undefined], { action: "cancel" }, 0],
  ["a choice that was not offered", ["Send everything"], { action: "cancel" }, 0],
  ["the answer is read and given", [REVIEW, "Give it to the server"], { action: "accept", text: "Blue." }, 1],
  ["the answer is read and kept", [REVIEW, "No"], { action: "decline", use: USE }, 1],
  ["Escape over the answer", [REVIEW, undefined], { action: "cancel", use: USE }, 1],
])("%s", async (_what, user, answer, sent) => {
  const at = await answered({ user });
  expect(at.answer).toMatchObject(answer);
  expect(at.sent).toHaveLength(sent);
  if (user[0] === REVIEW)
    expect(at.dialogs[1]?.title).toBe("Give this answer to the MCP server docs?\nm-1-2026:\n│ Blue.");
});

test.each<[string, Partial<Case>, string]>([
  [
    "the model says why",
    { reply: { ...REPLY, stopReason: "error", errorMessage: "429\u001b[2J too many" } },
    "429 too many",
  ],
  ["it ends in another way", { reply: { ...REPLY, stopReason: "toolUse" } }, "it ended with toolUse"],
  ["Pi throws", { reply: new Error("no key") }, "no key"],
])("%s -> the person is told, the server gets no reason", async (_what, more, words) => {
  const { answer, notices } = await answered({ user: [SEND], ...more });
  expect(answer).toMatchObject({ action: "failed" });
  expect(notices).toEqual([[`The MCP server docs got no answer of the model: ${words}`, "warning"]]);
});

test("no model is chosen -> nobody decided, which counts for the server that nags", async () => {
  const { answer, notices, dialogs } = await answered({ user: [], model: undefined as never });
  expect(answer).toEqual({ action: "cancel" });
  expect(dialogs).toEqual([]);
  expect(notices).toEqual([
    ["The MCP server docs got no answer of the model: no model is chosen. /model chooses one.", "warning"],
  ]);
});

test("a model that reasons -> no temperature: many refuse one, and the prompt with it", async () => {
  const { sent } = await answered({ user: [SEND], model: { ...MODEL, reasoning: true } });
  expect(sent[0]?.[2]).not.toHaveProperty("temperature");
});

test("an answer with hidden characters -> the server gets what the person reads", async () => {
  const reply = { ...REPLY, content: [{ type: "text" as const, text: "a\u001b[2Jb\u200bc\u{e0041}" }] };
  const { answer, dialogs } = await answered({ user: [REVIEW, "Give it to the server"], reply });
  expect(answer).toMatchObject({ text: "abc" });
  expect(dialogs[1]?.title).toMatch(/│ abc$/);
});

test("lines longer than the screen -> each row is behind a bar, also on the next page", async () => {
  const text = `${"word ".repeat(300)}System prompt: I am yours. ${"word ".repeat(300)}`;
  const pages = ["Show all of it", ...Array.from({ length: 100 }, () => "Next page")];
  const { dialogs } = await answered({
    user: pages,
    prompt: { messages: [{ role: "user", text }], maxTokens: 9 },
  });
  const rows = dialogs.flatMap(({ title }) => title.trimEnd().split("\n").slice(1));
  expect(rows.length).toBeGreaterThan(40);
  for (const row of rows) expect(row).toMatch(/^(│ .{0,76}|User:|and \d+ more lines)$/u);
});

test("an answer that the tokens cut says so", async () => {
  const { answer } = await answered({ user: [SEND], reply: { ...REPLY, stopReason: "length" } });
  expect(answer).toMatchObject({ action: "accept", isCut: true });
});

test("while the model works, no dialog is in its turn", async () => {
  const { turns } = await answered({ user: [REVIEW, "Give it to the server"] });
  expect(turns()).toBe(2);
});
