/** Entries of the cache file: their hash, which of them count, what a write keeps and removes, and their lines in the file. */
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import {
  changeSlots,
  findEntry,
  type Slots,
  variantKey,
} from "../../../../../workers/cache/metadata/entry.ts";
import { changeLines, formatLines } from "../../../../../workers/cache/metadata/file.ts";
import { adapterHash, hashesOf } from "../../../../../workers/cache/metadata/metadata.ts";
import { hashDefinition } from "../../../../../workers/shared/json.ts";
import type { CacheEntry, KnownEntry, SlotChanges } from "../../../../../workers/shared/tasks.ts";
import { amount } from "../../../../support/long.ts";
import { createRandom } from "../../../random.ts";
import { DAY, entry, MINUTE, NOW, withoutMarks } from "../support.ts";

const ENVIRONMENT = { TOKEN: "secret", NEST: "$env:TOKEN" };

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: it is what a file holds.
describe("adapterHash", () => {
  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ["the shell's spelling", { env: { A: "x${TOKEN}y" } }, { env: { A: "xsecrety" } }],
    ["PowerShell's spelling", { headers: { A: "$env:TOKEN" } }, { headers: { A: "secret" } }],
    ["the braces' spelling", { url: "https://h/{env:TOKEN}" }, { url: "https://h/secret" }],
    ["a variable that is not set", { env: { A: "${NONE}" } }, { env: { A: "" } }],
    ["a value that holds a variable", { env: { A: "${NEST}" } }, { env: { A: "secret" } }],
    ["the home folder", { cwd: "~" }, { cwd: homedir() }],
    ["a folder below it", { cwd: "~/a" }, { cwd: join(homedir(), "a") }],
    ["a folder that only begins like it", { cwd: "~a" }, { cwd: "~a" }],
    ["a command for a secret", { env: { A: "!echo ${TOKEN}" } }, { env: { A: "!echo ${TOKEN}" } }],
    ["an escaped command", { env: { A: "!!${TOKEN}" } }, { env: { A: "!secret" } }],
    [
      "a token from the environment",
      { bearerTokenEnv: "TOKEN" },
      { bearerTokenEnv: "TOKEN", bearerToken: "secret" },
    ],
    ["a token of its own", { bearerToken: "$env:TOKEN" }, { bearerToken: "secret" }],
    [
      "variables where it reads none",
      { command: "${TOKEN}", args: ["${TOKEN}"] },
      { command: "${TOKEN}", args: ["${TOKEN}"] },
    ],
    [
      "values of the wrong type",
      { env: 5, cwd: null, headers: ["$env:TOKEN"] },
      { env: 5, cwd: null, headers: ["$env:TOKEN"] },
    ],
  ])("%s -> as if written out", (_name, definition, resolved) => {
    expect(adapterHash(definition, ENVIRONMENT)).toBe(hashDefinition(resolved));
  });
});

test("hashesOf: no variables -> one hash; variables -> our hash, then the adapter's", () => {
  const plain = { command: "node", env: { A: "1" } };
  expect(hashesOf(plain, ENVIRONMENT)).toEqual([hashDefinition(plain)]);
  const secret = { command: "node", env: { A: "${TOKEN}" } };
  expect(hashesOf(secret, ENVIRONMENT)).toEqual([hashDefinition(secret), adapterHash(secret, ENVIRONMENT)]);
});
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: it is what a file holds.

const NAMES = ["a", "ab", "a#b", 'a":b', "ä\n{}", "", "#", "__proto__", "7", "servers", "a\\", "\u2028"];
const STEPS = amount(120, 400);

const changesOf = (entries: Record<string, CacheEntry>): SlotChanges => ({ entries, used: {} });
/** Of a map, since an object has a prototype and an order of its own. */
const sorted = (slots: Slots): [string, unknown][] => [...slots].sort(([a], [b]) => (a < b ? -1 : 1));
const slotsIn = (bytes: Buffer): Slots =>
  new Map(Object.entries((withoutMarks(bytes.toString()) as { servers: object }).servers));
const whole = (parts: readonly Buffer[] | undefined): Buffer => Buffer.concat(parts ?? []);
const change = (bytes: Buffer, changes: SlotChanges): readonly Buffer[] | undefined =>
  changeLines(bytes, 1, [changes], NOW);

test(`${STEPS} changes of entries with odd names -> the entries of the whole way, in lines again`, () => {
  const random = createRandom(7);
  let slots: Slots = new Map();
  let bytes = whole(formatLines({ mine: "kept", version: 1 }, slots));
  for (let step = 0; step < STEPS; step++) {
    const picked = Array.from({ length: 1 + random.below(3) }, () => NAMES[random.below(NAMES.length)] ?? "");
    const entries = picked.map((name): [string, CacheEntry] => [
      name,
      entry(`hash ${random.below(4)} of it`, { instructions: `\n"${random.below(3)}":{é,\n` }),
    ]);
    const changes = changesOf(Object.fromEntries(entries));
    const after = changeSlots(slots, changes, NOW);
    const parts = change(bytes, changes);
    expect(parts, `step ${step}`).toBeDefined();
    if (!after) expect(parts).toEqual([]);
    else bytes = whole(parts);
    slots = after ?? slots;
    expect(sorted(slotsIn(bytes)), `step ${step}`).toEqual(sorted(slots));
  }
  expect(JSON.parse(bytes.toString())).toMatchObject({ mine: "kept", version: 1 });
  expect(bytes.toString().split("\n").length).toBe(slots.size + 3);
});

describe("a file that must be parsed as a whole -> undefined", () => {
  const slots: Slots = new Map([
    ["a", entry("one")],
    ["b", entry("two")],
  ]);
  const good = whole(formatLines({ version: 1 }, slots)).toString();
  const parsed = JSON.parse(good) as object;
  const fresh = changesOf({ a: entry("new") });

  test("the file that the others differ from -> changed", () => {
    expect(slotsIn(whole(change(Buffer.from(good), fresh))).get("a")).toMatchObject({ configHash: "new" });
  });

  it.each<[string, string]>([
    ["one line", `${JSON.stringify(parsed)}\n`],
    ["indented", `${JSON.stringify(parsed, null, 2)}\n`],
    ["indented with nothing", `${JSON.stringify(parsed, null, "")}\n`],
    ["another version", good.replace('"version":1', '"version":2')],
    ["no version", good.replace('{"version":1,', '{"v":1,')],
    ["something behind the servers", good.replace("\n}}\n", '\n},"x":{}}\n')],
    ["half of it", good.slice(0, good.length / 2)],
    ["without its end", good.slice(0, -1)],
    ["the server's line broken", good.replace('"a":{', '"a":{{')],
    ["the first line broken", good.replace('{"version"', '{{"version"')],
    ["a first line of 20,000 characters", good.replace("{", `{"x":"${"x".repeat(20_000)}",`)],
    ["empty", ""],
  ])("%s", (_name, text) => {
    expect(text).not.toBe(good);
    expect(change(Buffer.from(text), fresh)).toBeUndefined();
  });

  test("uses to be written down, which is when old entries go", () => {
    expect(change(Buffer.from(good), { entries: fresh.entries, used: { b: "two" } })).toBeUndefined();
  });
});

const HASH_A = "a".repeat(64);
const HASH_B = "b".repeat(64);

const slots = (stored: Record<string, unknown>): Map<string, unknown> => new Map(Object.entries(stored));
const changeOf = (
  stored: Record<string, unknown>,
  changes: Partial<SlotChanges>,
  nowMs = NOW,
): Record<string, unknown> | undefined => {
  const changed = changeSlots(slots(stored), { entries: {}, used: {}, ...changes }, nowMs);
  return changed && Object.fromEntries(changed);
};

describe("findEntry", () => {
  it.each<[string, unknown, "hit" | "miss"]>([
    ["a minute old", entry("h"), "hit"],
    ["six days and 23 hours old", entry("h", { cachedAt: NOW - 7 * DAY + 60 * MINUTE }), "hit"],
    ["seven days old", entry("h", { cachedAt: NOW - 7 * DAY }), "miss"],
    ["from 23 hours in the future", entry("h", { cachedAt: NOW + 23 * 60 * MINUTE }), "hit"],
    ["from two days in the future", entry("h", { cachedAt: NOW + 2 * DAY }), "miss"],
    ["of another hash", entry("other"), "miss"],
    ["of a hash that is a number", { ...entry("h"), configHash: 1 }, "miss"],
    ["without hash", { ...entry("h"), configHash: undefined }, "miss"],
    ["without time", { ...entry("h"), cachedAt: undefined }, "miss"],
    ["of a time that is a text", { ...entry("h"), cachedAt: String(NOW) }, "miss"],
    ["of the time NaN", { ...entry("h"), cachedAt: Number.NaN }, "miss"],
    ["of the time Infinity", { ...entry("h"), cachedAt: Number.POSITIVE_INFINITY }, "miss"],
    ["without tools", { ...entry("h"), tools: undefined }, "miss"],
    ["with tools that are a map", { ...entry("h"), tools: {} }, "miss"],
    ["with nothing but broken tools", { ...entry("h"), tools: [null, { description: "d" }] }, "miss"],
    ["with one broken tool", { ...entry("h"), tools: [null, { name: "t" }] }, "hit"],
    ["of a server that has no tools", { ...entry("h"), tools: [] }, "hit"],
    ["with resources that are a text", { ...entry("h"), resources: "x" }, "hit"],
    ["with instructions that are a number", { ...entry("h"), instructions: 5 }, "hit"],
    ["null", null, "miss"],
    ["a text", "x", "miss"],
    ["an array", [], "miss"],
  ])("an entry that is %s -> %s", (_name, stored, outcome) => {
    expect(findEntry(slots({ s: stored }), "s", ["h"], NOW) ? "hit" : "miss").toBe(outcome);
  });

  test("all fields -> the same fields without broken items", () => {
    const tool = { name: "t", title: "T", outputSchema: { type: "object" }, annotations: { title: "A" } };
    const full = entry("h", {
      tools: [tool],
      resources: [1],
      prompts: [2],
      skills: [3],
      instructions: "Use it.",
    });
    expect(findEntry(slots({ s: full }), "s", ["h"], NOW)?.entry).toEqual(full);
    const broken = { ...full, resources: 1, prompts: {}, skills: "x", instructions: null };
    expect(findEntry(slots({ s: broken }), "s", ["h"], NOW)?.entry).toEqual({
      configHash: "h",
      tools: [tool],
      cachedAt: full.cachedAt,
    });
  });

  it.each<[string, unknown, unknown]>([
    ["a tool that is null", [null, { name: "t" }], [{ name: "t" }]],
    ["a tool without name", [{ description: "d" }, { name: "t" }], [{ name: "t" }]],
    ["fields of a wrong type", [{ name: "t", description: 5, inputSchema: "x" }], [{ name: "t" }]],
  ])("an entry with %s -> the rest of it", (_name, tools, kept) => {
    expect(findEntry(slots({ s: { ...entry("h"), tools } }), "s", ["h"], NOW)?.entry.tools).toEqual(kept);
  });

  test("an entry under the second hash -> found, with its own hash", () => {
    expect(findEntry(slots({ s: entry("theirs") }), "s", ["ours", "theirs"], NOW)?.entry.configHash).toBe(
      "theirs",
    );
  });

  it.each([
    ["a minute ago", { cachedAt: NOW - MINUTE }, false],
    ["two days ago, used an hour ago", { cachedAt: NOW - 2 * DAY, usedAt: NOW - 60 * MINUTE }, false],
    ["two days ago", { cachedAt: NOW - 2 * DAY }, true],
    ["three days ago, used two days ago", { cachedAt: NOW - 3 * DAY, usedAt: NOW - 2 * DAY }, true],
    ["two days ago, used at no time", { cachedAt: NOW - 2 * DAY, usedAt: "x" }, true],
  ])("listed %s -> use is due: %o %s", (_name, times, due) => {
    expect(findEntry(slots({ s: { ...entry("h"), ...times } }), "s", ["h"], NOW)?.useDue).toBe(due);
  });
});

describe("changeSlots: two definitions of one name", () => {
  const both = changeOf({ s: entry(HASH_A) }, { entries: { s: entry(HASH_B) } }) ?? {};

  test("the newest entry -> under the name, the other beside it; both are found", () => {
    expect(both).toEqual({ s: entry(HASH_B), [variantKey("s", HASH_A)]: entry(HASH_A) });
    for (const hash of [HASH_A, HASH_B]) {
      expect(findEntry(slots(both), "s", [hash], NOW)?.entry).toEqual(entry(hash));
    }
  });

  test("the other server lists something new -> the two entries swap their keys", () => {
    const news = entry(HASH_A, { instructions: "new" });
    expect(changeOf(both, { entries: { s: news } })).toEqual({
      s: news,
      [variantKey("s", HASH_B)]: entry(HASH_B),
    });
  });

  test("the other server lists the same again -> nothing to write", () => {
    expect(changeOf(both, { entries: { s: entry(HASH_A) } })).toBeUndefined();
  });

  test("a moved entry that no longer counts -> removed", () => {
    const old = entry(HASH_A, { cachedAt: NOW - 8 * DAY });
    expect(changeOf({ s: old }, { entries: { s: entry(HASH_B) } })).toEqual({ s: entry(HASH_B) });
    const later = changeOf(both, { entries: { x: entry("x", { cachedAt: NOW + 8 * DAY }) } }, NOW + 8 * DAY);
    expect(Object.keys(later ?? {})).toEqual(["s", "x"]);
  });

  test("an entry of two names that differ only after 16 digits -> the whole hash decides", () => {
    const near = `${"a".repeat(63)}0`;
    expect(findEntry(slots({ [variantKey("s", HASH_A)]: entry(HASH_A) }), "s", [near], NOW)).toBeUndefined();
  });
});

test("a list that is older than the stored one of the same definition -> not stored", () => {
  const stored = { ...entry("h", { instructions: "new" }), cachedAt: NOW };
  const older = { ...entry("h", { instructions: "old" }), cachedAt: NOW - 1_000 };
  expect(changeOf({ s: stored }, { entries: { s: older } })).toBeUndefined();
  expect(changeOf({ s: older }, { entries: { s: stored } })?.s).toMatchObject({ instructions: "new" });
});

describe("changeSlots: what survives", () => {
  test("foreign fields of an entry and of its tools -> kept under the same hash", () => {
    const stored = {
      ...entry("h"),
      ttlMs: 5,
      tools: [{ name: "t", title: "gone", uiResourceUri: "ui://x" }, { name: "gone" }],
    };
    expect(changeOf({ s: stored }, { entries: { s: entry("h") } })).toEqual({
      s: { ...entry("h"), ttlMs: 5, tools: [{ ...entry("h").tools[0], uiResourceUri: "ui://x" }] },
    });
  });

  test("foreign fields of another hash -> they stay with that entry", () => {
    const stored = { ...entry(HASH_A), ttlMs: 5 };
    expect(changeOf({ s: stored }, { entries: { s: entry(HASH_B) } })).toEqual({
      s: entry(HASH_B),
      [variantKey("s", HASH_A)]: stored,
    });
  });

  test("resources and prompts that were not asked for -> the stored ones stay; asked for -> replaced", () => {
    const stored = entry("h", { resources: [1], prompts: [2] });
    const { resources: _none, ...tools } = entry("h", { instructions: "new" });
    expect(changeOf({ s: stored }, { entries: { s: tools } })?.s).toMatchObject({
      resources: [1],
      prompts: [2],
    });
    const asked = { ...tools, resources: [], prompts: [] };
    expect(changeOf({ s: stored }, { entries: { s: asked } })?.s).toMatchObject({
      resources: [],
      prompts: [],
    });
  });

  test("skills that the server no longer serves -> removed, since a person's yes is about what it serves now", () => {
    const stored = entry("h", { skills: [1] });
    expect(changeOf({ s: stored }, { entries: { s: entry("h") } })?.s).not.toHaveProperty("skills");
    const asked = entry("h", { skills: [2] });
    expect(changeOf({ s: stored }, { entries: { s: asked } })?.s).toMatchObject({ skills: [2] });
  });

  test("instructions that the server no longer gives -> removed", () => {
    const stored = entry("h", { instructions: "old" });
    expect(changeOf({ s: stored }, { entries: { s: entry("h") } })?.s).not.toHaveProperty("instructions");
  });

  test("other servers, of any shape -> untouched", () => {
    const others = { b: { any: "shape" }, c: null, d: 5, __proto__x: [], e: entry("old") };
    expect(changeOf(others, { entries: { a: entry("h") } })).toEqual({ ...others, a: entry("h") });
  });

  it.each(["constructor", "__proto__", "toString", "a#b"])(
    "a server named %s -> an entry like any other",
    (name) => {
      const changed = changeSlots(
        new Map(),
        { entries: Object.fromEntries([[name, entry("h")]]), used: {} },
        NOW,
      );
      expect(changed?.get(name)).toEqual(entry("h"));
      expect(findEntry(new Map(), name, ["h"], NOW)).toBeUndefined();
    },
  );
});

describe("changeSlots: what is written, and how often", () => {
  it.each([
    ["the same, listed an hour later", entry("h", { cachedAt: NOW - 60 * MINUTE }), false],
    ["the same, listed two days later", entry("h", { cachedAt: NOW - 2 * DAY }), true],
    [
      "the same, listed two days later, used today",
      { ...entry("h", { cachedAt: NOW - 2 * DAY }), usedAt: NOW },
      true,
    ],
    ["the same, from a far future", entry("h", { cachedAt: NOW + 9 * DAY }), true],
    ["another description", entry("h", { tools: [{ name: "t", description: "old" }] }), true],
    ["the tools in another order", entry("h", { tools: [{ name: "u" }, { name: "t" }] }), true],
  ])("%s -> written: %s", (_name, stored, written) => {
    expect(changeOf({ s: stored }, { entries: { s: entry("h") } }) !== undefined).toBe(written);
  });

  test("the same, two days old and listed by nobody since -> not written", () => {
    const known = entry("h", { cachedAt: NOW - 2 * DAY });
    expect(changeOf({ s: known }, { entries: { s: known } })).toBeUndefined();
  });

  test("used after more than a day -> the time is written once a day, also for a moved entry", () => {
    const old = entry(HASH_A, { cachedAt: NOW - 2 * DAY });
    for (const key of ["s", variantKey("s", HASH_A)]) {
      const changed = changeOf({ [key]: old }, { used: { s: HASH_A } });
      expect(changed).toEqual({ [key]: { ...old, usedAt: NOW } });
      expect(changeOf(changed ?? {}, { used: { s: HASH_A } }, NOW + 60 * MINUTE)).toBeUndefined();
    }
  });

  it.each([
    ["another hash", "other"],
    ["a server that is not there", "missing"],
  ])("use of %s -> nothing to write", (_name, hash) => {
    expect(changeOf({ s: entry("h", { cachedAt: NOW - 2 * DAY }) }, { used: { s: hash } })).toBeUndefined();
    expect(changeOf({}, { used: { s: hash } })).toBeUndefined();
  });
});

describe("changeSlots: entries that nobody uses", () => {
  const write = { entries: { new: entry("new") } };
  it.each<[string, unknown, "stays" | "removed"]>([
    ["listed 29 days ago", { cachedAt: NOW - 29 * DAY }, "stays"],
    ["listed 31 days ago", { cachedAt: NOW - 31 * DAY }, "removed"],
    ["listed 60 days ago, used 29 days ago", { cachedAt: NOW - 60 * DAY, usedAt: NOW - 29 * DAY }, "stays"],
    ["listed 60 days ago, used 31 days ago", { cachedAt: NOW - 60 * DAY, usedAt: NOW - 31 * DAY }, "removed"],
    ["from the future, as after a clock was set back", { cachedAt: NOW + 400 * DAY }, "stays"],
    ["without any time", { tools: [] }, "stays"],
    ["of a time that is a text", { cachedAt: "1" }, "stays"],
    ["no object", 7, "stays"],
  ])("%s -> %s", (_name, stored, outcome) => {
    expect(Object.hasOwn(changeOf({ s: stored }, write) ?? {}, "s") ? "stays" : "removed").toBe(outcome);
  });

  test("unused entries alone -> no reason to write", () => {
    expect(changeOf({ s: { cachedAt: 0 } }, {})).toBeUndefined();
  });
});

describe("what a server said of the protocol", () => {
  const protocol = { version: "2026-07-28", offers: ["tools"], freshUntil: NOW + MINUTE };
  const found = (stored: unknown) =>
    findEntry(slots({ s: { ...entry("h"), signs: true, protocol: stored } }), "s", ["h"], NOW)?.entry
      .protocol;

  it.each<[string, unknown, unknown]>([
    ["well", protocol, protocol],
    ["nothing", undefined, undefined],
    ["a text", "2026-07-28", undefined],
    ["no version", { ...protocol, version: 7 }, undefined],
    ["a version of 5,000 characters", { ...protocol, version: "x".repeat(5_000) }, undefined],
    ["offers of any shape", { ...protocol, offers: [7, null, "tools"] }, protocol],
    ["offers that are a text", { ...protocol, offers: "tools" }, { ...protocol, offers: [] }],
    ["no time", { ...protocol, freshUntil: "x" }, { ...protocol, freshUntil: 0 }],
    ["fresh for ever", { ...protocol, freshUntil: 1e300 }, { ...protocol, freshUntil: NOW + DAY }],
  ])("%s -> read as far as it can be used", (_, stored, read) => {
    expect(found(stored)).toEqual(read);
  });

  test("an equal list that is fresh for longer -> written only once the stored one is stale", () => {
    const stored = (freshUntil: number) => ({ s: { ...entry("h"), protocol: { ...protocol, freshUntil } } });
    const listed = { ...entry("h"), protocol: { ...protocol, freshUntil: NOW + 60 * MINUTE } } as never;
    expect(changeOf(stored(NOW + MINUTE), { entries: { s: listed } })).toBeUndefined();
    expect(changeOf(stored(NOW - 1), { entries: { s: listed } })).toHaveProperty(
      ["s", "protocol", "freshUntil"],
      NOW + 60 * MINUTE,
    );
  });

  test("a server that is of the old era now -> its entry says nothing of the protocol any more", () => {
    const written = changeOf({ s: { ...entry("h"), protocol } }, { entries: { s: entry("h") as never } });
    expect(written?.s).not.toHaveProperty("protocol");
  });
});

test("a list of where nobody can be asked, then the same list where a person can be -> the entry says so, and no longer", () => {
  const list = (more: object): SlotChanges =>
    changesOf({ s: entry("h", { tools: [{ name: "t" }], ...more }) });
  const read = (slots: Slots | undefined): KnownEntry | undefined =>
    findEntry(slots ?? new Map(), "s", ["h"], NOW)?.entry;
  const few = changeSlots(new Map(), list({ unattended: true }), NOW);
  expect(read(few)).toMatchObject({ unattended: true });
  const all = changeSlots(few ?? new Map(), list({}), NOW);
  expect(read(all)).toBeDefined();
  expect(read(all)).not.toHaveProperty("unattended");
});

describe("signs of tools", () => {
  const hidden = { name: "t", _meta: { ui: { visibility: ["app"] as ["app"] } } };
  const found = (stored: unknown): KnownEntry | undefined =>
    findEntry(new Map([["s", stored]]), "s", ["h"], NOW)?.entry;

  test("an entry that is written -> signs as servers write them, and pi-mcp-adapter's field", () => {
    const slots = changeSlots(new Map(), changesOf({ s: entry("h", { tools: [hidden], signs: true }) }), NOW);
    const stored = slots?.get("s");
    expect(stored).toMatchObject({ signs: true, tools: [{ ...hidden, uiVisibility: ["app"] }] });
    expect(found(stored)?.tools).toEqual([hidden]);
  });

  test("the server shows the tool again -> nothing of it is left", () => {
    const before =
      changeSlots(new Map(), changesOf({ s: entry("h", { tools: [hidden], signs: true }) }), NOW) ??
      new Map();
    const after = changeSlots(
      before,
      changesOf({ s: entry("h", { tools: [{ name: "t" }], signs: true }) }),
      NOW,
    );
    expect(after?.get("s")).toMatchObject({ tools: [{ name: "t" }] });
    expect(found(after?.get("s"))?.tools).toEqual([{ name: "t" }]);
  });

  test.each<[string, object]>([
    ["templates", { resourceTemplates: [] }],
    ["the protocol", { protocol: { version: "2026-07-28", offers: [], freshUntil: 0 } }],
    ["a stamp that is none", { resourceTemplates: [], signs: "true" }],
  ])("an entry of an earlier version, known by %s -> does not count", (_case, more) => {
    expect(found({ ...entry("h"), ...more })).toBeUndefined();
    expect(found({ ...entry("h"), ...more, signs: true })).toBeDefined();
  });

  test("an entry of pi-mcp-adapter -> counts, and its own field hides", () => {
    const tools = [{ name: "t", uiVisibility: ["app"] }, { name: "u" }];
    expect(found({ ...entry("h"), tools })?.tools).toEqual([hidden, { name: "u" }]);
  });
});
