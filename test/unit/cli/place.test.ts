/** Owns: the check of Pi's agent folder, and whether the project counts as trusted, in the cases in which Pi 1.5.2 decides the same. */

import { chmod, mkdir, realpath, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeAgentFolder, piTrust } from "../../../src/cli/place/place.ts";
import { tempFolder } from "../temp-folder.ts";

test("a folder that is not there yet -> it is made, with the folders above it", async () => {
  const folder = join(await tempFolder(), "a", "b");
  makeAgentFolder(folder);
  makeAgentFolder(folder);
  expect((await stat(folder)).isDirectory()).toBe(true);
});

test("a file in its place, or above it -> a failure that names the folder and the variable", async () => {
  const file = join(await tempFolder(), "file");
  await writeFile(file, "");
  for (const folder of [file, join(file, "agent")]) {
    expect(() => makeAgentFolder(folder)).toThrow(
      expect.objectContaining({
        exitCode: 7,
        message: expect.stringContaining(`Pi's agent folder ${folder} cannot be made (`),
        remedy: "Correct PI_CODING_AGENT_DIR.",
      }),
    );
  }
});

// Node's recursive mkdir never ends there. On other systems there is no /proc, and nothing may be made at the root.
test.runIf(process.platform === "linux")("/proc/nope -> a failure, at once", () => {
  expect(() => makeAgentFolder("/proc/nope/agent")).toThrow(/cannot be made \(ENOENT\)/);
});

test("a folder in which this user may write nothing -> no failure: commands that only read work there", async () => {
  const above = join(await tempFolder(), "above");
  await mkdir(above, { mode: 0o500 });
  expect(() => makeAgentFolder(join(above, "agent"))).not.toThrow();
  await chmod(above, 0o700);
});

interface Case {
  /** Content of trust.json by folder: `.` is the project, `..` the folder above it. A string is raw text. */
  trust?: Record<string, unknown> | string;
  /** Files below the project. */
  files?: string[];
}

async function decide({ trust, files = [] }: Case): Promise<ReturnType<typeof piTrust>> {
  const home = await realpath(await tempFolder());
  const project = join(home, "work", "project");
  await mkdir(project, { recursive: true });
  for (const file of files) {
    await mkdir(dirname(join(project, file)), { recursive: true });
    await writeFile(join(project, file), "{}");
  }
  if (trust !== undefined) {
    const content =
      typeof trust === "string"
        ? trust
        : JSON.stringify(
            Object.fromEntries(Object.entries(trust).map(([key, value]) => [join(project, key), value])),
          );
    await writeFile(join(home, "trust.json"), content);
  }
  return piTrust(home, project);
}

describe("trusted", () => {
  test.each<[string, Case, string]>([
    ["Pi's record", { trust: { ".": true }, files: [".pi/mcp.json"] }, "recorded"],
    ["the record of a folder above", { trust: { "..": true }, files: [".pi/mcp.json"] }, "recorded"],
    ["nothing in the folder needs trust", { files: [".mcp.json"] }, "nothing"],
    ["a record that was taken back", { trust: { ".": null }, files: [".mcp.json"] }, "nothing"],
  ])("%s", async (_name, given, trust) => {
    expect((await decide(given)).trust).toBe(trust);
  });
});

describe("not trusted", () => {
  test.each<[string, Case]>([
    ["no record", { files: [".pi/mcp.json"] }],
    ["no record, and only settings of Pi", { files: [".pi/settings.json", ".mcp.json"] }],
    ["no record, and skills", { files: [".agents/skills/x/SKILL.md"] }],
    ["a no", { trust: { ".": false }, files: [".mcp.json"] }],
    ["a no nearer than a yes", { trust: { ".": false, "..": true }, files: [".pi/mcp.json"] }],
    ["a yes for a folder beside it", { trust: { "../other": true }, files: [".pi/mcp.json"] }],
    ["a yes that is no boolean", { trust: { ".": "true" }, files: [".pi/mcp.json"] }],
    ["a broken file", { trust: "{", files: [".mcp.json"] }],
    ["a file that is a list", { trust: "[]", files: [".mcp.json"] }],
  ])("%s", async (_name, given) => {
    expect((await decide(given)).trust).toBe("no");
  });
});
