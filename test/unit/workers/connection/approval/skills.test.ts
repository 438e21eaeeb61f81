/** Owns: when the load of a skill waits for the user, what each answer lets in, and what ends a yes. */
import { describe, expect, test } from "vitest";
import type { ApprovalAnswer, LoadedSkill, SkillQuestion } from "../../../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { Approvals, type AskedCall, type Yes } from "../../../../../workers/connection/approval/approval.ts";
import type { ServerDefinition } from "../../../../../workers/connection/config/entry/definition.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import { type CachedSkill, contentOf, normalizeSkill } from "../../../../../workers/shared/skills.ts";
import { recordingUser } from "../../../../support/recording-user.ts";
import { recordingLog } from "../../recording-log.ts";
import { definitionOf, outcomeOf, settle } from "../servers/support.ts";

interface SetupOptions {
  canAsk?: boolean;
  kept?: (skill: LoadedSkill) => boolean;
  /** Why a yes cannot be kept. */
  broken?: string;
}

/** The definitions that hold now. */
const current: ServerDefinition[] = [];

function setup({ canAsk = true, kept = () => false, broken }: SetupOptions = {}) {
  const user = recordingUser();
  const added: LoadedSkill[] = [];
  const warnings: string[] = [];
  const { log, lines } = recordingLog();
  const approvals = new Approvals({
    canAsk,
    definitions: () => current,
    toolsOf: () => ["t"],
    settings: () => DEFAULT_SETTINGS,
    askUser: user.ask,
    allowAlways: () => expect.unreachable(),
    allowedSkills: {
      has: async (skill) => kept(skill),
      add: async (skill) => {
        if (broken !== undefined) throw new Error(broken);
        added.push(skill);
      },
    },
    warn: (text) => warnings.push(text),
    log,
  });
  return {
    approvals,
    added,
    warnings,
    lines,
    asked: () => user.asked.map(({ question }) => question as { about: "skill" } & SkillQuestion),
    gone: () => user.asked.map(({ signal }) => signal.aborted),
    answer: async (at: number, answer: ApprovalAnswer | undefined) => {
      user.asked[at]?.answer(answer);
      await settle();
    },
  };
}

function skill(path = "pdf", letter = "a", over: object = {}): CachedSkill {
  const uri = `skill://${path}/SKILL.md`;
  const digest = `sha256:${letter.repeat(64)}`;
  const made = normalizeSkill({
    uri,
    frontmatter: { name: path.split("/").at(-1), description: "Reads PDF." },
    resources: [
      { uri, digest, size: 1_234 },
      { uri: `skill://${path}/a.md`, digest, size: 5 },
    ],
    ...over,
  });
  if (!made) throw new Error("no skill");
  return made;
}

interface LoadOptions {
  entry?: object;
  byPerson?: boolean;
  signal?: AbortSignal;
  definition?: ServerDefinition;
}

const load = (
  of: CachedSkill,
  { entry, byPerson = false, signal, definition }: LoadOptions = {},
): AskedCall => ({
  callId: "1",
  definition: definition ?? definitionOf("s", entry),
  tool: { name: "skill_pdf", annotations: { readOnlyHint: true } },
  args: {},
  signal: signal ?? new AbortController().signal,
  loads: { of, byPerson },
});

const outcome = (promise: Promise<unknown> | undefined): Promise<unknown> => outcomeOf(promise, "loads");

/** Starts to load, and lets the file of kept answers be read. */
async function start(at: ReturnType<typeof setup>, call: AskedCall) {
  const waiting = at.approvals.of(call);
  waiting?.catch(() => undefined);
  await settle();
  return { waiting };
}

test("a question -> who, what, how much, and that it can be kept", async () => {
  const at = setup();
  expect(await outcome(at.approvals.of(load(skill())))).toBe("waits");
  expect(at.asked()).toEqual([
    {
      about: "skill",
      callId: "1",
      server: "s",
      uri: "skill://pdf/SKILL.md",
      name: "pdf",
      content: contentOf(skill()),
      description: "Reads PDF.",
      files: "SKILL.md  1,234 bytes\na.md  5 bytes",
      canAlways: true,
    },
  ]);
});

describe("the answer", () => {
  test.each<[ApprovalAnswer | undefined, string, string, number]>([
    ["session", "yes", "loads", 0],
    ["always", "yes", "loads", 1],
    ["no", "not_approved", "waits", 0],
    ["once", "not_approved", "waits", 0],
    [undefined, "not_approved", "waits", 0],
    ["yes" as ApprovalAnswer, "not_approved", "waits", 0],
    [{ always: true } as never, "not_approved", "waits", 0],
  ])("%j -> this load %s, the next one %s", async (answer, first, next, kept) => {
    const at = setup();
    const { waiting } = await start(at, load(skill()));
    await at.answer(0, answer);
    expect(await outcome(waiting)).toBe(first);
    expect(at.added).toHaveLength(kept);
    expect(await outcome(at.approvals.of(load(skill())))).toBe(next);
  });

  test("a yes that is taken back -> the next load waits", async () => {
    const at = setup();
    const { waiting } = await start(at, load(skill()));
    await at.answer(0, "always");
    expect(await outcome(waiting)).toBe("yes");
    at.approvals.forgetSkills();
    expect(await outcome(at.approvals.of(load(skill())))).toBe("waits");
  });

  test("no -> the model reads that it must not try again", async () => {
    const at = setup();
    const { waiting } = await start(at, load(skill()));
    await at.answer(0, "no");
    await expect(waiting).rejects.toMatchObject({
      code: "not_approved",
      message: "s/skill_pdf was not called: the user said no.",
      remedy: "Do not load it again unless the user asks for that.",
    });
  });

  test("always, and the file cannot be written -> it holds for the session, and the user is told", async () => {
    const at = setup({ broken: "EACCES" });
    const { waiting } = await start(at, load(skill()));
    await at.answer(0, "always");
    expect(await outcome(waiting)).toBe("yes");
    expect(at.warnings).toEqual(["The skill pdf of s is allowed for this session only: EACCES"]);
    expect(at.approvals.of(load(skill()))).toBeUndefined();
  });
});

describe("a yes is for one skill as it is", () => {
  const granted = async (of = skill()) => {
    const at = setup();
    await start(at, load(of));
    await at.answer(0, "session");
    return at;
  };

  test.each<[string, AskedCall]>([
    ["another content", load(skill("pdf", "b"))],
    [
      "a file more",
      load(
        skill("pdf", "a", {
          resources: [...listOf(skill()), { ...listOf(skill())[0], uri: "skill://pdf/b.md" }],
        }),
      ),
    ],
    ["a file less", load(skill("pdf", "a", { resources: listOf(skill()).slice(0, 1) }))],
    ["the same skill at another address", load(skill("other/pdf"))],
    ["a skill within it", load(skill("pdf/nested"))],
    ["the same address of another server", load(skill(), { definition: definitionOf("t") })],
    ["another program of that name", load(skill(), { entry: { command: "other" } })],
  ])("%s -> asked", async (_, call) => {
    const at = await granted();
    expect(await outcome(at.approvals.of(call))).toBe("waits");
  });

  test("the order of its files, another description -> not asked again", async () => {
    const at = await granted();
    const frontmatter = { name: "pdf", description: "Other words." };
    const resources = listOf(skill()).toReversed();
    expect(at.approvals.of(load(skill("pdf", "a", { frontmatter, resources })))).toBeUndefined();
  });

  test("back to the content before -> asked, since the newer yes has ended the older one", async () => {
    const at = await granted();
    await start(at, load(skill("pdf", "b")));
    await at.answer(1, "session");
    expect(await outcome(at.approvals.of(load(skill())))).toBe("waits");
  });

  test("a yes to a skill within another one does not let the other one in", async () => {
    const at = await granted(skill("pdf/nested"));
    expect(await outcome(at.approvals.of(load(skill())))).toBe("waits");
  });
});

test("kept for just this content -> not asked; for another one -> asked", async () => {
  const at = setup({ kept: ({ content }) => content === contentOf(skill()) });
  expect(await outcome(at.approvals.of(load(skill())))).toBe("yes");
  expect(at.asked()).toEqual([]);
  expect(await outcome(at.approvals.of(load(skill("pdf", "b"))))).toBe("waits");
});

describe("nobody can be asked", () => {
  test("what was kept is let in; all else is refused with who can allow it", async () => {
    const at = setup({ canAsk: false, kept: ({ content }) => content === contentOf(skill()) });
    expect(await outcome(at.approvals.of(load(skill())))).toBe("yes");
    await expect(at.approvals.of(load(skill("pdf", "b")))).rejects.toMatchObject({
      code: "not_approved",
      remedy: 'Only the user can: in a session with a person, or by "skills": "allow" of s in /m.json.',
    });
    expect(at.asked()).toEqual([]);
  });
});

test("the person's own load -> no question, and it holds for the session", async () => {
  const at = setup({ canAsk: false });
  expect(at.approvals.of(load(skill(), { byPerson: true }))).toBeUndefined();
  expect(at.approvals.of(load(skill()))).toBeUndefined();
  expect(await outcome(at.approvals.of(load(skill("pdf", "b"))))).toBe("not_approved");
});

test("allow -> no question; a rule that denies -> refused, also for a person and under allow", () => {
  const at = setup({ canAsk: false });
  expect(at.approvals.of(load(skill(), { entry: { skills: "allow" } }))).toBeUndefined();
  const entry = { skills: "allow", approve: { "skill_*": "deny" } };
  expect(() => at.approvals.of(load(skill(), { entry, byPerson: true }))).toThrow(/denies it/);
});

test("a rule that asks about each tool asks nothing more about a skill that was let in", async () => {
  const at = setup();
  const entry = { approve: "always" };
  await start(at, load(skill(), { entry }));
  await at.answer(0, "session");
  expect(at.approvals.of(load(skill(), { entry }))).toBeUndefined();
  expect(at.asked()).toHaveLength(1);
});

describe("several loads", () => {
  test("of one skill at once -> one question", async () => {
    const at = setup();
    const loads = [1, 2, 3].map(() => at.approvals.of(load(skill())));
    await settle();
    expect(at.asked()).toHaveLength(1);
    await at.answer(0, "session");
    expect(await Promise.all(loads.map(outcome))).toEqual(["yes", "yes", "yes"]);
    expect(at.asked()).toHaveLength(1);
  });

  test("of several skills, and a call of a tool -> one question at a time", async () => {
    const at = setup();
    const [first, second] = [at.approvals.of(load(skill("a"))), at.approvals.of(load(skill("b")))];
    const { loads: _, ...tool } = load(skill(), { entry: { approve: "always" } });
    const third = at.approvals.of(tool);
    for (const one of [first, second, third]) one?.catch(() => undefined);
    await settle();
    expect(at.asked()).toHaveLength(1);
    await at.answer(0, "no");
    await at.answer(1, "session");
    expect(
      at
        .asked()
        .map(({ about }) => about)
        .sort(),
    ).toEqual(["call", "skill", "skill"]);
  });

  test("one that waits is cancelled -> never asked; the open one -> its question is taken away", async () => {
    const at = setup();
    const stops = [new AbortController(), new AbortController(), new AbortController()];
    const loads = stops.map(({ signal }, i) => at.approvals.of(load(skill(`s${i}`), { signal })));
    for (const one of loads) one?.catch(() => undefined);
    await settle();
    stops[1]?.abort();
    stops[0]?.abort();
    expect(await Promise.all(loads.map(outcome))).toEqual(["cancelled", "cancelled", "waits"]);
    expect(at.asked().map(({ name }) => name)).toEqual(["s0", "s2"]);
    expect(at.gone()).toEqual([true, false]);
    await at.answer(0, "always");
    expect(at.added).toEqual([]);
    expect(await outcome(at.approvals.of(load(skill("s0"))))).toBe("waits");
  });

  test("cancelled before the file of kept answers was read -> never asked", async () => {
    const at = setup();
    const stop = new AbortController();
    const waiting = at.approvals.of(load(skill(), { signal: stop.signal }));
    stop.abort();
    expect(await outcome(waiting)).toBe("cancelled");
    expect(at.asked()).toEqual([]);
  });

  test("too many -> refused without a question", async () => {
    const at = setup();
    const loads = Array.from({ length: LIMITS.approvalsOpen + 1 }, (_, i) =>
      at.approvals.of(load(skill(`s${i}`))),
    );
    for (const one of loads) one?.catch(() => undefined);
    await settle();
    expect(await outcome(loads.at(-1))).toBe("not_approved");
    expect(at.asked()).toHaveLength(1);
  });
});

describe("the check after a yes", () => {
  const yes = async (at = setup()): Promise<Yes> => {
    const { waiting } = await start(at, load(skill()));
    await at.answer(0, "session");
    return (await waiting) as Yes;
  };
  const removed = (of: CachedSkill | undefined, entry: object = {}) => ({
    definition: definitionOf("s", entry),
    tool: { name: "skill_pdf" },
    skill: of,
  });
  const now: typeof removed = (...given) => {
    const one = removed(...given);
    current.push(one.definition);
    return one;
  };

  test("the same skill, as a new entry -> loads", async () => {
    (await yes()).check(now(skill()));
  });

  test.each<[string, ReturnType<typeof now>, RegExp]>([
    ["another content", now(skill("pdf", "b")), /changed while the user was asked/],
    ["another skill of the name", now(skill("other/pdf")), /changed while the user was asked/],
    ["a tool in its place", now(undefined), /changed while the user was asked/],
    ["a server that was removed, or replaced", removed(skill()), /changed while the user was asked/],
    ["another program", now(skill(), { command: "other" }), /changed while the user was asked/],
    ["skills are switched off", now(skill(), { skills: false }), /was not called/],
    ["a rule denies it", now(skill(), { approve: { "*": "deny" } }), /denies it/],
  ])("%s -> not_approved", async (_, given, message) => {
    const check = await yes();
    expect(() => check.check(given)).toThrow(message);
  });
});

describe("what the question shows of a server's words", () => {
  const asked = async (over: object, path = "pdf") => {
    const at = setup();
    await start(at, load(skill(path, "a", over)));
    const [question] = at.asked();
    if (!question) throw new Error("nothing was asked");
    return question;
  };

  test("escapes, turned letters and ends of lines -> written as codes, each in its line", async () => {
    const uri = "skill://pdf/SKILL.md";
    const digest = `sha256:${"a".repeat(64)}`;
    const { description, files } = await asked({
      frontmatter: { name: "pdf", description: "Reads.\n\u001b[2J\u202eallowed\u2028yes" },
      resources: [uri, "skill://pdf/a\nb\u001b[31m\u202e.md"].map((one) => ({ uri: one, digest, size: 1 })),
    });
    expect(description).not.toMatch(/[\n\u202e\u2028]/);
    expect(description + files).not.toContain("\u001b");
    expect(files.split("\n")).toHaveLength(2);
    expect(files).not.toContain("\u202e");
  });

  test("a long description, 512 files with long names -> bounded, and the rest is counted", async () => {
    const digest = `sha256:${"a".repeat(64)}`;
    const names = ["SKILL.md", ...Array.from({ length: 511 }, (_, i) => `${i}${"x".repeat(1_500)}`)];
    const { description, files } = await asked({
      frontmatter: { name: "pdf", description: "\u200b".repeat(10_000) },
      resources: names.map((name) => ({ uri: `skill://pdf/${name}`, digest, size: 1 })),
    });
    expect(description.length).toBeLessThan(10_000);
    expect(files.length).toBeLessThan(30_000);
    expect(files.split("\n").at(-1)).toBe("and 412 more files");
  });

  test("a skill whose files change -> says so, and cannot be kept", async () => {
    const { files, canAlways, content } = await asked({ resources: "dynamic" });
    expect({ files, canAlways, content }).toEqual({
      files: "The server makes its files anew each time: nobody can check them.",
      canAlways: false,
      content: "",
    });
  });

  test("always for such a skill, though it was not offered -> not kept", async () => {
    const at = setup();
    await start(at, load(skill("pdf", "a", { resources: "dynamic" })));
    await at.answer(0, "always");
    expect(at.added).toEqual([]);
  });
});

function listOf({ resources }: CachedSkill) {
  if (resources === "dynamic") throw new Error("no list");
  return resources;
}
