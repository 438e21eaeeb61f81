import { describe, expect, test } from "vitest";
import { editableFile } from "../../../../../../workers/connection/config/edit/edit.ts";
import { HOSTS, type HostName } from "../../../../../../workers/connection/config/entry/schema.ts";
import { configSources } from "../../../../../../workers/connection/config/files/sources.ts";
import { hostSources } from "../../../../../../workers/connection/config/hosts/hosts.ts";
import { facts } from "../support.ts";

const WINDOWS = { platform: "win32", home: "C:\\Users\\me", cwd: "D:\\app" } as const;
const MAC = { platform: "darwin", home: "/Users/me", cwd: "/w" } as const;
const LINUX = { platform: "linux", home: "/home/me", cwd: "/w" } as const;

/** The user's file of each host as its maker documents it. */
const USER_FILES: Record<HostName, [linux: string, mac: string, windows: string]> = {
  cursor: ["/home/me/.cursor/mcp.json", "/Users/me/.cursor/mcp.json", "C:\\Users\\me\\.cursor\\mcp.json"],
  "claude-code": ["/home/me/.claude.json", "/Users/me/.claude.json", "C:\\Users\\me\\.claude.json"],
  "claude-desktop": [
    "/home/me/.config/Claude/claude_desktop_config.json",
    "/Users/me/Library/Application Support/Claude/claude_desktop_config.json",
    "C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json",
  ],
  codex: [
    "/home/me/.codex/config.toml",
    "/Users/me/.codex/config.toml",
    "C:\\Users\\me\\.codex\\config.toml",
  ],
  windsurf: [
    "/home/me/.codeium/windsurf/mcp_config.json",
    "/Users/me/.codeium/windsurf/mcp_config.json",
    "C:\\Users\\me\\.codeium\\windsurf\\mcp_config.json",
  ],
  vscode: [
    "/home/me/.config/Code/User/mcp.json",
    "/Users/me/Library/Application Support/Code/User/mcp.json",
    "C:\\Users\\me\\AppData\\Roaming\\Code\\User\\mcp.json",
  ],
  opencode: [
    "/home/me/.config/opencode/opencode.json",
    "/Users/me/.config/opencode/opencode.json",
    "C:\\Users\\me\\.config\\opencode\\opencode.json",
  ],
};

describe("hostSources", () => {
  test.each(HOSTS)("%s has the documented path on Linux, macOS and Windows", (host) => {
    const first = [LINUX, MAC, WINDOWS].map((machine) => hostSources(host, facts(machine))[0]?.file);
    expect(first).toEqual(USER_FILES[host]);
  });

  test.each([
    ["claude-code", { CLAUDE_CONFIG_DIR: "/c" }, "/c/.claude.json"],
    ["claude-desktop", { XDG_CONFIG_HOME: "/x" }, "/x/Claude/claude_desktop_config.json"],
    ["codex", { CODEX_HOME: "/c" }, "/c/config.toml"],
    ["vscode", { XDG_CONFIG_HOME: "/x" }, "/x/Code/User/mcp.json"],
    ["opencode", { XDG_CONFIG_HOME: "/x" }, "/x/opencode/opencode.json"],
    ["opencode", { XDG_CONFIG_HOME: "" }, "/home/me/.config/opencode/opencode.json"],
  ] as const)("%s follows %o", (host, env, file) => {
    expect(hostSources(host, facts({ ...LINUX, env }))[0]?.file).toBe(file);
  });

  test("APPDATA moves the files of desktop programs on Windows", () => {
    const moved = facts({ ...WINDOWS, env: { APPDATA: "E:\\Data" } });
    expect(hostSources("vscode", moved)[0]?.file).toBe("E:\\Data\\Code\\User\\mcp.json");
  });

  test("OPENCODE_CONFIG is read after the user's own file", () => {
    const files = hostSources("opencode", facts({ env: { OPENCODE_CONFIG: "/o.json" } })).map(
      ({ file }) => file,
    );
    expect(files.indexOf("/o.json")).toBeGreaterThan(
      files.indexOf("/home/me/.config/opencode/opencode.json"),
    );
  });

  test("OpenCode looks upwards to the worktree's root; nearer files and .opencode folders win", () => {
    const over = { cwd: "/work/app/a/b", worktree: "/work/app", env: { OPENCODE_CONFIG_DIR: "dir" } };
    const names = (at: string): string[] => [`${at}/opencode.json`, `${at}/opencode.jsonc`];
    expect(hostSources("opencode", facts(over)).map(({ file }) => file)).toEqual(
      [
        "/home/me/.config/opencode",
        "/work/app",
        "/work/app/a",
        "/work/app/a/b",
        "/work/app/.opencode",
        "/work/app/a/.opencode",
        "/work/app/a/b/.opencode",
        "/home/me/.opencode",
        "/work/app/a/b/dir",
      ].flatMap(names),
    );
  });

  test.each([undefined, "/elsewhere"])(
    "OpenCode outside of a worktree (%s) -> this folder only",
    (worktree) => {
      const files = hostSources("opencode", facts({ worktree })).map(({ file }) => file);
      expect(files.filter((file) => file.startsWith("/work"))).toHaveLength(4);
    },
  );

  test("OpenCode in the home folder -> its .opencode is the project's, which needs consent", () => {
    const sources = hostSources("opencode", facts({ cwd: "/home/me" }));
    expect(sources.filter(({ file }) => file.startsWith("/home/me/.opencode"))).toMatchObject([
      { origin: "project-file" },
      { origin: "project-file" },
    ]);
  });

  test("a relative OPENCODE_CONFIG starts from the session's folder", () => {
    const sources = hostSources("opencode", facts({ env: { OPENCODE_CONFIG: "o.json" } }));
    expect(sources[2]).toMatchObject({ file: "/work/app/o.json", origin: "import" });
  });

  test.each(HOSTS)("%s: a project's files need consent, and none is read without trust", (host) => {
    const sources = hostSources(host, facts());
    for (const { file, origin } of sources)
      expect(origin).toBe(file.startsWith("/work/app") ? "project-file" : "import");
    const untrusted = hostSources(host, facts({ projectTrusted: false }));
    expect(untrusted.filter(({ file }) => file.startsWith("/work/app"))).toEqual([]);
  });
});

describe("configSources", () => {
  const files = (over: Parameters<typeof facts>[0]): string[] =>
    configSources(facts(over)).map(({ file }) => file);

  test("later files win: shared, user, .mcp.json, .pi/mcp.json", () => {
    expect(files({})).toEqual([
      "/home/me/.config/mcp/mcp.json",
      "/home/me/.pi/agent/mcp.json",
      "/work/app/.mcp.json",
      "/work/app/.pi/mcp.json",
    ]);
  });

  test("without trust no file of the project", () => {
    expect(files({ projectTrusted: false })).toEqual([
      "/home/me/.config/mcp/mcp.json",
      "/home/me/.pi/agent/mcp.json",
    ]);
  });

  test.each([
    ["conf/mcp.json", "/work/app/conf/mcp.json"],
    ["~/mine.json", "/home/me/mine.json"],
    ["/abs.json", "/abs.json"],
  ])("--mcp-config %s takes the place of the user's file", (configPath, file) => {
    expect(files({ configPath })[1]).toBe(file);
    expect(configSources(facts({ configPath }))[1]).toMatchObject({ origin: "user", required: true });
  });

  test.each([
    [{}, false, "/home/me/.pi/agent/mcp.json"],
    [{}, true, "/work/app/.pi/mcp.json"],
    [{ configPath: "~/x.json" }, false, "/home/me/x.json"],
    [{ configPath: "conf/x.json" }, false, "/work/app/conf/x.json"],
    [{ configPath: "/abs.json" }, false, "/abs.json"],
    [{ configPath: ".mcp.json" }, false, "/work/app/.mcp.json"],
  ])("/mcp edit of %o, project %s -> the file that is read: %s", (over, project, file) => {
    expect(editableFile(facts(over), project)).toBe(file);
  });

  test("a file that --mcp-config names and that is found too is read once, as the named file", () => {
    expect(files({ configPath: ".mcp.json" })).toEqual([
      "/home/me/.config/mcp/mcp.json",
      "/work/app/.mcp.json",
      "/work/app/.pi/mcp.json",
    ]);
  });
});
