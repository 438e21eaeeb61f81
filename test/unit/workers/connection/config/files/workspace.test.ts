/** Owns: which worktree and repository a folder belongs to. The folders are as git makes them. */
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findWorkspace } from "../../../../../../workers/connection/config/files/sources.ts";
import { loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { facts, put, temporaryFolder } from "../support.ts";

/** A repository and a worktree that `git worktree add` linked to it. */
async function linked(): Promise<{ home: string; repository: string; worktree: string }> {
  const home = await temporaryFolder();
  const [repository, worktree] = [join(home, "repo"), join(home, "trees", "feature")];
  const link = join(repository, ".git", "worktrees", "feature");
  await put(join(repository, ".git", "HEAD"), "ref: refs/heads/main\n");
  await put(join(link, "gitdir"), `${join(worktree, ".git")}\n`);
  await put(join(worktree, ".git"), `gitdir: ${link}\n`);
  return { home, repository, worktree };
}

test("a folder of a repository, and of a worktree that is linked to one", async () => {
  const { repository, worktree } = await linked();
  for (const folder of [repository, join(repository, "a", "b")])
    expect(await findWorkspace(folder)).toEqual({ worktree: repository, repository: undefined });
  expect(await findWorkspace(join(worktree, "a"))).toEqual({ worktree, repository });
});

test.each<[string, (at: Awaited<ReturnType<typeof linked>>) => string]>([
  [
    "names a repository that does not name it",
    ({ repository }) => `gitdir: ${repository}/.git/worktrees/feature`,
  ],
  ["is a submodule's", ({ repository }) => `gitdir: ${repository}/.git/modules/x`],
  ["names another machine", () => "gitdir: //127.0.0.1/share/.git/worktrees/x"],
  ["names nothing", () => "hello"],
  ["is too long", ({ repository }) => `gitdir: ${repository}/${"x".repeat(9_000)}/.git/worktrees/x`],
])("a .git file that %s -> a repository of its own", async (_, textOf) => {
  const at = await linked();
  const clone = join(at.home, "clone");
  await put(join(clone, ".git"), textOf(at));
  expect(await findWorkspace(clone)).toEqual({ worktree: clone, repository: undefined });
});

test.each<[string, string, file: boolean]>([
  ["names a repository behind a link to another machine", "x", false],
  ["is itself a link to another machine", ".git", true],
])(
  "on Windows, a .git file that %s -> a repository of its own, and that machine is not asked",
  async (_, link, isFile) => {
    const { home } = await linked();
    const clone = join(home, "clone");
    // On Linux this is the name of a file beside the link, which stands for the other machine.
    const there = "\\\\evil.com\\share";
    const git = "gitdir: x/.git/worktrees/y\n";
    await put(join(clone, isFile ? there : ".git"), git);
    const shared = join(clone, isFile ? "x" : there);
    await put(join(shared, ".git", "worktrees", "y", "gitdir"), `${join(clone, ".git")}\n`);
    await symlink(there, join(clone, link));
    expect(await findWorkspace(clone, "linux")).toEqual({ worktree: clone, repository: join(clone, "x") });
    expect(await findWorkspace(clone, "win32")).toEqual({ worktree: clone, repository: undefined });
  },
);

test("Claude Code: a server that is off for the repository is off in a folder of its worktree", async () => {
  const { home, repository, worktree } = await linked();
  await put(join(home, ".claude.json"), {
    mcpServers: { github: { command: "x" }, notes: { command: "y" } },
    projects: {
      [repository]: { mcpServers: { local: { command: "z" } }, disabledMcpServers: ["github"] },
    },
  });
  await put(join(home, "agent", "mcp.json"), { imports: ["claude-code"] });
  const cwd = join(worktree, "packages", "api");
  const { servers } = await loadConfig(
    facts({ home, agentDir: join(home, "agent"), cwd, platform: process.platform }),
  );
  expect(servers.map(({ name, enabled }) => [name, enabled])).toEqual([
    ["github", false],
    ["notes", true],
    ["local", true],
  ]);
});
