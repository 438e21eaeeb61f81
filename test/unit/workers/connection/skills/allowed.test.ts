/** Owns: which skills the file of kept answers lets in, and what no broken file and no second process takes away. */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import type { LoadedSkill } from "../../../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { AllowedSkills } from "../../../../../workers/connection/skills/allowed.ts";
import { oneFile } from "../../../../support/one-file.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";

const A = "a".repeat(64);
const B = "b".repeat(64);
const SKILL: LoadedSkill = { server: "s", uri: "skill://pdf/SKILL.md", name: "pdf", content: A };

async function setup() {
  const folder = await tempFolder();
  const file = join(folder, "agent", "mcp-skills.json");
  const { log, lines } = recordingLog();
  const written = async (): Promise<LoadedSkill[]> => JSON.parse(await readFile(file, "utf8")).skills;
  const put = async (text: string): Promise<void> => {
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, text);
  };
  return { folder, file, lines, written, put, allowed: new AllowedSkills(file, log) };
}

test("no file -> nothing is allowed, and nothing is written", async () => {
  const { allowed, folder, lines } = await setup();
  expect(await allowed.has(SKILL)).toBe(false);
  expect(await readdir(folder)).toEqual([]);
  expect(lines).toEqual([]);
});

test("a kept yes -> for just this server, address and content, in a private file", async () => {
  const { allowed, file, written } = await setup();
  await allowed.add(SKILL);
  expect(await allowed.has({ ...SKILL, name: "other label" })).toBe(true);
  for (const over of [{ server: "t" }, { uri: "skill://x/SKILL.md" }, { content: B }, { content: "" }])
    expect(await allowed.has({ ...SKILL, ...over })).toBe(false);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await written()).toEqual([{ ...SKILL, at: expect.any(Number) }]);
});

test("another content -> the yes to the one before ends", async () => {
  const { allowed, written } = await setup();
  await allowed.add(SKILL);
  await allowed.add({ ...SKILL, content: B });
  expect(await allowed.has(SKILL)).toBe(false);
  expect(await allowed.has({ ...SKILL, content: B })).toBe(true);
  expect(await written()).toHaveLength(1);
});

test("taken back -> it is asked about again, the others stay; an id that names none changes nothing", async () => {
  const { allowed, written } = await setup();
  expect(await allowed.decisions()).toEqual([]);
  await allowed.add(SKILL);
  await allowed.add({ ...SKILL, server: "t" });
  const told = await allowed.decisions();
  expect(told).toHaveLength(2);
  const mine = told.find(({ server }) => server === "s");
  expect(mine).toMatchObject({ skill: "pdf", file: SKILL.uri, decision: "allowed", here: true });
  expect(await allowed.takeBack("of a server")).toBe(false);
  expect(await allowed.takeBack(mine?.id ?? "")).toBe(true);
  expect(await allowed.has(SKILL)).toBe(false);
  expect((await written()).map(({ server }) => server)).toEqual(["t"]);
});

test("another session has kept one meanwhile -> known at once, and neither is lost", async () => {
  const { allowed, file } = await setup();
  await allowed.add(SKILL);
  const other = new AllowedSkills(file, recordingLog().log);
  await other.add({ ...SKILL, server: "t" });
  expect(await allowed.has({ ...SKILL, server: "t" })).toBe(true);
  expect(await other.has(SKILL)).toBe(true);
});

test("answers at the same time, of one process and of four -> all are kept", async () => {
  const { allowed, file, written } = await setup();
  await Promise.all(
    Array.from({ length: 8 }, (_, i) => allowed.add({ ...SKILL, uri: `skill://${i}/SKILL.md` })),
  );
  const program = oneFile(
    "adds-skills",
    join(import.meta.dirname, "../../../../fixtures/cache/adds-skills.ts"),
  );
  const run = (prefix: string) => promisify(execFile)(process.execPath, [program.file, file, prefix, "6"]);
  await Promise.all(["w", "x", "y", "z"].map(run));
  expect(await written()).toHaveLength(32);
  expect(await readdir(join(file, ".."))).toEqual(["mcp-skills.json"]);
});

test("more than the limit -> the oldest yes goes first", async () => {
  const { allowed, put, written } = await setup();
  const many = Array.from({ length: LIMITS.skillsAllowed }, (_, i) => ({
    ...SKILL,
    uri: `skill://${i}/SKILL.md`,
    at: i,
  }));
  await put(JSON.stringify({ version: 1, skills: many }));
  await allowed.add({ ...SKILL, uri: "skill://new/SKILL.md" });
  expect(await written()).toHaveLength(LIMITS.skillsAllowed);
  expect(await allowed.has({ ...SKILL, uri: "skill://0/SKILL.md" })).toBe(false);
  expect(await allowed.has({ ...SKILL, uri: "skill://1/SKILL.md" })).toBe(true);
  expect(await allowed.has({ ...SKILL, uri: "skill://new/SKILL.md" })).toBe(true);
});

describe("a broken file", () => {
  test.each<[string, string]>([
    ["empty", ""],
    ["half", '{"version":1,"skills":['],
    ["of another version", JSON.stringify({ version: 2, skills: [] })],
    ["of another form", "[]"],
    ["with a yes to any content", JSON.stringify({ version: 1, skills: [{ ...SKILL, content: "", at: 1 }] })],
    [
      "with a pattern for a content",
      JSON.stringify({ version: 1, skills: [{ ...SKILL, content: "*", at: 1 }] }),
    ],
    [
      "too long",
      `${" ".repeat(8 * 1024 * 1024)}${JSON.stringify({ version: 1, skills: [{ ...SKILL, at: 1 }] })}`,
    ],
  ])("%s -> nothing is allowed; the next yes keeps it aside", async (_, text) => {
    const { allowed, file, put, written } = await setup();
    await put(text);
    expect(await allowed.has(SKILL)).toBe(false);
    expect(await readFile(file, "utf8")).toBe(text);
    await allowed.add(SKILL);
    expect(await allowed.has(SKILL)).toBe(true);
    expect(await written()).toHaveLength(1);
    const [, aside = ""] = (await readdir(join(file, ".."))).sort((a, b) => a.length - b.length);
    expect(aside).toMatch(/^mcp-skills\.json\.corrupt-/);
    expect(await readFile(join(file, "..", aside), "utf8")).toBe(text);
  });

  test("keys of a prototype -> nothing is allowed", async () => {
    const { allowed, put } = await setup();
    await put(`{"version":1,"__proto__":{"skills":[${JSON.stringify({ ...SKILL, at: 1 })}]}}`);
    expect(await allowed.has(SKILL)).toBe(false);
  });
});

test("a folder in its place -> nothing is allowed, the log says why, and the yes is refused with the reason", async () => {
  const { allowed, file, lines } = await setup();
  await mkdir(file, { recursive: true });
  expect(await allowed.has(SKILL)).toBe(false);
  expect(lines).toEqual([expect.stringMatching(/^warn .*mcp-skills\.json cannot be read/)]);
  await expect(allowed.add(SKILL)).rejects.toThrow();
  expect(await readdir(join(file, ".."))).toEqual(["mcp-skills.json"]);
});

test("a link -> the file behind it is written, and the link stays", async () => {
  const { allowed, folder, file } = await setup();
  await mkdir(join(file, ".."), { recursive: true });
  await symlink(join(folder, "real.json"), file);
  await allowed.add(SKILL);
  expect(JSON.parse(await readFile(join(folder, "real.json"), "utf8")).skills).toHaveLength(1);
  expect(await allowed.has(SKILL)).toBe(true);
});

test("a folder that cannot be made -> the yes is refused with the reason", async () => {
  const { folder } = await setup();
  await writeFile(join(folder, "file"), "");
  const { log } = recordingLog();
  await expect(new AllowedSkills(join(folder, "file", "mcp-skills.json"), log).add(SKILL)).rejects.toThrow(
    /ENOTDIR|EEXIST/,
  );
});
