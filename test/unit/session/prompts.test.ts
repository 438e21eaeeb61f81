/** Owns: prompts as commands within a session: which are registered, what they send, and what an unknown one becomes. */
import { describe, expect, it, test } from "vitest";
import { encode, type ResultContent } from "../../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { SnapshotPrompt } from "../../../src/shared/snapshot/contract.ts";
import { exitCodeOf } from "../exit-code.ts";
import { catalogOf, type OpenOptions, openSession } from "./support.ts";

const prompt = (command: string, more: Partial<SnapshotPrompt> = {}): SnapshotPrompt => ({
  command,
  prompt: command.replace("mcp__own__", ""),
  ...more,
});
const ASK = prompt("mcp__own__ask", {
  description: "Asks.",
  arguments: [{ name: "topic", description: "About what", required: true }, { name: "style" }],
});
const own = (...prompts: SnapshotPrompt[]) => ({ name: "own", tools: [{ tool: "work" }], prompts });

const answer = (...content: ResultContent[]) => encode({ content, isError: false, durationMs: 1 });
const HELLO: ResultContent = { type: "text", text: "Hello" };
const IMAGE: ResultContent = { type: "image", data: "AA==", mimeType: "image/png" };

const open = (options: OpenOptions = {}) =>
  openSession({
    snapshot: [own(ASK, prompt("mcp__own__plain"))],
    answers: { getPrompt: () => answer(HELLO, IMAGE) },
    ...options,
  });
type At = Awaited<ReturnType<typeof open>>;

const type = (at: At, name: string, args = "") => at.pi.commands.get(name)?.handler(args, at.ctx);
const input = (at: At, text: string, source: "interactive" | "extension" = "interactive") =>
  at.session.onInput({ text, source }, at.ctx);
const asked = (at: At): unknown =>
  at.runtimes[0]?.asked.filter(([method]) => method === "getPrompt").at(-1)?.[1];

describe("registration", () => {
  test("a session with a person -> a command for each prompt, with its description; later ones once, when a catalog brings them", async () => {
    const at = await open({ mode: "tui" });
    expect([...at.pi.commands].map(([name, { description }]) => [name, description])).toEqual([
      ["mcp__own__ask", "Asks."],
      ["mcp__own__plain", "MCP prompt"],
    ]);
    expect(at.refreshes).toHaveLength(0);
    const event = catalogOf([own(ASK, prompt("mcp__own__new"))]);
    at.send(event);
    expect(at.pi.commands.has("mcp__own__new")).toBe(false);
    at.send({ ...event, prompts: true } as typeof event);
    expect(at.pi.commands.has("mcp__own__new")).toBe(true);
    expect(at.refreshes).toHaveLength(1);
  });

  it.each(["print", "json"] as const)(
    "%s mode -> none, because Pi would end before the answer",
    async (mode) => {
      const at = await open({ mode, hasUI: false });
      expect([...at.pi.commands]).toEqual([]);
    },
  );
});

describe("a command", () => {
  test("values -> the prompt's content as a message of the user", async () => {
    const at = await open();
    await type(at, "mcp__own__ask", 'cats style="very short"');
    expect(asked(at)).toEqual({ server: "own", prompt: "ask", args: { topic: "cats", style: "very short" } });
    expect(at.pi.sent).toEqual([[[HELLO, IMAGE], undefined]]);
  });

  test("the model works -> the message follows its turn", async () => {
    const at = await open({ isIdle: () => false });
    await type(at, "mcp__own__plain");
    expect(at.pi.sent).toEqual([[[HELLO, IMAGE], { deliverAs: "followUp" }]]);
  });

  test("a required argument is missing -> asked for, with the server's name; an optional one is not", async () => {
    const at = await open({ input: () => "cats" });
    await type(at, "mcp__own__ask");
    expect(at.dialogs).toMatchObject([{ method: "input", title: "own asks for topic: About what" }]);
    expect(asked(at)).toMatchObject({ args: { topic: "cats" } });
  });

  it.each<[string, OpenOptions, string, string, string]>([
    ["the dialog is closed", { input: () => undefined }, "mcp__own__ask", "", "cancelled."],
    ["no argument is possible", {}, "mcp__own__plain", "cats", "the prompt takes no arguments."],
  ])("%s -> a notice, and nothing is sent", async (_what, options, name, args, words) => {
    const at = await open(options);
    await type(at, name, args);
    expect(at.notices).toEqual([[`/${name}: ${words}`, "warning"]]);
    expect([asked(at), at.pi.sent]).toEqual([undefined, []]);
  });

  test("the server refuses -> its error as a notice", async () => {
    const error = new ThreadsError("call_rejected", "own rejected ask: no cats.", { remedy: "Try dogs." });
    const at = await open({ answers: { getPrompt: () => Promise.reject(error) } });
    await type(at, "mcp__own__ask", "cats");
    expect(at.notices).toEqual([["/mcp__own__ask: own rejected ask: no cats. Try dogs.", "error"]]);
    expect(at.pi.sent).toEqual([]);
  });

  test("the prompt was withdrawn -> says so", async () => {
    const at = await open({ answers: { explainMissing: () => undefined } });
    at.send(catalogOf([own(ASK)]));
    await type(at, "mcp__own__plain");
    expect(at.notices).toEqual([["/mcp__own__plain: no server offers this prompt.", "warning"]]);
  });

  test("its server is off for the session -> says so, and how it comes back", async () => {
    const why = { code: "server_disabled", message: "own is switched off.", remedy: "/mcp on own." };
    const at = await open({ answers: { explainMissing: () => why } });
    at.send(catalogOf([]));
    await type(at, "mcp__own__plain");
    expect(at.notices).toEqual([["/mcp__own__plain: own is switched off. /mcp on own.", "warning"]]);
    expect(await at.pi.commands.get("mcp__own__ask")?.getArgumentCompletions?.("topic=c")).toBeNull();
  });
});

describe("an input with a command that Pi does not know", () => {
  const print = (options: OpenOptions = {}) => open({ mode: "print", hasUI: false, ...options });

  test("the prompt's text and images take its place", async () => {
    const at = await print();
    expect(await input(at, "/mcp__own__ask cats")).toEqual({
      action: "transform",
      text: "Hello",
      images: [IMAGE],
    });
    expect(asked(at)).toMatchObject({ args: { topic: "cats" } });
  });

  test("it is known only after the servers have told their prompts -> waited for", async () => {
    const at = await print({ snapshot: [] });
    at.answers.settleTools = () => {
      at.send(catalogOf([own(ASK)]));
      return [];
    };
    expect(await input(at, "/mcp__own__ask topic=cats")).toMatchObject({
      action: "transform",
      text: "Hello",
    });
  });

  test("the server's text begins with a slash -> Pi does not take it for a command", async () => {
    const at = await print({
      answers: { getPrompt: () => answer({ type: "text", text: "/skill:own secret" }) },
    });
    expect(await input(at, "/mcp__own__plain")).toMatchObject({ text: "\n/skill:own secret" });
  });

  test("no server offers it -> handled, so that it never reaches the model", async () => {
    const at = await print({ answers: { settleTools: () => [] } });
    expect(await input(at, "/mcp__own__gone x")).toEqual({ action: "handled" });
  });

  test("an argument is missing and nobody can be asked -> handled", async () => {
    const at = await print();
    const code = await exitCodeOf(async () =>
      expect(await input(at, "/mcp__own__ask")).toEqual({ action: "handled" }),
    );
    expect([code, asked(at)]).toEqual([2, undefined]);
  });

  test("the server refuses it -> handled, and Pi ends with code 1", async () => {
    const at = await print({ answers: { getPrompt: () => Promise.reject(new Error("no such topic")) } });
    const code = await exitCodeOf(async () =>
      expect(await input(at, "/mcp__own__ask cats")).toEqual({ action: "handled" }),
    );
    expect(code).toBe(1);
  });

  test("a file of the user has that name -> left to Pi", async () => {
    const at = await print({ otherCommands: [{ name: "mcp__own__ask", sourceInfo: { path: "/x" } }] });
    expect(await input(at, "/mcp__own__ask cats")).toEqual({ action: "continue" });
  });

  it.each([
    ["a text that an extension sent, which may be a server's", "/mcp__own__ask cats", "extension"],
    ["another text", "tell me of /mcp__own__ask", "interactive"],
    ["the command /mcp", "/mcp tools", "interactive"],
  ] as const)("%s -> left alone", async (_what, text, source) => {
    expect(input(await print(), text, source)).toBeUndefined();
  });
});

describe("completion", () => {
  const values = async (typed: string, suggested: string[] = []) => {
    const at = await open({ answers: { completePrompt: () => suggested } });
    const items = await at.pi.commands.get("mcp__own__ask")?.getArgumentCompletions?.(typed);
    return items?.map(({ value }) => value);
  };

  it.each<[string, string[] | undefined]>([
    ["", ["topic=", "style="]],
    ["to", ["topic="]],
    ["topic=cats ", ["topic=cats style="]],
    ["topic=cats style=short ", undefined],
    ["zz", undefined],
  ])("%j -> the names of the arguments that are missing", async (typed, expected) => {
    expect(await values(typed)).toEqual(expected);
  });

  test("beside the names -> the values of the first one, since Pi asks for nothing once a name is taken", async () => {
    const suggested = ["cats", "big dogs"];
    expect(await values("", suggested)).toEqual(["topic=", "style=", "topic=cats", 'topic="big dogs"']);
    expect(await values("topic=x st", suggested)).toEqual([
      "topic=x style=",
      "topic=x style=cats",
      'topic=x style="big dogs"',
    ]);
    expect(await values("zz", suggested)).toBeUndefined();
  });

  test("behind name= -> the server's values, quoted where they must be; none when one is complete", async () => {
    expect(await values("style=x topic=c", ["cats", 'c "d"'])).toEqual([
      "style=x topic=cats",
      'style=x topic="c \\"d\\""',
    ]);
    expect(await values("topic=cats", ["cats", "cats and dogs"])).toBeUndefined();
  });

  test("the request -> what is typed, and the other arguments as context", async () => {
    const at = await open({ answers: { completePrompt: () => [] } });
    await at.pi.commands.get("mcp__own__ask")?.getArgumentCompletions?.('style="a b" topic=c');
    expect(at.runtimes[0]?.asked.at(-1)).toEqual([
      "completePrompt",
      { server: "own", prompt: "ask", argument: "topic", value: "c", context: { style: "a b" } },
    ]);
  });

  test("the worker does not answer -> null", async () => {
    const at = await open({ answers: { completePrompt: () => Promise.reject(new Error("gone")) } });
    expect(await at.pi.commands.get("mcp__own__ask")?.getArgumentCompletions?.("topic=c")).toBeNull();
  });
});
