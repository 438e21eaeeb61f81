/**
 * Owns: how the user is asked whether a tool may run: what each dialog shows and offers, one at a time, and gone as soon
 * as nobody waits for the answer.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ApprovalQuestion } from "../../../../src/shared/protocol/calls.ts";
import { createDialogs } from "../../../../src/ui/dialogs/dialogs.ts";
import { choose } from "../../../../src/ui/setup/dialog.ts";
import { tickLines } from "../../../../src/ui/ticks.ts";
import { takesKeys } from "../../../../src/ui/typing.ts";
import { createRecordingContext, type RecordingOptions } from "../../recording-context.ts";
import { settled } from "../../settled.ts";
import { nothingTyped } from "../typed.ts";

const SERVER = "Allow all tools of this server for this session";
const ALL = ["Allow once", "Allow this tool for this session", SERVER, "Always allow this tool", "No"];
const WHOLE = "Show all arguments";

const question = (over: Partial<ApprovalQuestion> = {}): ApprovalQuestion => ({
  server: "github",
  tool: "delete_repo",
  args: 'owner: "me"\nname: "mine"',
  canAlways: true,
  call: { server: "github", tool: "delete_repo", args: {} },
  ...over,
});
const LONG = `content: "${"x".repeat(3_000)}"\ntarget: "/etc/passwd"`;

/** `choose` gets the title and the choices of each dialog; undefined leaves the dialog open. */
function setup(
  choose: (title: string, choices: readonly string[]) => string | undefined | Promise<string | undefined>,
  options: RecordingOptions = {},
) {
  const answered: [id: string, answer: unknown][] = [];
  const failures: string[] = [];
  let isOver = false;
  const { ctx, dialogs, isTaken } = createRecordingContext({
    select: (title) => choose(title, dialogs.at(-1)?.options ?? []),
    ...options,
  });
  const asking = createDialogs(ctx, {
    tick: tickLines,
    skill: async () => "no" as const,
    consent: async () => undefined,
    applyHeld: async () => undefined,
    over: () => isOver,
    failed: (error) => void failures.push(String(error)),
  });
  const shown = new Map<string, AbortController>();
  /** Asks, or takes the question of this id away. */
  const send = (id: string, asked?: ApprovalQuestion): void => {
    shown.get(id)?.abort();
    if (!asked) return;
    const controller = new AbortController();
    shown.set(id, controller);
    void asking.ask({ about: "call", callId: "1", ...asked }, controller.signal).then((answer) => {
      if (answer !== undefined) answered.push([id, answer]);
    });
  };
  return {
    asking,
    dialogs,
    ctx,
    isTaken,
    answered,
    failures,
    send,
    end: () => {
      isOver = true;
    },
  };
}

const open = (): Promise<undefined> => new Promise(() => undefined);

describe("what the dialog shows", () => {
  test.each([
    ["Allow once", "once"],
    ["Allow this tool for this session", "session"],
    [SERVER, "server"],
    ["Always allow this tool", "always"],
    ["No", "no"],
    [undefined, "no"],
    ["Allow everything", "no"],
  ])("%s -> %s", async (choice, answer) => {
    const at = setup(() => choice);
    at.send("1", question());
    await settled();
    expect(at.dialogs).toMatchObject([
      { title: 'Run delete_repo of the MCP server github?\nowner: "me"\nname: "mine"', options: ALL },
    ]);
    expect(at.answered).toEqual([["1", answer]]);
  });

  test("no rule could be written -> always is not offered, and not taken from another program", async () => {
    const at = setup(() => "Always allow this tool");
    at.send("1", question({ canAlways: false, args: "" }));
    await settled();
    expect(at.dialogs).toMatchObject([
      {
        title: "Run delete_repo of the MCP server github?\nIt gets no arguments.",
        options: ["Allow once", "Allow this tool for this session", SERVER, "No"],
      },
    ]);
    expect(at.answered).toEqual([["1", "no"]]);
  });

  test("the server wants a yes for each call -> no answer that lasts is offered or taken", async () => {
    const at = setup(() => "Allow this tool for this session");
    at.send("1", question({ canAlways: false, onceOnly: true }));
    await settled();
    expect(at.dialogs).toMatchObject([{ options: ["Allow once", "No"] }]);
    expect(at.answered).toEqual([["1", "no"]]);
  });

  test("a long argument -> the start of each argument, and all of them page by page on demand", async () => {
    const at = setup((_, choices) =>
      [WHOLE, "Next page", "Allow once"].find((choice) => choices.includes(choice)),
    );
    at.send("1", question({ args: LONG }));
    await settled();
    const [first, ...pages] = at.dialogs;
    expect(first?.options).toEqual([...ALL, WHOLE]);
    const lines = first?.title.split("\n") ?? [];
    expect(lines.map((line) => line.length <= 78)).toEqual([true, true, true]);
    expect(lines[1]).toMatch(/^content: "x+…$/);
    expect(lines[2]).toBe('target: "/etc/passwd"');
    expect(pages.map(({ title }) => title.slice(title.indexOf("\n") + 1)).join("")).toBe(LONG);
    expect(pages[0]?.title).toMatch(
      new RegExp(`^Run delete_repo of the MCP server github\\? Page 1 of ${pages.length}:\n`),
    );
    expect(pages[0]?.options).toEqual(["Next page", "No", "Previous page"]);
    // Enter has turned the pages, so the first choice of the last page lets nothing run.
    expect(pages.at(-1)?.options).toEqual(["No", ...ALL.slice(0, -1), "Previous page"]);
    expect(at.answered).toEqual([["1", "once"]]);
  });

  test("while one types, or a screen of ours takes the keys -> No comes first", async () => {
    nothingTyped();
    const first = async (options: RecordingOptions): Promise<unknown> => {
      const at = setup(() => "No", options);
      at.send("1", question());
      await settled();
      return at.dialogs[0]?.options?.[0];
    };
    expect(await first({ mode: "tui" })).toBe("Allow once");
    expect(await first({ mode: "tui", editorText: "fix the" })).toBe("No");
    const ended = takesKeys();
    expect(await first({ mode: "tui" })).toBe("No");
    // Over RPC another program draws the dialog.
    expect(await first({ editorText: "fix the" })).toBe("Allow once");
    ended();
    expect(await first({ mode: "tui" })).toBe("Allow once");
    const { promise, resolve } = Promise.withResolvers<string>();
    const { ctx } = createRecordingContext({ mode: "tui", select: () => promise });
    const chosen = choose(ctx, "Add it?", ["Test it, then add it", "Cancel"]);
    expect(await first({ mode: "tui" })).toBe("No");
    resolve("Cancel");
    expect(await chosen).toBe("Cancel");
    expect(await first({ mode: "tui" })).toBe("Allow once");
  });

  test("lines to tick that are taken away hand no key to the question behind them", async () => {
    nothingTyped();
    const at = setup(open, { mode: "tui" });
    const ended = new AbortController();
    const ticks = {
      title: "Which?",
      rows: ["one"],
      ticked: [false],
      done: () => "Done",
      signal: ended.signal,
    };
    void at.asking.inTurn(() => tickLines(at.ctx, ticks));
    at.send("1", question());
    await settled();
    expect(at.dialogs).toEqual([]);
    ended.abort();
    await settled();
    expect(at.dialogs.map(({ options }) => options?.[0])).toEqual(["No"]);
    expect(at.isTaken("\r")).toBe(true);
    nothingTyped();
  });

  test("a question that is taken away hands no key to the one behind it", async () => {
    nothingTyped();
    const at = setup(open, { mode: "tui" });
    at.send("1", question());
    await settled();
    at.send("2", question({ tool: "list" }));
    expect(at.dialogs.map(({ options }) => options?.[0])).toEqual(["Allow once"]);
    at.send("1");
    await settled();
    expect(at.dialogs.map(({ options }) => options?.[0])).toEqual(["Allow once", "No"]);
    expect(at.isTaken("\r")).toBe(true);
    // A moment later the keys are the next question's.
    at.send("2");
    nothingTyped();
    at.send("3", question());
    await settled();
    expect(at.dialogs.at(-1)?.options?.[0]).toBe("Allow once");
  });

  test("keys that were on their way to another text are not the dialog's, until a pause", async () => {
    nothingTyped();
    const clock = vi.spyOn(performance, "now");
    onTestFinished(() => clock.mockRestore());
    let now = 1_000;
    clock.mockImplementation(() => now);
    const { promise, resolve } = Promise.withResolvers<string>();
    const at = setup(() => promise, { mode: "tui", editorText: "fix the" });
    at.send("1", question());
    await settled();
    expect(at.isTaken("j")).toBe(true);
    now += 500;
    expect(at.isTaken("\r")).toBe(true);
    now += 599;
    expect(at.isTaken("j")).toBe(true);
    now += 600;
    expect(at.isTaken("\r")).toBe(false);
    expect(at.isTaken("\r")).toBe(false);
    resolve("No");
    await settled();
    expect(at.answered).toEqual([["1", "no"]]);
    // Nobody types: its keys are its own from the start.
    now += 600;
    const calm = setup(open, { mode: "tui" });
    calm.send("1", question());
    await settled();
    expect(calm.isTaken("\r")).toBe(false);
  });

  test("a question behind an answer takes no key of that answer until a pause, and keeps its first choice", async () => {
    nothingTyped();
    const clock = vi.spyOn(performance, "now");
    onTestFinished(() => {
      clock.mockRestore();
      nothingTyped();
    });
    let now = 1_000;
    clock.mockImplementation(() => now);
    let first = Promise.withResolvers<string | undefined>();
    const at = setup(() => first.promise, { mode: "tui" });
    at.send("1", question());
    at.send("2", question({ tool: "other" }));
    await settled();
    expect(at.isTaken("\r")).toBe(false);
    const answer = first;
    first = Promise.withResolvers();
    answer.resolve("Allow once");
    await settled();
    expect(at.dialogs.map(({ options }) => options?.[0])).toEqual(["Allow once", "Allow once"]);
    // Who refuses each of them lets nothing happen.
    expect([at.isTaken("\u001b"), at.isTaken("\u0003")]).toEqual([false, false]);
    // The key is held down.
    for (let held = 0; held < 30; held++) {
      now += 30;
      expect(at.isTaken("\r")).toBe(true);
    }
    now += 600;
    expect(at.isTaken("\r")).toBe(false);
    first.resolve("Allow once");
    await settled();
    // Whoever was asked a while ago, or over RPC, is not kept waiting.
    now += 600;
    first = Promise.withResolvers();
    at.send("3", question());
    await settled();
    expect(at.isTaken("\r")).toBe(false);
    first.resolve("No");
    await settled();
    const rpc = setup(open);
    rpc.send("1", question());
    await settled();
    expect(rpc.isTaken("\r")).toBe(false);
  });

  test.each([
    [
      "a consent",
      (at: ReturnType<typeof setup>) => at.asking.consents([{ server: "a", hash: "a", question: "a: x" }]),
    ],
    ["a held edit", (at: ReturnType<typeof setup>) => at.asking.held("1", "one server")],
  ])("a question behind the answer to %s takes no key of that answer", async (_what, ask) => {
    nothingTyped();
    const clock = vi.spyOn(performance, "now").mockReturnValue(1_000);
    onTestFinished(() => {
      clock.mockRestore();
      nothingTyped();
    });
    const first = Promise.withResolvers<string | undefined>();
    const at = setup((title) => (title.startsWith("Run ") ? open() : first.promise), { mode: "tui" });
    ask(at);
    await settled();
    at.send("1", question());
    first.resolve("Not now");
    await settled();
    expect(at.dialogs.map(({ title }) => title.slice(0, 4))).toEqual([expect.anything(), "Run "]);
    expect(at.isTaken("\r")).toBe(true);
  });

  test("Enter on every page -> no", async () => {
    const at = setup((_, choices) => (choices.includes(WHOLE) ? WHOLE : choices[0]));
    at.send("1", question({ args: LONG }));
    await settled();
    expect(at.answered).toEqual([["1", "no"]]);
  });

  test("back from the first page -> the short view again", async () => {
    const script = [WHOLE, "Previous page", "No"];
    const at = setup(() => script.shift());
    at.send("1", question({ args: LONG }));
    await settled();
    expect(at.dialogs[2]?.title).toBe(at.dialogs[0]?.title);
  });

  test("many arguments -> those that are left out are counted", async () => {
    const at = setup(() => "No");
    at.send("1", question({ args: Array.from({ length: 50 }, (_, i) => `a${i}: ${i}`).join("\n") }));
    await settled();
    const lines = at.dialogs[0]?.title.split("\n") ?? [];
    expect(lines.at(-1)).toBe(`and ${50 - (lines.length - 2)} more lines`);
    expect(at.dialogs[0]?.options).toContain(WHOLE);
  });
});

describe("several questions", () => {
  test("one at a time, in order", async () => {
    let first = Promise.withResolvers<string | undefined>();
    const at = setup(() => first.promise);
    at.send("1", question());
    at.send("2", question({ tool: "other" }));
    await settled();
    expect(at.dialogs).toHaveLength(1);
    const answer = first;
    first = Promise.withResolvers();
    answer.resolve("Allow once");
    await settled();
    expect([at.dialogs.length, at.answered]).toEqual([2, [["1", "once"]]]);
    first.resolve("No");
    await settled();
    expect(at.answered[1]).toEqual(["2", "no"]);
  });

  test("the open one is taken away -> its dialog closes without an answer, and the next one is asked", async () => {
    const at = setup(open);
    at.send("1", question());
    at.send("2", question());
    await settled();
    at.send("1");
    await settled();
    expect([at.dialogs.length, at.answered]).toEqual([2, []]);
  });

  test("one is taken away before its turn -> never shown", async () => {
    const first = Promise.withResolvers<string | undefined>();
    const at = setup(() => first.promise);
    at.send("1", question());
    at.send("2", question());
    at.send("2");
    await settled();
    first.resolve("No");
    await settled();
    expect([at.dialogs.length, at.answered]).toEqual([1, [["1", "no"]]]);
  });
});

test("the session is over -> nothing is asked and nothing answered", async () => {
  const first = Promise.withResolvers<string | undefined>();
  const at = setup(() => first.promise);
  at.send("1", question());
  at.send("2", question());
  await settled();
  at.end();
  first.resolve("Allow once");
  await settled();
  expect([at.dialogs.length, at.answered]).toEqual([1, []]);
});

test("Pi cannot show the dialog -> told, and nobody has answered", async () => {
  const at = setup(() => Promise.reject(new Error("no terminal")));
  at.send("1", question());
  await settled();
  expect([at.failures, at.answered]).toEqual([["Error: no terminal"], []]);
});
