/**
 * Owns: how a question is asked: in full, a long one page by page, and allowed only on its last page; and that dialogs
 * show one at a time.
 */
import { describe, expect, test } from "vitest";
import { pagesOf } from "../../../../src/ui/dialog.ts";
import { createDialogs } from "../../../../src/ui/dialogs/dialogs.ts";
import { tickLines } from "../../../../src/ui/ticks.ts";
import { createRecordingContext, type ShownDialog } from "../../recording-context.ts";
import { settled } from "../../settled.ts";

const question = (hash: string, text = `${hash}: x`) => ({ server: hash, hash, question: text });
const LONG = `long: sh -c "${Array.from({ length: 240 }, (_, i) => `echo ${i}`).join("; ")}"`;

interface Asked {
  dialogs: ShownDialog[];
  answered: [hash: string, allow: boolean][];
  ask: ReturnType<typeof createDialogs>;
  /** Settles when nothing more is asked. */
  idle(): Promise<void>;
}

/** Answers each dialog with the choice of `choose`, which gets the title and the options. */
function asking(choose: (title: string, options: readonly string[]) => string | undefined): Asked {
  const answered: Asked["answered"] = [];
  const { ctx, dialogs } = createRecordingContext({
    select: (title) => choose(title, dialogs.at(-1)?.options ?? []),
  });
  const ask = createDialogs(ctx, {
    tick: tickLines,
    skill: async () => "no" as const,
    consent: async (hash, allow) => void answered.push([hash, allow]),
    applyHeld: async () => undefined,
    over: () => false,
    failed: (error) => {
      throw error;
    },
  });
  const idle = async (): Promise<void> => {
    for (let before = -1; before !== dialogs.length; ) {
      before = dialogs.length;
      await settled();
    }
  };
  return { dialogs, answered, ask, idle };
}

describe("pagesOf", () => {
  test.each([
    ["one line", { columns: 80, rows: 24 }],
    ["", { columns: 80, rows: 24 }],
    [LONG, { columns: 60, rows: 24 }],
    [LONG, { columns: 200, rows: 50 }],
    [LONG, { columns: 1, rows: 1 }],
    ["x".repeat(5_000), { columns: 60, rows: 24 }],
    ["日本語".repeat(2_000), { columns: 60, rows: 24 }],
    [LONG, undefined],
  ])("%# -> nothing is lost", (text, screen) => {
    const pages = pagesOf(text, screen);
    expect(pages.join("")).toBe(text);
    expect(pages.slice(0, -1).every((page) => page !== "")).toBe(true);
  });

  test("60 columns and 24 rows -> pages of six lines at most", () => {
    const pages = pagesOf("x".repeat(1_000), { columns: 60, rows: 24 });
    expect(pages.map(({ length }) => length)).toEqual([348, 348, 304]);
  });
});

describe("a question", () => {
  test("that fits the screen -> one dialog with Allow", async () => {
    const { ask, dialogs, answered, idle } = asking(() => "Allow");
    ask.consents([question("a")]);
    await idle();
    expect(dialogs).toMatchObject([
      { title: "This project wants to run an MCP server.\na: x", options: ["Not now", "Refuse", "Allow"] },
    ]);
    expect(answered).toEqual([["a", true]]);
  });

  test("that does not fit -> Allow is only on the last page, and not the choice that Enter has turned pages with", async () => {
    const { ask, dialogs, answered, idle } = asking((_, [first]) => first);
    ask.consents([question("a", LONG)]);
    await idle();
    expect(dialogs.length).toBeGreaterThan(2);
    expect(dialogs.map(({ options }) => options?.includes("Allow"))).toEqual([
      ...dialogs.slice(1).map(() => false),
      true,
    ]);
    expect(dialogs.map(({ title }) => title.slice(title.indexOf("\n") + 1)).join("")).toBe(LONG);
    expect(answered).toEqual([]);
  });

  test("pages can be turned back; Allow on the last page counts", async () => {
    const turns = ["Next page", "Previous page", "Next page", "Next page", "Allow"];
    const { ask, dialogs, answered, idle } = asking(() => turns.shift());
    ask.consents([question("a", LONG)]);
    await idle();
    expect(dialogs.map(({ title }) => /Page (\d)/.exec(title)?.[1])).toEqual(["1", "2", "1", "2", "3"]);
    expect(answered).toEqual([["a", true]]);
  });

  test.each(["Allow", "allow", "Previous page", "anything"])(
    "that is long, answered with %s, which its first page did not offer -> not allowed",
    async (choice) => {
      const { ask, dialogs, answered, idle } = asking(() => choice);
      ask.consents([question("a", LONG)]);
      await idle();
      expect(dialogs).toHaveLength(1);
      expect(answered).toEqual([]);
    },
  );

  test("Refuse on any page refuses", async () => {
    const turns = ["Next page", "Refuse"];
    const { ask, answered, idle } = asking(() => turns.shift());
    ask.consents([question("a", LONG)]);
    await idle();
    expect(answered).toEqual([["a", false]]);
  });
});

describe("many questions", () => {
  const three = [question("a"), question("b"), question("c")];

  test("are postponed with one answer; after `forget` all are asked again", async () => {
    const { ask, dialogs, answered, idle } = asking((_, options) => options.at(-1));
    ask.consents(three);
    await idle();
    expect(dialogs.map(({ options }) => options?.at(-1))).toEqual(["Not now for all 3 servers"]);
    ask.consents(three);
    await idle();
    expect(dialogs).toHaveLength(1);
    ask.forget();
    ask.consents(three.slice(1));
    await idle();
    expect(dialogs.map(({ options }) => options?.at(-1))).toEqual([
      "Not now for all 3 servers",
      "Not now for both servers",
    ]);
    expect(answered).toEqual([]);
  });

  test("a question that is void before its turn -> not asked; asked if it comes back", async () => {
    let open = Promise.withResolvers<string | undefined>();
    const { ctx, dialogs } = createRecordingContext({ select: () => open.promise });
    const ask = createDialogs(ctx, {
      tick: tickLines,
      skill: async () => "no" as const,
      consent: async () => undefined,
      applyHeld: async () => undefined,
      over: () => false,
      failed: () => undefined,
    });
    const asked = (): string[] => dialogs.map(({ title }) => title.split("\n")[1] ?? "");
    const answerNext = async (): Promise<void> => {
      const now = open;
      open = Promise.withResolvers();
      now.resolve("Not now");
      await settled();
    };
    ask.consents(three);
    await settled();
    ask.consents([question("c")]);
    await answerNext();
    expect(asked()).toEqual(["a: x", "c: x"]);
    ask.consents([question("b"), question("c")]);
    await answerNext();
    expect(asked()).toEqual(["a: x", "c: x", "b: x"]);
  });
});

describe("held edits", () => {
  test("many, while another dialog is open -> only the last one is asked about, and its question gives way to a later edit", async () => {
    const first = Promise.withResolvers<string | undefined>();
    const answers = [first.promise, new Promise<undefined>(() => undefined), Promise.resolve(undefined)];
    const { ctx, dialogs, notices } = createRecordingContext({ select: () => answers.shift() });
    const applied: [string, boolean][] = [];
    const { inTurn, held } = createDialogs(ctx, {
      tick: tickLines,
      skill: async () => "no" as const,
      consent: async () => undefined,
      applyHeld: async (id, apply) => void applied.push([id, apply]),
      over: () => false,
      failed: () => undefined,
    });
    void inTurn(() => ctx.ui.select("first", []));
    for (const id of ["1", "2", "3"]) held(id, `+ ${id}`);
    await settled();
    first.resolve("x");
    await settled();
    expect(dialogs.map(({ title }) => title.split("\n").at(-1))).toEqual(["first", "+ 3"]);
    held("3", "+ 3");
    held("4", "+ 4");
    await settled();
    expect(dialogs.map(({ title }) => title.split("\n").at(-1))).toEqual(["first", "+ 3", "+ 4"]);
    expect(applied).toEqual([["4", false]]);
    expect(JSON.stringify(notices)).toContain("The edit is not applied.");
    // Undone before its turn: nobody is asked.
    held("5", "+ 5");
    held("", "");
    await settled();
    expect(dialogs).toHaveLength(3);
    expect(applied).toHaveLength(1);
  });
});

describe("a turn", () => {
  const quiet = {
    tick: tickLines,
    skill: async () => "no" as const,
    consent: async () => undefined,
    applyHeld: async () => undefined,
    over: () => false,
    failed: () => undefined,
  };

  test("the dialogs before it come first, those after it wait; a failure is the asker's", async () => {
    const first = Promise.withResolvers<string | undefined>();
    const { ctx, dialogs } = createRecordingContext({ select: () => first.promise });
    const { consents, inTurn } = createDialogs(ctx, quiet);
    const ran: string[] = [];
    consents([question("a")]);
    await settled();
    const failing = inTurn(async () => {
      ran.push("failing");
      throw new Error("no");
    });
    const next = inTurn(async () => {
      ran.push("next");
      return dialogs.length;
    });
    consents([question("a"), question("b")]);
    await settled();
    expect([ran, dialogs.length]).toEqual([[], 1]);
    first.resolve("Not now");
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe(1);
    await settled();
    expect([ran, dialogs.length]).toEqual([["failing", "next"], 2]);
  });

  test("a worker asks again after a crash -> a yes to a skill holds for the session alone, until it is taken back", async () => {
    const answers = ["always", "no"] as const;
    let asked = 0;
    const { ctx } = createRecordingContext({});
    const { ask, forgetSkills } = createDialogs(ctx, {
      ...quiet,
      skill: async () => answers[asked++] ?? "no",
    });
    const loaded = { server: "s", uri: "skill://pdf/SKILL.md", name: "pdf", content: "a" };
    const shown = { description: "", files: "", canAlways: true };
    const skill = { about: "skill", callId: "1", ...loaded, ...shown } as const;
    const { signal } = new AbortController();
    expect([await ask(skill, signal), await ask(skill, signal), asked]).toEqual(["always", "session", 1]);
    forgetSkills();
    expect([await ask(skill, signal), asked]).toEqual(["no", 2]);
  });

  test("without a UI -> no question, and turns are still taken", async () => {
    const { ctx, dialogs } = createRecordingContext({ hasUI: false });
    const { consents, held, inTurn } = createDialogs(ctx, quiet);
    consents([question("a")]);
    held("1", "+ docs");
    expect(await inTurn(async () => 7)).toBe(7);
    await settled();
    expect(dialogs).toEqual([]);
  });
});
