/** Owns: which servers of other programs are found for a person, and whose each is. The files are real. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { findHosts } from "../../../../../workers/connection/config/found/found.ts";
import { facts, put, temporaryFolder } from "./support.ts";

/** Each found file below the home folder, whose it is, and the commands of its servers. */
async function found(home: string, cwd: string): Promise<[string, string, Record<string, unknown>][]> {
  const hosts = await findHosts(facts({ home, cwd, agentDir: join(home, ".pi", "agent") }));
  return hosts.flatMap(({ files }) =>
    files.map(({ source, servers }): [string, string, Record<string, unknown>] => [
      source.file.slice(home.length + 1),
      source.origin,
      Object.fromEntries(servers.map(({ name, raw }) => [name, raw.command])),
    ]),
  );
}

const cursor = (servers: Record<string, string>) => ({
  mcpServers: Object.fromEntries(Object.entries(servers).map(([name, command]) => [name, { command }])),
});

test("a project's server has the name of one of the user's own -> both are found, each in its file", async () => {
  const home = await temporaryFolder();
  const cwd = join(home, "clone");
  await put(join(home, ".cursor", "mcp.json"), cursor({ github: "mine", docs: "docs" }));
  await put(join(cwd, ".cursor", "mcp.json"), cursor({ github: "theirs" }));
  expect(await found(home, cwd)).toEqual([
    [join(".cursor", "mcp.json"), "import", { github: "mine", docs: "docs" }],
    [join("clone", ".cursor", "mcp.json"), "project-file", { github: "theirs" }],
  ]);
});

test("in the home folder -> the user's file is found once, as the user's own", async () => {
  const home = await temporaryFolder();
  await put(join(home, ".cursor", "mcp.json"), cursor({ github: "mine" }));
  expect(await found(home, home)).toEqual([[join(".cursor", "mcp.json"), "import", { github: "mine" }]]);
});

test("a file of the user's changes a server of the project -> that server is the project's", async () => {
  const home = await temporaryFolder();
  const cwd = join(home, "clone");
  await put(join(cwd, "opencode.json"), { mcp: { tool: { type: "local", command: ["theirs"] } } });
  await put(join(home, ".opencode", "opencode.json"), {
    mcp: { tool: { enabled: true }, own: { type: "local", command: ["mine"] } },
  });
  expect(await found(home, cwd)).toEqual([
    [join("clone", "opencode.json"), "project-file", {}],
    [join(".opencode", "opencode.json"), "import", { own: "mine" }],
    [join(".opencode", "opencode.json"), "project-file", { tool: "theirs" }],
  ]);
});

test("nested folders with servers and rules in each file -> each server has the rules of all", async () => {
  const home = await temporaryFolder();
  const root = join(home, "clone");
  const cwd = join(root, "a", "b");
  await put(join(root, ".git", "HEAD"), "ref: refs/heads/main");
  const folders = [root, join(root, "a"), cwd].flatMap((folder) => [folder, join(folder, ".opencode")]);
  for (const [at, folder] of folders.entries()) {
    const permission = { [`*_t${at}`]: "ask" };
    const mcp = {
      [`s${at}`]: { type: "local", command: ["x"] },
      same: { type: "local", command: [`${at}`] },
    };
    await put(join(folder, "opencode.json"), { mcp, permission });
  }
  const hosts = await findHosts(facts({ home, cwd, agentDir: join(home, ".pi", "agent") }));
  const servers = hosts.flatMap(({ files }) => files.flatMap((file) => file.servers));
  // The star may be a part of the server's name or all of it.
  const asked = ["*_t", "t"].flatMap((start) => folders.map((_, at) => `${start}${at}`));
  const rules = servers.map(({ name, approve }) => [name, Object.keys(approve ?? {}).sort()] as const);
  expect(Object.fromEntries(rules)).toEqual(
    Object.fromEntries(["same", ...folders.map((_, at) => `s${at}`)].map((name) => [name, asked])),
  );
  expect(servers).toHaveLength(folders.length + 1);
});
