/** Owns: prompts of servers for the model (MCP 2025-11-25, client/sampling): what is sent, what is refused, what the server gets. */
import { describe, expect, test } from "vitest";
import type { PromptAnswer } from "../../../../../src/shared/protocol/calls.ts";
import { SessionAsks } from "../../../../../workers/connection/asks/asks.ts";
import { DECLINES, WAITING } from "../../../../../workers/connection/asks/limits.ts";
import { readPrompt, replyOf } from "../../../../../workers/connection/asks/prompt.ts";
import { recordingUser } from "../../../../support/recording-user.ts";

const text = (words: string): object => ({ type: "text", text: words });
const said = (content: unknown, role: unknown = "user"): object => ({ role, content });
const ONE = { messages: [said(text("Hi?"))], maxTokens: 100 };
const ANSWER: PromptAnswer = {
  action: "accept",
  text: "Hello. Bye.",
  isCut: false,
  use: { model: "m-1", tokens: { read: 3, written: 4 } },
};
const redact = (words: string): string => words.replaceAll("s3cret", "***");

describe("a prompt", () => {
  test.each<[string, object, unknown]>([
    ["one message", ONE, { messages: [{ role: "user", text: "Hi?" }], maxTokens: 100 }],
    [
      "several blocks and roles, a system prompt, a temperature",
      {
        messages: [said([text("a"), text("b")]), said(text("c"), "assistant")],
        systemPrompt: "Be kind.",
        temperature: 0.5,
        maxTokens: 1.9,
      },
      {
        system: "Be kind.",
        messages: [
          { role: "user", text: "a\nb" },
          { role: "assistant", text: "c" },
        ],
        maxTokens: 1,
        temperature: 0.5,
      },
    ],
    [
      "more tokens than anyone may have -> the most",
      { ...ONE, maxTokens: 1e9 },
      { messages: [{ role: "user", text: "Hi?" }], maxTokens: 4_096 },
    ],
    [
      "no number of tokens, odd options, wishes for models and context -> left out",
      {
        messages: [said(text("Hi?"))],
        maxTokens: "many",
        temperature: 7,
        systemPrompt: "",
        modelPreferences: { hints: [{ name: "huge" }] },
        includeContext: "allServers",
        metadata: { a: 1 },
      },
      { messages: [{ role: "user", text: "Hi?" }], maxTokens: 4_096 },
    ],
    [
      "hidden characters and secrets -> cleaned, as everything that a model reads",
      { ...ONE, systemPrompt: "s3cret\u001b[2J", messages: [said(text("a\u202eb\u{e0041}s3cret\r\nc"))] },
      { system: "***", messages: [{ role: "user", text: "ab***\nc" }], maxTokens: 100 },
    ],
    [
      "a secret in pieces that the cleaning would join -> redacted all the same",
      { ...ONE, messages: [said(text("s3\u200bcret")), said(text("s3c\u001b[1mret"))] },
      {
        messages: [
          { role: "user", text: "***" },
          { role: "user", text: "***" },
        ],
        maxTokens: 100,
      },
    ],
    [
      "a system prompt that nobody sees -> none",
      { ...ONE, systemPrompt: "\u{e0041}\u200b" },
      { messages: [{ role: "user", text: "Hi?" }], maxTokens: 100 },
    ],
  ])("%s", (_what, params, prompt) => {
    expect(readPrompt(params, redact).prompt).toEqual(prompt);
  });

  test.each<[string, unknown, string]>([
    ["nothing", undefined, "no content"],
    ["a list", [], "no content"],
    ["no messages", {}, "there is no message"],
    ["empty messages", { messages: [] }, "there is no message"],
    ["101 messages", { messages: Array.from({ length: 101 }, () => said(text(""))) }, "more than 100"],
    ["a message of nothing", { messages: [null] }, "unknown role"],
    ["a role of the system", { messages: [said(text("x"), "system")] }, "unknown role"],
    [
      "an image",
      { messages: [said({ type: "image", data: "aaaa", mimeType: "image/png" })] },
      "other than text",
    ],
    ["a result of a tool", { messages: [said([text("x"), { type: "tool_result" }])] }, "other than text"],
    ["text that is none", { messages: [said({ type: "text", text: 7 })] }, "other than text"],
    ["a system prompt that is none", { ...ONE, systemPrompt: {} }, "system prompt is not a text"],
    ["tools", { ...ONE, tools: [] }, "no tools"],
    // Pi leaves such a message out: the model would read other messages than the person.
    ["a message without text", { messages: [said(text("x")), said(text(" \n"))] }, "a message has no text"],
    ["one that nobody sees", { messages: [said(text("\u{e0041}\u3164"))] }, "a message has no text"],
    ["a long message", { messages: [said(text("x".repeat(50_001)))] }, "50,001 characters, more than 50,000"],
    [
      "many messages that are long together",
      { systemPrompt: "x", messages: Array.from({ length: 50 }, () => said(text("x".repeat(1_000)))) },
      "50,001 characters",
    ],
  ])("%s -> refused whole, as invalid params", (_what, params, words) => {
    const read = (): unknown => readPrompt(params, redact);
    expect(read).toThrow(words);
    expect(read).toThrow(expect.objectContaining({ name: "NoReply", code: -32_602 }));
  });
});

describe("the result", () => {
  test.each<[string, Partial<PromptAnswer>, string[], string, string]>([
    ["an answer", {}, [], "Hello. Bye.", "endTurn"],
    ["one that the tokens cut", { isCut: true }, [], "Hello. Bye.", "maxTokens"],
    ["one with two stops -> until the first", {}, ["Bye", "."], "Hello", "stopSequence"],
    ["one without its stop", {}, ["#"], "Hello. Bye.", "endTurn"],
    ["one without end", { text: "x".repeat(200_000) }, [], "x".repeat(100_000), "maxTokens"],
  ])("%s", (_what, more, stops, words, stopReason) => {
    expect(replyOf({ ...ANSWER, ...more } as PromptAnswer, { stops })).toEqual({
      role: "assistant",
      content: { type: "text", text: words },
      model: "m-1",
      stopReason,
    });
  });

  test("stops of any shape -> at most 16 short texts", () => {
    const many = Array.from({ length: 30 }, (_, at) => `stop ${at}`);
    expect(readPrompt({ ...ONE, stopSequences: many }, redact).stops).toHaveLength(16);
    expect(readPrompt({ ...ONE, stopSequences: [1, "", "x".repeat(201), "ok"] }, redact).stops).toEqual([
      "ok",
    ]);
    expect(readPrompt({ ...ONE, stopSequences: "." }, redact).stops).toEqual([]);
  });

  test.each([
    ["decline", -1, "User rejected sampling request"],
    ["cancel", -1, "User rejected sampling request"],
    ["failed", -32_603, "The model gave no answer."],
  ] as const)("%s -> an error", (action, code, message) => {
    expect(() => replyOf({ action }, { stops: [] })).toThrow(expect.objectContaining({ code, message }));
  });
});

function serverWith(may = { ask: false, sample: true }) {
  const user = recordingUser();
  const notes: string[] = [];
  const openPage = async () => "none" as const;
  const asks = new SessionAsks({ askUser: user.ask, emit: () => undefined, openPage });
  const server = asks.of({ name: "docs", redact, onNote: (note) => notes.push(note), may });
  return { asks, server, user, notes };
}
const never = new AbortController().signal;

describe("a server that has a prompt", () => {
  test("the person and the model answer -> the result, and the log says what it cost", async () => {
    const { server, user, notes } = serverWith();
    const result = server?.sample(ONE, never);
    expect(server?.isOpen).toBe(true);
    expect(user.asked[0]?.question).toEqual({
      about: "prompt",
      server: "docs",
      prompt: { messages: [{ role: "user", text: "Hi?" }], maxTokens: 100 },
    });
    user.asked[0]?.answer(ANSWER);
    expect(await result).toMatchObject({ content: { text: "Hello. Bye." } });
    expect(notes).toEqual(["got an answer of m-1, which read 3 tokens and wrote 4"]);
    expect(server?.isOpen).toBe(false);
  });

  test("the person keeps the answer -> an error, and the log says what it cost all the same", async () => {
    const { server, user, notes } = serverWith();
    const result = server?.sample(ONE, never);
    user.asked[0]?.answer({ action: "decline", use: ANSWER.use });
    await expect(result).rejects.toMatchObject({ code: -1 });
    expect(notes).toEqual(["did not get an answer of m-1, which read 3 tokens and wrote 4"]);
  });

  test("nobody answers, and the request is taken back -> an error, and nothing is left open", async () => {
    const { server, user } = serverWith();
    const nobody = server?.sample(ONE, never);
    user.asked[0]?.answer(undefined);
    await expect(nobody).rejects.toMatchObject({ code: -1 });
    const gone = new AbortController();
    const taken = server?.sample(ONE, gone.signal);
    gone.abort();
    await expect(taken).rejects.toMatchObject({ code: -1 });
    expect(user.asked.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    expect(server?.isOpen).toBe(false);
  });

  test("it nags -> refused unseen until the turn ends; a model that fails is no no", async () => {
    const { asks, server, user, notes } = serverWith();
    const answered = async (answer: PromptAnswer) => {
      const result = server?.sample(ONE, never);
      user.asked.at(-1)?.answer(answer);
      await expect(result).rejects.toThrow();
    };
    for (let asked = 0; asked < 2 * DECLINES; asked++) await answered({ action: "failed" });
    for (let asked = 0; asked < DECLINES; asked++) await answered({ action: "decline" });
    const shown = user.asked.length;
    await expect(server?.sample(ONE, never)).rejects.toMatchObject({ code: -1 });
    expect(user.asked).toHaveLength(shown);
    expect(notes).toEqual(["asks the user again and again, and is declined unseen until the turn ends"]);
    asks.turnEnded();
    void server?.sample(ONE, never).catch(() => undefined);
    expect(user.asked).toHaveLength(shown + 1);
  });

  test("many at once -> one is shown, a few wait, the others are refused", async () => {
    const { server, user } = serverWith();
    const all = Array.from({ length: 20 }, () => server?.sample(ONE, never).catch((error: unknown) => error));
    expect(user.asked).toHaveLength(1);
    const refused = await Promise.all(all.slice(WAITING + 1));
    expect(refused).toHaveLength(20 - 1 - WAITING);
    for (const error of refused) expect(error).toMatchObject({ code: -1 });
  });

  test("it may not ask the person -> an address that it requires is not shown", async () => {
    const { server, user } = serverWith();
    const elicitations = [{ mode: "url", message: "m", url: "https://example.com" }];
    expect(await server?.required({ elicitations }, never)).toBe("none");
    expect(user.asked).toEqual([]);
  });
});

test.each([
  [{ ask: true, sample: false }, true],
  [{ ask: false, sample: true }, true],
  [{ ask: false, sample: false }, false],
])("may %j -> it has questions: %j", (may, has) => {
  expect(serverWith(may).server?.may).toEqual(has ? may : undefined);
});
