/** Owns: what is asked of a server that declares skills, how often, and what is kept of any answer. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  getSkill,
  listSkills,
  readDirectory,
  type SendRequest,
} from "../../../../../workers/connection/mcp/lists.ts";
import { FRESH_LEAST_MS, FRESH_MOST_MS } from "../../../../../workers/connection/mcp/modern/limits.ts";
import { capabilitiesFrom, offersOf } from "../../../../../workers/connection/mcp/modern/server.ts";
import { SKILLS_EXTENSION } from "../../../../../workers/shared/skills.ts";

const entry = (name: string | number) => {
  const uri = `skill://${name}/SKILL.md`;
  const resources = [{ uri, digest: `sha256:${"a".repeat(64)}`, size: 1 }];
  return { uri, frontmatter: { name: `${name}`, description: "x" }, resources };
};

interface Asked {
  method: string;
  params?: Record<string, unknown>;
}

/** A server that answers each request with what `answer` makes of it. */
function server(answer: (asked: Asked, count: number) => Record<string, unknown>) {
  const asked: Asked[] = [];
  const send: SendRequest = async (request) => answer(request, asked.push(request));
  const notes: string[] = [];
  const listing = {
    signal: new AbortController().signal,
    limitMs: 60_000,
    onNote: (note: string) => notes.push(note),
    era: "legacy" as const,
  };
  return { send, asked, notes, listing, list: () => listSkills(send, listing) };
}

const failing = (code: number) => {
  throw Object.assign(new Error("no"), { code });
};

describe("skills/list", () => {
  test("all pages -> each address once, in order, and the shortest time counts", async () => {
    const at = server(({ params }) =>
      params
        ? { skills: [entry("b"), entry("a")], ttlMs: 120_000 }
        : { skills: [entry("a")], nextCursor: "2", ttlMs: 300_000 },
    );
    const before = Date.now();
    const listed = await at.list();
    expect(listed?.skills.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(listed?.freshUntil).toBeGreaterThanOrEqual(before + 120_000);
    expect(listed?.freshUntil).toBeLessThanOrEqual(Date.now() + 120_000);
    expect(at.asked.map(({ method, params }) => [method, params?.cursor])).toEqual([
      ["skills/list", undefined],
      ["skills/list", "2"],
    ]);
  });

  test.each([
    [0, FRESH_LEAST_MS],
    [-1, FRESH_LEAST_MS],
    [-1e308, FRESH_LEAST_MS],
    [1, FRESH_LEAST_MS],
    [1e308, FRESH_MOST_MS],
    [Number.NaN, FRESH_LEAST_MS],
    ["300000", FRESH_LEAST_MS],
    [undefined, FRESH_LEAST_MS],
  ])("a ttlMs of %j -> within the bounds", async (ttlMs, freshMs) => {
    const before = Date.now();
    const listed = await server(() => ({ skills: [], ttlMs })).list();
    expect(listed?.freshUntil).toBeGreaterThanOrEqual(before + freshMs);
    expect(listed?.freshUntil).toBeLessThanOrEqual(Date.now() + freshMs);
  });

  test.each<[string, Record<string, unknown>]>([
    ["nothing", {}],
    ["a text", { skills: "skills" }],
    ["an object", { skills: { 0: entry("a") } }],
    ["items that name no skill", { skills: [null, 7, "a", [], { uri: "x" }, { frontmatter: {} }] }],
  ])("%s -> no skills", async (_, result) => {
    expect((await server(() => result).list())?.skills).toEqual([]);
  });

  test("a cursor that comes again, and cursors for ever -> it ends", async () => {
    const again = server(() => ({ skills: [entry("a")], nextCursor: "x" }));
    expect((await again.list())?.skills).toHaveLength(1);
    expect(again.asked).toHaveLength(2);
    const ever = server((_, count) => ({ skills: [], nextCursor: `${count}` }));
    expect((await ever.list())?.skills).toEqual([]);
    expect(ever.asked).toHaveLength(LIMITS.listPages);
    expect(ever.notes).toEqual(["lists its skills on more than 200 pages; further pages were not asked for"]);
    const just = server((_, count) => ({
      skills: [],
      ...(count < LIMITS.listPages && { nextCursor: `${count}` }),
    }));
    await just.list();
    expect(just.asked).toHaveLength(LIMITS.listPages);
    expect([...again.notes, ...just.notes]).toEqual([]);
  });

  test("10,000 on one page -> the first thousand, and a note that names others", async () => {
    const at = server(() => ({
      skills: Array.from({ length: 10_000 }, (_, i) => entry(i)),
      nextCursor: "2",
    }));
    expect((await at.list())?.skills).toHaveLength(LIMITS.skillsPerServer);
    expect(at.asked).toHaveLength(1);
    expect(at.notes).toEqual([
      expect.stringMatching(
        /^lists more than 1,000 skills, and these are left out: 1000, 1001, .* and 8,980 more; further pages were not asked for$/,
      ),
    ]);
  });

  test("a thousand, then a further page -> the note, too; just a thousand -> none", async () => {
    const thousand = Array.from({ length: LIMITS.skillsPerServer }, (_, i) => entry(i));
    const more = server(({ params }) =>
      params ? { skills: [entry("x")] } : { skills: thousand, nextCursor: "2" },
    );
    expect((await more.list())?.skills).toHaveLength(LIMITS.skillsPerServer);
    expect(more.notes).toEqual(["lists more than 1,000 skills, and these are left out: x"]);
    const just = server(() => ({ skills: thousand }));
    expect((await just.list())?.skills).toHaveLength(LIMITS.skillsPerServer);
    expect(just.notes).toEqual([]);
  });

  test("skills of megabytes -> bounded, and said", async () => {
    const large = (i: number) => ({
      ...entry(i),
      frontmatter: { ...entry(i).frontmatter, x: "y".repeat(60_000) },
    });
    const at = server(() => ({ skills: Array.from({ length: 700 }, (_, i) => large(i)) }));
    const listed = await at.list();
    expect(JSON.stringify(listed?.skills).length).toBeLessThan(LIMITS.listBytes + 100_000);
    expect(at.notes[0]).toMatch(/MiB of skills/);
  });

  test("the method is unknown -> none; any other failure -> unknown, with a note", async () => {
    expect((await server(() => failing(-32601)).list())?.skills).toEqual([]);
    const at = server(() => failing(-32603));
    expect(await at.list()).toBeUndefined();
    expect(at.notes).toEqual(["does not list its skills: no"]);
  });
});

describe("skills/get", () => {
  const get = (answer: () => Record<string, unknown>, uri = entry("a").uri) =>
    getSkill(server(answer).send, { uri, signal: new AbortController().signal });

  test("the skill of the address -> its entry, also with a fault", async () => {
    expect(await get(() => ({ skill: entry("a") }))).toMatchObject({ name: "a" });
    expect(await get(() => ({ skill: { ...entry("a"), resources: [] } }))).toMatchObject({
      fault: "it does not list its own SKILL.md",
    });
  });

  test.each<[string, Record<string, unknown>]>([
    ["nothing", {}],
    ["null", { skill: null }],
    ["another skill", { skill: entry("b") }],
    ["a list", { skills: [entry("a")] }],
    ["the address in other letters", { skill: { ...entry("a"), uri: "SKILL://a/SKILL.md" } }],
  ])("%s -> no entry", async (_, result) => {
    expect(await get(() => result)).toBeUndefined();
  });

  test("-32602 -> there is none; another error -> that error", async () => {
    expect(await get(() => failing(-32602))).toBe("none");
    await expect(get(() => failing(-32603))).rejects.toThrow("no");
  });
});

describe("resources/directory/read", () => {
  const read = (answer: Parameters<typeof server>[0]) => {
    const at = server(answer);
    return { at, found: readDirectory(at.send, at.listing, "skill://a") };
  };

  test("all pages -> the addresses, folders with a slash, and every request names the folder", async () => {
    const { at, found } = read(({ params }) =>
      params?.cursor
        ? { resources: [{ uri: "skill://a/c", mimeType: "inode/directory" }] }
        : { resources: [{ uri: "skill://a/b.md" }, null, { uri: 7 }], nextCursor: "2" },
    );
    expect(await found).toEqual(["skill://a/b.md", "skill://a/c/"]);
    expect(at.asked.map(({ params }) => params)).toEqual([
      { uri: "skill://a" },
      { cursor: "2", uri: "skill://a" },
    ]);
  });

  test("a flood of names, and cursors for ever -> it ends", async () => {
    const flood = Array.from({ length: 100_000 }, (_, i) => ({ uri: `skill://a/${i}` }));
    expect(await read(() => ({ resources: flood, nextCursor: "2" })).found).toHaveLength(LIMITS.skillFiles);
    const { at, found } = read((_, count) => ({ resources: [], nextCursor: `${count}` }));
    expect(await found).toEqual([]);
    expect(at.asked).toHaveLength(LIMITS.listPages);
    expect(at.notes).toEqual([
      "lists a folder of a skill on more than 200 pages; further pages were not asked for",
    ]);
  });
});

describe("what a server of 2026-07-28 declares", () => {
  const words = (declared: unknown) =>
    offersOf({ resources: {}, extensions: { [SKILLS_EXTENSION]: declared } });

  test.each<[unknown, string[], object | undefined]>([
    [{}, ["resources", "skills"], { directoryRead: false }],
    [{ directoryRead: true }, ["resources", "skills", "skills.directoryRead"], { directoryRead: true }],
    [{ directoryRead: "yes" }, ["resources", "skills"], { directoryRead: false }],
    [true, ["resources"], undefined],
    [null, ["resources"], undefined],
  ])("%j -> kept and found again", (declared, kept, found) => {
    expect(words(declared)).toEqual(kept);
    const { extensions } = capabilitiesFrom(kept) as { extensions?: Record<string, unknown> };
    expect(extensions?.[SKILLS_EXTENSION]).toEqual(found);
    expect(offersOf(capabilitiesFrom(kept))).toEqual(kept);
  });

  test("no extensions, or odd ones -> no skills", () => {
    for (const extensions of [undefined, null, [], "x", { skills: {} }])
      expect(offersOf({ resources: {}, extensions })).toEqual(["resources"]);
  });
});
