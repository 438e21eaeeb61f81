/** Owns: which files are read, and how they are merged. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { describeProblem, loadConfig } from "../../../../../workers/connection/config/load.ts";
import { cacheFile, configSources } from "../../../../../workers/connection/config/paths.ts";
import { tempFolder } from "../../../temp-folder.ts";

async function write(file: string, content: unknown): Promise<string> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

describe("configSources", () => {
  it.each([
    [true, ["/agent/mcp.json", "/cwd/.pi/mcp.json"]],
    [false, ["/agent/mcp.json"]],
  ])("project trusted: %s -> %j", (projectTrusted, files) => {
    const sources = configSources({ agentDir: "/agent", cwd: "/cwd", projectTrusted });
    expect(sources.map(({ file }) => file)).toEqual(files);
    expect(sources.map(({ project }) => project)).toEqual([false, true].slice(0, files.length));
  });
});

test("cacheFile: the agent folder -> mcp-cache.json in it", () => {
  expect(cacheFile("/agent")).toBe("/agent/mcp-cache.json");
});

describe("loadConfig", () => {
  test("one server in both files -> the project's replaces the user's whole, the others stay", async () => {
    const folder = await tempFolder();
    const user = await write(join(folder, "user.json"), {
      mcpServers: { a: { command: "user", env: { A: "1" } }, b: { command: "b" } },
    });
    const project = await write(join(folder, "project.json"), {
      mcpServers: { a: { command: "project" }, c: { command: "c" } },
    });
    const { servers, problems, files } = await loadConfig([
      { file: user, project: false },
      { file: project, project: true },
    ]);
    expect(problems).toEqual([]);
    expect(files).toEqual([user, project]);
    expect(servers.map(({ name, file }) => [name, file])).toEqual([
      ["a", project],
      ["b", user],
      ["c", project],
    ]);
    expect(servers[0]).toMatchObject({ project: true, target: { command: "project", env: {} } });
  });

  test("a broken file beside a good one -> the good one's servers and the broken one's problem", async () => {
    const folder = await tempFolder();
    const good = await write(join(folder, "good.json"), { mcpServers: { a: { command: "a" } } });
    const broken = await write(join(folder, "broken.json"), "{");
    const { servers, problems } = await loadConfig([
      { file: good, project: false },
      { file: broken, project: true },
    ]);
    expect(servers.map(({ name }) => name)).toEqual(["a"]);
    expect(problems).toMatchObject([{ file: broken, line: 1 }]);
  });

  test("a broken entry in the project's file -> the user's server of that name stays", async () => {
    const folder = await tempFolder();
    const user = await write(join(folder, "user.json"), { mcpServers: { a: { command: "user" } } });
    const project = await write(join(folder, "project.json"), { mcpServers: { a: { command: 5 } } });
    const { servers, problems } = await loadConfig([
      { file: user, project: false },
      { file: project, project: true },
    ]);
    expect(servers).toMatchObject([{ name: "a", file: user }]);
    expect(problems).toHaveLength(1);
  });

  test("no file at all -> nothing, but the places are named", async () => {
    const file = join(await tempFolder(), "none.json");
    expect(await loadConfig([{ file, project: false }])).toEqual({
      servers: [],
      problems: [],
      files: [file],
    });
  });
});

it.each([
  [
    { file: "/m", line: 2, column: 5, key: "mcpServers.a", message: "wrong", remedy: "Fix it." },
    "/m:2:5: mcpServers.a: wrong. Fix it.",
  ],
  [
    { file: "/m", line: 1, column: 1, message: "the file is empty", remedy: "Write." },
    "/m:1:1: the file is empty. Write.",
  ],
  [{ file: "/m", message: "cannot be read", remedy: "Allow it." }, "/m: cannot be read. Allow it."],
])("describeProblem: %j -> %s", (problem, line) => {
  expect(describeProblem(problem)).toBe(line);
});
