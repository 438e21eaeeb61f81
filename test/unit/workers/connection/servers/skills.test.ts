/** Owns: how a server's skills are listed, held and read over a connection, and what a call of one asks for. */
import { describe, expect, test } from "vitest";
import type { AskedCall } from "../../../../../workers/connection/approval/approval.ts";
import type { Connection } from "../../../../../workers/connection/mcp/connection.ts";
import { MustNegotiate } from "../../../../../workers/connection/mcp/wire/wire.ts";
import { callTool } from "../../../../../workers/connection/servers/call.ts";
import { type CachedSkill, contentOf, normalizeSkill } from "../../../../../workers/shared/skills.ts";
import { settle, setup } from "./support.ts";

function skill(letter = "a", path = "pdf"): CachedSkill {
  const uri = `skill://${path}/SKILL.md`;
  const resources = [{ uri, digest: `sha256:${letter.repeat(64)}`, size: 1 }];
  const made = normalizeSkill({ uri, frontmatter: { name: "pdf", description: "x" }, resources });
  if (!made) throw new Error("no skill");
  return made;
}

const HOUR = 3_600_000;
const listing = (skills: CachedSkill[], over: Partial<Connection> = {}): Partial<Connection> => ({
  skills: { directories: false },
  listSkills: async () => ({ skills, freshUntil: Date.now() + HOUR }),
  ...over,
});
const namesOf = ({ server }: ReturnType<typeof setup>): (string | undefined)[] | undefined =>
  server.skills?.map(({ name }) => name);

test("declared -> listed once with the tools; not declared, or switched off -> not asked", async () => {
  let asked = 0;
  const listSkills = async () => {
    asked++;
    return { skills: [skill()], freshUntil: 0 };
  };
  const declared = setup();
  await declared.connected(listing([], { listSkills }));
  expect(namesOf(declared)).toEqual(["pdf"]);
  expect(asked).toBe(1);
  for (const [entry, over] of [
    [{}, { skills: undefined, listSkills }],
    [{ skills: false }, listing([], { listSkills })],
  ] as const) {
    const at = setup(entry);
    await at.connected(over);
    expect(at.server.skills).toBeUndefined();
  }
  expect(asked).toBe(1);
});

test("a list that fails -> an empty one, so that an address still loads; the one before stays", async () => {
  const at = setup();
  await at.connected(listing([], { listSkills: async () => undefined }));
  expect(at.server.skills).toEqual([]);
  expect(at.server.skillTool("skill_by_address")).toBeDefined();
  const before = setup();
  before.server.inherit({ held: [], skills: [skill()] });
  await before.connected(listing([], { listSkills: async () => undefined }));
  expect(namesOf(before)).toEqual(["pdf"]);
});

test("a list that never comes -> the tools come all the same; a late one is told", async () => {
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Connection["listSkills"]>>>();
  const at = setup();
  await at.connected(listing([], { listSkills: () => promise }));
  expect(at.server.tools).toHaveLength(1);
  const lists = at.lists();
  resolve({ skills: [skill()], freshUntil: Date.now() + HOUR });
  await settle();
  expect(namesOf(at)).toEqual(["pdf"]);
  expect(at.lists()).toBeGreaterThan(lists);
});

describe("what is held of a skill", () => {
  test("as long as the server said -> fresh; from the cache -> stale; told since -> that", async () => {
    const at = setup();
    at.server.inherit({ held: [], skills: [skill()] });
    expect(at.server.heldSkill(skill().uri)).toEqual({ skill: skill(), isStale: true });
    await at.connected(listing([skill()]));
    expect(at.server.heldSkill(skill().uri)).toEqual({ skill: skill(), isStale: false });
    at.server.holdSkill(skill("b"));
    expect(at.server.heldSkill(skill().uri)).toEqual({ skill: skill("b"), isStale: false });
    expect(at.server.heldSkill("skill://x/SKILL.md")).toBeUndefined();
    await at.server.relist();
    expect(at.server.heldSkill(skill().uri)).toEqual({ skill: skill(), isStale: false });
  });

  test("ten thousand told ones -> a bounded number, the newest", () => {
    const at = setup();
    for (let i = 0; i < 3_000; i++) at.server.holdSkill(skill("a", `p${i}/pdf`));
    const held = Array.from({ length: 3_000 }, (_, i) => at.server.heldSkill(`skill://p${i}/pdf/SKILL.md`));
    expect(held.filter(Boolean)).toHaveLength(1_000);
    expect(held.at(-1)).toBeDefined();
  });
});

describe("a call", () => {
  const asked = (tool = "skill_pdf", args: Record<string, unknown> = {}) => ({
    callId: "1",
    tool,
    args,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });

  test("the tool of a skill -> its SKILL.md is read, once the skill was let in", async () => {
    const judged: AskedCall[] = [];
    const read: string[] = [];
    const at = setup({}, { context: { approvals: { of: (call) => void judged.push(call) as undefined } } });
    const readResource: Connection["readResource"] = async ({ uri }) => {
      read.push(uri);
      return { content: [] };
    };
    await at.connected(listing([skill()], { readResource }));
    const { file } = await callTool(at.server, asked());
    expect(read).toEqual([skill().uri]);
    expect(file).toMatchObject({ uri: skill().uri, listed: { size: 1 } });
    expect(judged[0]?.loads).toEqual({ of: skill(), byPerson: false });
    await callTool(at.server, { ...asked(), byPerson: true });
    expect(judged[1]?.loads).toEqual({ of: skill(), byPerson: true });
  });

  test("a no -> nothing is read", async () => {
    const at = setup({}, { context: { approvals: { of: () => Promise.reject(new Error("no")) } } });
    await at.connected(listing([skill()], { readResource: () => expect.unreachable() }));
    await expect(callTool(at.server, asked())).rejects.toThrow("no");
  });

  test("a skill that changes while the user is asked -> checked as it is then", async () => {
    let isChanged = false;
    const checked: unknown[] = [];
    const of = () => {
      isChanged = true;
      return Promise.resolve({
        check: (now: { skill?: CachedSkill }) => checked.push(now.skill && contentOf(now.skill)),
      });
    };
    const at = setup({}, { context: { approvals: { of: of as never } } });
    const getSkill = async () => (isChanged ? skill("b") : skill("a"));
    await at.connected(listing([], { getSkill, readResource: async () => ({ content: [] }) }));
    // Each entry that was told counts for a minute: as if that were over.
    at.server.holdSkill = () => undefined;
    await callTool(at.server, asked("skill_by_address", { uri: skill().uri }));
    expect(checked).toEqual([contentOf(skill("b"))]);
  });

  test("a server that is not the one that was remembered -> what it has now is judged, too", async () => {
    const judged: string[] = [];
    const of = ({ loads }: AskedCall) => void judged.push(loads ? contentOf(loads.of) : "") as undefined;
    const at = setup({}, { context: { approvals: { of } } });
    const readResource = async () => {
      throw new MustNegotiate("another era");
    };
    await at.connected(listing([skill("a")], { readResource: readResource as never }));
    const calling = callTool(at.server, asked());
    await settle();
    at.opening(1).open(listing([skill("b")], { readResource: async () => ({ content: [] }) }));
    await calling;
    expect(judged).toEqual([contentOf(skill("a")), contentOf(skill("b"))]);
  });

  /** The remembered skill needs no yes, the one that the server has now does; `check` is that of the yes. */
  const anotherServer = async (check: (now: CachedSkill | undefined) => void) => {
    const answer = Promise.withResolvers<void>();
    const of = ({ loads }: AskedCall) =>
      loads && contentOf(loads.of) === contentOf(skill("a"))
        ? undefined
        : answer.promise.then(() => ({ check: (now: { skill?: CachedSkill }) => check(now.skill) }));
    const at = setup({}, { context: { approvals: { of: of as never } } });
    const readResource = async () => {
      throw new MustNegotiate("another era");
    };
    await at.connected(listing([skill("a")], { readResource: readResource as never }));
    const read: string[] = [];
    let yeses = 0;
    const calling = callTool(at.server, asked(), () => yeses++);
    calling.catch(() => undefined);
    await settle();
    const readAgain: Connection["readResource"] = async ({ uri }) => {
      read.push(uri);
      return { content: [] };
    };
    at.opening(1).open(listing([skill("b")], { readResource: readAgain }));
    await settle();
    expect(read).toEqual([]);
    at.server.holdSkill(skill("c"));
    answer.resolve();
    return { calling, read, yeses: () => yeses };
  };

  test("the same, what it has now needs a yes, and changes meanwhile -> checked as it is then; the yes is told", async () => {
    const checked: unknown[] = [];
    const { calling, read, yeses } = await anotherServer((now) => checked.push(now && contentOf(now)));
    await calling;
    expect(checked).toEqual([contentOf(skill("c"))]);
    expect([read, yeses()]).toEqual([[skill().uri], 1]);
  });

  test("the same, and the yes is void -> nothing is read", async () => {
    const { calling, read } = await anotherServer(() => {
      throw new Error("changed");
    });
    await expect(calling).rejects.toThrow("changed");
    expect(read).toEqual([]);
  });

  test("a file of a skill as a resource -> refused; switched off -> read", async () => {
    const resources = { resources: [{ name: "pdf", uri: skill().uri }], templates: [] };
    const over = listing([skill()], { listResources: async () => resources });
    const at = setup();
    await at.connected(over);
    await expect(callTool(at.server, asked("get_pdf"))).rejects.toMatchObject({ code: "skill_refused" });
    const off = setup({ skills: false });
    await off.connected(over);
    expect((await callTool(off.server, asked("get_pdf"))).file).toBeUndefined();
  });
});
