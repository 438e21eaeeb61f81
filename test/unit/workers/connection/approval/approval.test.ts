/** Owns: when a call waits for the user, what each answer lets run, and when a question is taken away. */

import { describe, expect, test } from "vitest";
import type { ApprovalVerdict } from "../../../../../src/shared/protocol/calls.ts";
import type { Question } from "../../../../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  Approvals,
  type AskedCall,
  shownArguments,
  shownName,
} from "../../../../../workers/connection/approval/approval.ts";
import {
  type Origin,
  parseEntry,
  type ServerDefinition,
} from "../../../../../workers/connection/config/entry/definition.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../../../../workers/connection/config/entry/settings.ts";
import { recordingUser } from "../../../../support/recording-user.ts";
import { recordingLog } from "../../recording-log.ts";
import { definitionOf, outcomeOf, settle } from "../servers/support.ts";

function setup(settings: Partial<Settings> = {}, canAsk = true) {
  const user = recordingUser();
  const always: string[] = [];
  const current = new Map<string, ServerDefinition>();
  const now = { ...DEFAULT_SETTINGS, ...settings };
  const { log, lines } = recordingLog();
  const approvals = new Approvals({
    canAsk,
    definitions: () => [...current.values()],
    toolsOf: () => ["t"],
    settings: () => now,
    askUser: user.ask,
    allowAlways: ({ tool }) => always.push(tool.name),
    allowedSkills: { has: async () => false, add: async () => undefined },
    warn: () => undefined,
    log,
  });
  return {
    approvals,
    always,
    asked: () => user.asked.map(({ question }) => question as Extract<Question, { about: "call" }>),
    lines,
    /** The call is of a server that holds now. */
    current: (call: AskedCall) => {
      current.set(call.definition.name, call.definition);
      return call;
    },
    /** Positions of the questions that were taken away. */
    gone: () => user.asked.flatMap(({ signal }, index) => (signal.aborted ? [index] : [])),
    answer: async (at: number, answer: ApprovalVerdict | undefined) => {
      user.asked[at]?.answer(answer);
      await settle();
    },
  };
}

const call = (entry: object, over: Partial<AskedCall> = {}): AskedCall => ({
  callId: "1",
  definition: definitionOf("s", entry),
  tool: { name: "t" },
  args: { a: 1 },
  signal: new AbortController().signal,
  ...over,
});

const ASKS = { approve: "always" };

const outcome = (promise: Promise<unknown> | undefined): Promise<unknown> => outcomeOf(promise, "runs");

test("no word, and a tool that reads -> nothing is asked", () => {
  const { approvals, asked } = setup();
  expect(approvals.of(call({}))).toBeUndefined();
  const reads = { name: "t", annotations: { readOnlyHint: true } };
  expect(approvals.of(call({ approve: "destructive" }, { tool: reads }))).toBeUndefined();
  expect(asked()).toEqual([]);
});

test("a question -> server, tool and arguments, and whether a rule can be written", async () => {
  const { approvals, asked } = setup();
  const waiting = approvals.of(call(ASKS));
  expect(asked()).toEqual([
    {
      about: "call",
      callId: "1",
      server: "s",
      tool: "t",
      args: "a: 1",
      canAlways: true,
      call: { server: "s", tool: "t", args: { a: 1 } },
    },
  ]);
  expect(await outcome(waiting)).toBe("waits");
});

describe("the answer", () => {
  test.each([
    ["once", "yes", "waits"],
    ["session", "yes", "runs"],
    ["server", "yes", "runs"],
    ["always", "yes", "runs"],
    ["no", "not_approved", "waits"],
  ] as const)("%s -> this call %s, the next one %s", async (answer, first, next) => {
    const at = setup();
    const waiting = at.approvals.of(call(ASKS));
    await at.answer(0, answer);
    expect(await outcome(waiting)).toBe(first);
    expect(at.always).toEqual(answer === "always" ? ["t"] : []);
    expect(await outcome(at.approvals.of(call(ASKS)))).toBe(next);
    expect(at.lines).toEqual([`info the user's answer to s/t: ${answer}`]);
  });

  test("no -> the error names the call and says what the model may do", async () => {
    const at = setup();
    const waiting = at.approvals.of(call(ASKS));
    void at.answer(0, "no");
    await expect(waiting).rejects.toMatchObject({
      code: "not_approved",
      message: "s/t was not called: the user said no.",
      remedy: "Do not call it again unless the user asks for that.",
      data: { server: "s" },
    });
  });

  test.each([undefined, "allow", { once: true }])("%j -> not allowed", async (answer) => {
    const at = setup();
    const waiting = at.approvals.of(call(ASKS));
    waiting?.catch(() => undefined);
    await at.answer(0, answer as ApprovalVerdict);
    expect(await outcome(waiting)).toBe("not_approved");
    expect(await outcome(at.approvals.of(call(ASKS)))).toBe("waits");
  });
});

test("a project's server beside, or in place of, the user's own of that name -> the settings' rule for that name lets none of its calls run", async () => {
  const settings = { approve: { "my_db__*": "allow", "*": "ask" } } as const;
  const clones = (name: string): ServerDefinition => ({ ...definitionOf(name), origin: "project-file" });
  const own = definitionOf("my-db");
  const alone = setup(settings);
  expect(alone.approvals.of(alone.current(call({}, { definition: clones("my.db") })))).toBeUndefined();
  const beside = setup(settings);
  expect(beside.approvals.of(beside.current(call({}, { definition: own })))).toBeUndefined();
  expect(await outcome(beside.approvals.of(call({}, { definition: clones("my.db") })))).toBe("waits");
  const inPlace = setup(settings);
  const replacing = call({}, { definition: { ...clones("my-db"), replaced: own } });
  expect(await outcome(inPlace.approvals.of(inPlace.current(replacing)))).toBe("waits");
});

describe("what lasts for the session", () => {
  const granted = async (tool = call(ASKS).tool) => {
    const at = setup();
    at.approvals.of(call(ASKS, { tool }))?.catch(() => undefined);
    await at.answer(0, "session");
    return at;
  };

  test.each<[string, Partial<AskedCall>]>([
    ["another tool", { tool: { name: "u" } }],
    ["other hints", { tool: { name: "t", annotations: { destructiveHint: true } } }],
    ["another description", { tool: { name: "t", description: "Deletes." } }],
    ["other parameters", { tool: { name: "t", inputSchema: { type: "object" } } }],
    ["a server of another name", { definition: definitionOf("other", ASKS) }],
    ["another program", { definition: definitionOf("s", { ...ASKS, command: "other" }) }],
  ])("%s -> asked again", async (_, over) => {
    expect(await outcome((await granted()).approvals.of(call(ASKS, over)))).toBe("waits");
  });

  test("equal hints in another object, and other arguments -> not asked again", async () => {
    const tool = () => ({ name: "t", annotations: { readOnlyHint: false } });
    const at = await granted(tool());
    expect(at.approvals.of(call(ASKS, { tool: tool(), args: { b: 2 } }))).toBeUndefined();
  });

  test("a rule that denies since then -> denied", async () => {
    const { approvals } = await granted();
    expect(() => approvals.of(call({ approve: { t: "deny" } }))).toThrow(/denies it/);
  });
});

describe("several calls", () => {
  test("once for the first -> the others are asked one after the other", async () => {
    const at = setup();
    const calls = [1, 2, 3].map((a) => at.approvals.of(call(ASKS, { args: { a } })));
    expect(at.asked().map(({ args }) => args)).toEqual(["a: 1"]);
    await at.answer(0, "once");
    expect(await Promise.all(calls.map(outcome))).toEqual(["yes", "waits", "waits"]);
    expect(at.asked().map(({ args }) => args)).toEqual(["a: 1", "a: 2"]);
  });

  test("session for the first -> those of the same tool go on unasked", async () => {
    const at = setup();
    const same = [1, 2].map((a) => at.approvals.of(call(ASKS, { args: { a } })));
    const changed = at.approvals.of(call(ASKS, { tool: { name: "t", title: "T" } }));
    const other = at.approvals.of(call(ASKS, { tool: { name: "u" } }));
    await at.answer(0, "session");
    expect(await Promise.all([...same, changed, other].map(outcome))).toEqual([
      "yes",
      "yes",
      "waits",
      "waits",
    ]);
    expect(at.asked().map(({ tool }) => tool)).toEqual(["t", "t"]);
  });

  test("the open one is cancelled -> the next one is asked; one that waits is cancelled -> never asked", async () => {
    const at = setup();
    const [first, second] = [new AbortController(), new AbortController()];
    const calls = [first.signal, second.signal, new AbortController().signal].map((signal, a) =>
      at.approvals.of(call(ASKS, { signal, args: { a } })),
    );
    second.abort();
    first.abort();
    expect(await Promise.all(calls.map(outcome))).toEqual(["cancelled", "cancelled", "waits"]);
    expect(at.asked().map(({ args }) => args)).toEqual(["a: 0", "a: 2"]);
  });

  test("too many -> refused without a question", () => {
    const at = setup();
    for (let i = 0; i < LIMITS.approvalsOpen; i++) void at.approvals.of(call(ASKS));
    expect(() => at.approvals.of(call(ASKS))).toThrow(/100 other calls wait/);
    expect(at.asked()).toHaveLength(1);
  });
});

test("a call that is cancelled -> its question is taken away, and a late answer grants nothing", async () => {
  const at = setup();
  const stop = new AbortController();
  const waiting = at.approvals.of(call(ASKS, { signal: stop.signal }));
  stop.abort();
  expect(await outcome(waiting)).toBe("cancelled");
  expect(at.gone()).toEqual([0]);
  await at.answer(0, "always");
  expect(at.always).toEqual([]);
  expect(await outcome(at.approvals.of(call(ASKS)))).toBe("waits");
  expect(() => at.approvals.of(call(ASKS, { signal: stop.signal }))).toThrow(/cancelled/);
});

test("nobody can be asked -> refused with a sentence that names the setting and the file; what is allowed runs", async () => {
  const { approvals, asked, answer } = setup({}, false);
  const refused = approvals.of(call(ASKS));
  // Other extensions of Pi might answer.
  void answer(0, undefined);
  await expect(refused).rejects.toMatchObject({
    code: "not_approved",
    message:
      's/t was not called: "approve" needs the user\'s yes, and no one can be asked in this mode of Pi.',
    remedy: "Only the user can change that: approve of s in /m.json, or approve of the settings.",
  });
  expect(approvals.of(call({ approve: { t: "allow", "*": "ask" } }))).toBeUndefined();
  expect(asked()).toHaveLength(1);
  // The shell can ask as a rule, and has no terminal this time.
  const shell = setup();
  const alone = shell.approvals.of(call(ASKS));
  void shell.answer(0, "nobody");
  await expect(alone).rejects.toThrow("needs the user's yes, and no one can be asked");
});

test.each([true, false])(
  "other extensions, a person can be asked: %s -> their yes is for this call alone, and their no is theirs",
  async (canAsk) => {
    const at = setup({}, canAsk);
    const allowed = at.approvals.of(call(ASKS));
    await at.answer(0, "extension-allows");
    expect(await outcome(allowed)).toBe("yes");
    const refused = at.approvals.of(call(ASKS));
    void at.answer(1, "extension-denies");
    await expect(refused).rejects.toMatchObject({
      code: "not_approved",
      message: "s/t was not called: another extension of Pi denied it.",
    });
    const eachTime = { name: "t", _meta: { "anthropic/requiresUserInteraction": true as const } };
    if (!canAsk) expect(() => at.approvals.of(call({}, { tool: eachTime }))).toThrow("wants the user's yes");
  },
);

describe("a yes for all tools of a server", () => {
  const granted = async () => {
    const at = setup();
    const waiting = at.approvals.of(call(ASKS));
    await at.answer(0, "server");
    expect(await outcome(waiting)).toBe("yes");
    expect(at.always).toEqual([]);
    return at;
  };
  const other = { tool: { name: "other", description: "of another day" } };

  test("another tool -> runs; a tool of another server, or of another program of that name -> asked", async () => {
    const at = await granted();
    expect(at.approvals.of(call(ASKS, other))).toBeUndefined();
    const elsewhere = { ...call(ASKS), definition: definitionOf("z", ASKS) };
    expect(await outcome(at.approvals.of(elsewhere))).toBe("waits");
    expect(await outcome(at.approvals.of(call({ ...ASKS, command: "another" })))).toBe("waits");
  });

  test("a rule that denies, a rule about an argument, a tool that asks each time -> as without the yes", async () => {
    const at = await granted();
    const rules = { approve: { "*": "ask", other: "deny", "t(a=2)": "ask" } };
    expect(() => at.approvals.of(call(rules, other))).toThrow(/denies it/);
    expect(at.approvals.of(call(rules))).toBeUndefined();
    const asked = at.approvals.of(call(rules, { args: { a: 2 } }));
    expect(at.asked().at(-1)).toMatchObject({ onceOnly: true, canAlways: false });
    await at.answer(1, "server");
    expect(await outcome(asked)).toBe("yes");
    expect(await outcome(at.approvals.of(call(rules, { args: { a: 2 } })))).toBe("waits");
  });

  test("nobody can be asked and a rule about the argument asks -> refused", () => {
    const { approvals } = setup({}, false);
    const rules = { approve: { "t(a=*)": "ask" } };
    expect(() => approvals.of(call(rules))).toThrow(/no one can be asked/);
  });

  test("a rule about the argument denies since the question -> denied", async () => {
    const at = setup();
    const waiting = at.approvals.of(at.current(call(ASKS)));
    await at.answer(0, "once");
    const yes = await waiting;
    const now = at.current(call({ approve: { "*": "ask", "t(a=1)": "deny" } }));
    expect(() => yes?.check({ definition: now.definition, tool: now.tool })).toThrow(/denies it/);
  });
});

test("a rule that denies -> refused without a question", () => {
  const { approvals, asked } = setup();
  expect(() => approvals.of(call({ approve: { "t*": "deny" } }))).toThrow(
    's/t was not called: a rule of "approve" denies it.',
  );
  expect(asked()).toEqual([]);
});

describe("the check after a yes", () => {
  const yes = async (at = setup()) => {
    const waiting = at.approvals.of(call(ASKS));
    void at.answer(0, "once");
    return (await waiting) as NonNullable<Awaited<typeof waiting>>;
  };

  test("the same tool -> nothing; on a server that was replaced -> not_approved", async () => {
    const at = setup();
    const given = await yes(at);
    given.check(at.current(call(ASKS)));
    expect(() => given.check(call(ASKS))).toThrow(/changed while the user was asked/);
  });

  test.each<[string, Partial<AskedCall>, RegExp]>([
    [
      "other hints",
      { tool: { name: "t", annotations: { readOnlyHint: true } } },
      /changed while the user was asked/,
    ],
    [
      "another program",
      { definition: definitionOf("s", { command: "other" }) },
      /changed while the user was asked/,
    ],
    ["a rule that denies", { definition: definitionOf("s", { approve: { t: "deny" } }) }, /denies it/],
  ])("%s -> not_approved", async (_, over, message) => {
    const at = setup();
    const given = await yes(at);
    expect(() => given.check(at.current(call(ASKS, over)))).toThrow(message);
  });
});

test("a tool whose name is a pattern, or that a file of the project holds back -> no rule for always", async () => {
  const at = setup();
  at.approvals.of(call(ASKS, { tool: { name: "*" } }));
  await at.answer(0, "once");
  at.approvals.of(call(ASKS, { definition: { ...definitionOf("s"), approveToo: ["always"] } }));
  expect(at.asked().map(({ canAlways }) => canAlways)).toEqual([false, false]);
});

test.each<[string, boolean, Origin, Partial<ServerDefinition>?]>([
  ["the user's file", true, "user"],
  ["another extension", true, "extension"],
  ["a package", true, "package"],
  [".mcp.json", false, "project-file"],
  [".pi/mcp.json", false, "project-pi"],
  ["the policy of this machine", false, "user", { isRequired: true }],
])("%s defines the server -> a rule for always: %s", async (_, can, origin, over = {}) => {
  const at = setup();
  const { definition } = parseEntry("s", { command: "x", ...ASKS }, { file: "/f", origin });
  if (!definition) throw new Error("no definition");
  at.approvals.of(call({}, { definition: { ...definition, ...over } }));
  expect(at.asked().map(({ canAlways }) => canAlways)).toEqual([can]);
  await at.answer(0, "always");
  expect(at.always).toEqual(can ? ["t"] : []);
});

test("each argument stands on a line of its own, as JSON", () => {
  const args = { path: "/a b", count: 2, deep: { x: [true, null] }, "odd name": "" };
  expect(shownArguments(args)).toBe('path: "/a b"\ncount: 2\ndeep: {"x":[true,null]}\n"odd name": ""');
  expect(shownArguments({})).toBe("");
});

test("line ends, escapes, hidden and turned letters -> written as codes, in the names as well", () => {
  const text = shownArguments({ a: "x\ny\u2028z", "b\u001b[2K\nc": "\u202e\u200b", d: "p\u0430ypal" });
  expect(text).toBe('a: "x\\ny\\u{2028}z"\n"b\\u001b[2K\\nc": "\\u{202e}\\u{200b}"\nd: "p\\u{430}ypal"');
  expect(shownName("delete\n\u001b[0m")).toBe('"delete\\n\\u001b[0m"');
});

describe("too much for a question", () => {
  const bounded = (text: string): void => expect(text.length).toBeLessThanOrEqual(LIMITS.approvalChars);

  test("one argument of a megabyte -> cut, with its length", () => {
    const text = shownArguments({ content: "x".repeat(1_000_000) });
    bounded(text);
    expect(text).toMatch(/^content: "x{19000,}… \(cut, 1,000,002 characters in all\)$/);
  });

  test("a long argument -> the one behind it is shown", () => {
    const text = shownArguments({ content: "x".repeat(1_000_000), target: "/etc/passwd" });
    bounded(text);
    expect(text.split("\n").at(-1)).toBe('target: "/etc/passwd"');
  });

  test("a text that is all escapes -> bounded, too", () => {
    const text = shownArguments({ content: "\u200b".repeat(100_000), target: "here" });
    bounded(text);
    expect(text.split("\n").at(-1)).toBe('target: "here"');
  });

  test("ten thousand arguments -> those that are left out are counted", () => {
    const args = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`a${i}`, "x".repeat(300)]));
    const lines = shownArguments(args).split("\n");
    bounded(lines.join("\n"));
    expect(lines.at(-1)).toBe(
      `and ${(10_000 - lines.length + 1).toLocaleString("en")} more arguments, which are not shown`,
    );
    expect(lines.length).toBeGreaterThan(20);
  });

  test("a cut between the halves of a character -> no half is left", () => {
    for (const more of ["", "x"]) {
      expect(shownArguments({ a: `${more}${"😀".repeat(20_000)}` }).isWellFormed()).toBe(true);
      expect(shownName(`${more}${"😀".repeat(200)}`).isWellFormed()).toBe(true);
    }
  });
});

describe("a server that wants a yes for each call", () => {
  const tool = { name: "t", _meta: { "anthropic/requiresUserInteraction": true as const } };

  test.each([{}, { approve: "never" }, { approve: { t: "allow" } }, { approve: "destructive" }])(
    "%j -> asks each time, and offers no answer that lasts",
    async (entry) => {
      const at = setup();
      const reads = { ...tool, annotations: { readOnlyHint: true } };
      for (const [index, answer] of (["once", "session", "always"] as const).entries()) {
        const waiting = at.approvals.of(call(entry, { tool: reads }));
        expect(at.asked()[index]).toEqual({
          about: "call",
          callId: "1",
          server: "s",
          tool: "t",
          args: "a: 1",
          canAlways: false,
          onceOnly: true,
          call: { server: "s", tool: "t", args: { a: 1 } },
        });
        await at.answer(index, answer);
        expect(await outcome(waiting)).toBe("yes");
      }
      expect(at.always).toEqual([]);
      expect(await outcome(at.approvals.of(call(entry, { tool: reads })))).toBe("waits");
    },
  );

  test("the tool had a yes for the session before its server said so -> asked", async () => {
    const at = setup();
    at.approvals.of(call(ASKS));
    await at.answer(0, "session");
    expect(await outcome(at.approvals.of(call(ASKS)))).toBe("runs");
    expect(await outcome(at.approvals.of(call(ASKS, { tool })))).toBe("waits");
  });

  test("calls that wait at the same time -> one question for each", async () => {
    const at = setup();
    const first = at.approvals.of(call({}, { tool }));
    const second = at.approvals.of(call({}, { tool }));
    await at.answer(0, "session");
    expect(await outcome(first)).toBe("yes");
    expect(await outcome(second)).toBe("waits");
    expect(at.asked()).toHaveLength(2);
  });

  test("a rule denies it -> denied without a question", () => {
    const at = setup();
    expect(() => at.approvals.of(call({ approve: { t: "deny" } }, { tool }))).toThrow("denies it");
    expect(at.asked()).toEqual([]);
  });

  test("no one can be asked -> refused with the reason, also where a rule allows it", () => {
    const { approvals } = setup({ approve: { "*": "allow" } }, false);
    expect(() => approvals.of(call({ approve: "never" }, { tool }))).toThrow(
      "s/t was not called: its server wants the user's yes for each call, and no one can be asked in this mode of Pi.",
    );
  });
});
