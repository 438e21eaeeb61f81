/**
 * Owns: a path of configuration that is not a regular file: the start reports the kind of the file, waits for nothing,
 * and every other file counts.
 */
import { execFile } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { describeProblem } from "../../../../../../src/shared/text/failure.ts";
import { readEnvFile } from "../../../../../../workers/connection/config/env-files/env-files.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import { loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { loadTrust, remember } from "../../../../../../workers/connection/config/trust/file.ts";
import { facts, put, temporaryFolder } from "../support.ts";

interface Place {
  at: ConfigFacts;
  user: string;
}

async function place(): Promise<Place> {
  const home = await temporaryFolder();
  const at = facts({ home, agentDir: join(home, "agent"), cwd: join(home, "work") });
  return { at, user: join(at.agentDir, "mcp.json") };
}

const pipe = async (path: string): Promise<unknown> => promisify(execFile)("mkfifo", [path]);

/** The thing at the path, how it is made, and how it is reported. */
const CASES: [string, (path: string) => Promise<unknown>, string][] = [
  ["a named pipe", pipe, "it is a named pipe, not a regular file"],
  [
    "a link to the terminal",
    (path) => symlink("/dev/tty", path),
    "it is a terminal or another device, not a regular file",
  ],
  [
    "a link to a device without an end",
    (path) => symlink("/dev/zero", path),
    "it is a terminal or another device, not a regular file",
  ],
  ["a folder", (path) => mkdir(path), "EISDIR: it is a folder, not a regular file"],
  ["a link to itself", (path) => symlink(path, path), "ELOOP: it is a link that leads back to itself"],
];

describe("loadConfig", () => {
  it.each(CASES)("%s as .mcp.json -> one problem, the user's servers start", async (_what, make, told) => {
    const { at, user } = await place();
    await put(user, { mcpServers: { healthy: { command: "x" } } });
    await mkdir(at.cwd);
    const file = join(at.cwd, ".mcp.json");
    await make(file);
    const { servers, problems, broken } = await loadConfig(at);
    expect(servers.map(({ name }) => name)).toEqual(["healthy"]);
    expect(problems.map(describeProblem)).toEqual([
      `${file}:1:1: cannot be read: ${told}. Put a regular file there, or delete it.`,
    ]);
    expect(broken).toEqual([file]);
  });

  it.each([
    [".pi/mcp.json", {}],
    [".cursor/mcp.json", { imports: ["cursor"] }],
    [".codex/config.toml", { imports: ["codex"] }],
    [".vscode/mcp.json", { imports: ["vscode"] }],
    ["opencode.json", { imports: ["opencode"] }],
  ])("a named pipe as %s -> one problem, the user's servers start", async (name, imports) => {
    const { at, user } = await place();
    await put(user, { mcpServers: { healthy: { command: "x" } }, ...imports });
    const file = join(at.cwd, name);
    await mkdir(dirname(file), { recursive: true });
    await pipe(file);
    const { servers, problems } = await loadConfig(at);
    expect(servers.map((server) => server.name)).toEqual(["healthy"]);
    expect(problems).toMatchObject([{ file, message: expect.stringContaining("it is a named pipe") }]);
  });

  test("a link to a regular file -> read", async () => {
    const { at, user } = await place();
    await put(join(at.home, "dotfiles", "mcp.json"), { mcpServers: { linked: { command: "x" } } });
    await mkdir(at.agentDir);
    await symlink(join("..", "dotfiles", "mcp.json"), user);
    const { servers, problems } = await loadConfig(at);
    expect([servers.map(({ name }) => name), problems]).toEqual([["linked"], []]);
  });

  test("a project's file over the project's limit -> reported; the user's own file may be larger", async () => {
    const { at, user } = await place();
    const large = (name: string): string =>
      `${JSON.stringify({ mcpServers: { [name]: { command: "x" } } })}${" ".repeat(LIMITS.projectFileBytes)}`;
    await put(user, large("own"));
    await put(join(at.cwd, ".mcp.json"), large("project"));
    const { servers, problems } = await loadConfig(at);
    expect(servers.map(({ name }) => name)).toEqual(["own"]);
    expect(problems.map(describeProblem)).toEqual([
      `${join(at.cwd, ".mcp.json")}:1:1: cannot be read: it is larger than 1 MiB. Make the file smaller, or delete it.`,
    ]);
  });
});

test("a named pipe as envFile -> a reason, at once", async () => {
  const file = join(await temporaryFolder(), ".env");
  await pipe(file);
  expect(await readEnvFile(file)).toEqual({ reason: "it is a named pipe, not a regular file" });
});

test("a named pipe as mcp-trust.json -> no consent counts, at once, and none is written", async () => {
  const file = join(await temporaryFolder(), "mcp-trust.json");
  await pipe(file);
  const { consents, problem } = await loadTrust(file);
  expect(consents).toEqual([]);
  expect(problem?.message).toBe(
    "no consent in it counts: it cannot be read (it is a named pipe, not a regular file)",
  );
  await expect(remember(file, [])).rejects.toThrow("it is a named pipe");
});
