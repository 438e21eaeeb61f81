/**
 * Owns: changes of configuration files on a real disk. The tests wait for events, never for times: if a change must
 * have no effect, a later change of another file shows that the first change was handled.
 */
import { createHook } from "node:async_hooks";
import { execFile } from "node:child_process";
import { appendFile, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { ConfigFacts } from "../../workers/connection/config/files/sources.ts";
import {
  followConfig,
  type LiveConfig,
  LOOK_MS,
  watchConfig,
} from "../../workers/connection/config/live/follow.ts";
import { type LoadedConfig, loadConfig } from "../../workers/connection/config/merge/merge.ts";
import { put, temporaryFolder } from "../unit/workers/connection/config/support.ts";

/** This limit ends hangs only. */
const WATCHED_MS = 60_000;

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});

describe("watchConfig", () => {
  /** Watches one file and answers a function that runs an action and settles when the watcher has noticed a change. */
  async function watching(
    file: string,
    lookMs = LOOK_MS,
  ): Promise<(action: () => Promise<unknown>) => Promise<void>> {
    let notice = Promise.withResolvers<void>();
    const errors: string[] = [];
    const watcher = watchConfig({
      files: [file],
      onChange: () => notice.resolve(),
      onError: (message) => errors.push(message),
      settleMs: 20,
      lookMs,
    });
    onTestFinished(() => watcher.close());
    await watcher.ready;
    return async (action) => {
      notice = Promise.withResolvers<void>();
      await action();
      await notice.promise;
      expect(errors).toEqual([]);
    };
  }

  test("a file is written, appended, replaced by rename, deleted, written again -> each change is noticed", async () => {
    const file = join(folder, "mcp.json");
    await put(file, "1");
    const changed = await watching(file);
    const replace = async (text: string): Promise<void> => {
      await writeFile(join(folder, "temp"), text);
      await rename(join(folder, "temp"), file);
    };
    await changed(() => writeFile(file, "2"));
    await changed(() => replace("3"));
    await changed(() => replace("4"));
    await changed(() => appendFile(file, "5"));
    await changed(() => rm(file));
    await changed(() => writeFile(file, "6"));
    await changed(() => writeFile(file, "7"));
  });

  test("a file whose folders are created, deleted and created again -> each change is noticed", async () => {
    const file = join(folder, "project", ".pi", "mcp.json");
    const changed = await watching(file);
    await changed(() => put(file, "1"));
    await changed(() => writeFile(file, "2"));
    await changed(() => rm(join(folder, "project"), { recursive: true }));
    await changed(() => put(file, "3"));
    await changed(() => writeFile(file, "4"));
  });

  test("a link whose target changes, is replaced, and which then points elsewhere -> each change is noticed", async () => {
    const [one, two, link] = ["one.json", "two.json", "mcp.json"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    await put(one, "1");
    await put(two, "1");
    await symlink(one, link);
    const changed = await watching(link);
    await changed(() => writeFile(one, "2"));
    await changed(async () => {
      await writeFile(join(folder, "temp"), "3");
      await rename(join(folder, "temp"), one);
    });
    await changed(() => writeFile(one, "4"));
    await changed(async () => {
      await symlink(two, join(folder, "link"));
      await rename(join(folder, "link"), link);
    });
    await changed(() => writeFile(two, "2"));
  });

  test("a file in a linked folder changes -> noticed", async () => {
    await put(join(folder, "real", "mcp.json"), "1");
    await symlink(join(folder, "real"), join(folder, "linked"));
    const changed = await watching(join(folder, "linked", "mcp.json"));
    await changed(() => writeFile(join(folder, "real", "mcp.json"), "2"));
    await changed(() => rm(join(folder, "real", "mcp.json")));
    await changed(() => writeFile(join(folder, "real", "mcp.json"), "3"));
  });

  test("a link to a folder points elsewhere -> the change and later changes there are noticed", async () => {
    await put(join(folder, "one", "mcp.json"), "1");
    await put(join(folder, "two", "mcp.json"), "1");
    await symlink(join(folder, "one"), join(folder, "linked"));
    const changed = await watching(join(folder, "linked", "mcp.json"));
    await changed(async () => {
      await symlink(join(folder, "two"), join(folder, "next"));
      await rename(join(folder, "next"), join(folder, "linked"));
    });
    await changed(() => writeFile(join(folder, "two", "mcp.json"), "2"));
  });

  test("the folders appear after the start -> only the file and the folders on its path are watched", async () => {
    const file = join(folder, "home", ".codex", "config.toml");
    const watcher = watchConfig({
      files: [file],
      onChange: () => undefined,
      onError: () => undefined,
      settleMs: 20,
    });
    onTestFinished(() => watcher.close());
    await watcher.ready;
    await put(join(folder, "home", "big", "tree", "of", "files"), "1");
    await put(join(folder, "home", ".codex", "sessions", "2026", "log"), "1");
    await put(file, "1");
    // The change of a folder may be told before the file is watched.
    await vi.waitFor(() => {
      const inside = watcher.watched().filter((path) => path.startsWith(join(folder, "home")));
      expect([...new Set(inside)].sort()).toEqual([
        join(folder, "home"),
        join(folder, "home", ".codex"),
        file,
      ]);
    }, WATCHED_MS);
  });

  test("an event of another file in a big folder where a file is missing -> nobody looks at the files of that folder", async () => {
    const many = 300;
    for (let i = 0; i < many; i++) await writeFile(join(folder, `other-${i}`), "1");
    const changed = await watching(join(folder, ".config", "mcp.json"));
    let requests = 0;
    const hook = createHook({ init: (_id, type) => void (type === "FSREQPROMISE" && requests++) });
    onTestFinished(() => void hook.disable());
    hook.enable();
    // The watcher hears of these events in their order.
    await changed(async () => {
      for (let i = 0; i < 3; i++) await writeFile(join(folder, "another"), String(i));
      await put(join(folder, ".config", "mcp.json"), "1");
    });
    expect(requests).toBeLessThan(many);
  });

  /** True if the kernel reports changes of a folder to this process. */
  async function isWatched(path: string): Promise<boolean> {
    const { ino } = await stat(path);
    const infos = await readdir("/proc/self/fdinfo");
    const texts = await Promise.all(
      infos.map((name) => readFile(join("/proc/self/fdinfo", name), "utf8").catch(() => "")),
    );
    return texts.some((text) =>
      text
        .split("\n")
        .some((line) => line.startsWith("inotify") && line.includes(` ino:${ino.toString(16)} `)),
    );
  }

  /**
   * Each function puts something other than a regular file at a path, and answers the folder that must not be
   * watched.
   */
  const irregular: Record<string, (file: string) => Promise<string | undefined>> = {
    "a named pipe": async (file) => {
      await promisify(execFile)("mkfifo", [file]);
      return undefined;
    },
    "a folder": async (file) => {
      await put(join(file, "inner"), "1");
      return file;
    },
    "a link to a device": async (file) => {
      await symlink("/dev/null", file);
      return "/dev";
    },
    "a link to a folder with a tree": async (file) => {
      await put(join(folder, "tree", "of", "files"), "1");
      await symlink(join(folder, "tree"), file);
      return join(folder, "tree");
    },
    "a link to itself": async (file) => {
      await symlink(file, file);
      return undefined;
    },
  };

  test.each(Object.entries(irregular))(
    "%s in place of the file -> not watched, and a file that replaces it is noticed",
    async (_what, make) => {
      const file = join(folder, "project", "mcp.json");
      await mkdir(join(folder, "project"));
      const unwatched = await make(file);
      let notice = Promise.withResolvers<void>();
      const errors: string[] = [];
      const watcher = watchConfig({
        files: [file],
        onChange: () => notice.resolve(),
        onError: (message) => errors.push(message),
        settleMs: 20,
      });
      onTestFinished(() => watcher.close());
      await watcher.ready;
      if (process.platform === "linux") {
        // Elsewhere in this process files are opened and closed while the table of open files is read.
        await expect.poll(() => isWatched(join(folder, "project")), { timeout: WATCHED_MS }).toBe(true);
        if (unwatched !== undefined) expect(await isWatched(unwatched)).toBe(false);
      }
      const changed = async (action: () => Promise<unknown>): Promise<void> => {
        notice = Promise.withResolvers();
        await action();
        await notice.promise;
      };
      await changed(async () => {
        await writeFile(join(folder, "temp"), "2");
        await rm(file, { recursive: true });
        await rename(join(folder, "temp"), file);
      });
      await changed(() => writeFile(file, "3"));
      await changed(() => rm(file));
      await changed(() => make(file));
      expect(errors).toEqual([]);
    },
  );

  test("a link behind a link points elsewhere, of which no event tells -> noticed by a look at the file", async () => {
    const at = (name: string): string => join(folder, "elsewhere", name);
    const file = join(folder, "mcp.json");
    await Promise.all(["one", "two"].map((name) => put(at(name), "1")));
    // Nothing else lies in the folder of this link, so nobody watches that folder.
    const between = join(folder, "links", "between");
    await mkdir(join(folder, "links"));
    await symlink(at("one"), between);
    await symlink(between, file);
    const changed = await watching(file, 50);
    await changed(() => writeFile(at("one"), "2"));
    await changed(async () => {
      await symlink(at("two"), `${between}.new`);
      await rename(`${between}.new`, between);
    });
    await changed(() => appendFile(at("two"), "2"));
  });

  test("many writes in one burst -> one change", async () => {
    const file = join(folder, "mcp.json");
    await put(file, "1");
    let changes = 0;
    let notice = Promise.withResolvers<void>();
    const watcher = watchConfig({
      files: [file],
      onChange: () => {
        changes += 1;
        notice.resolve();
      },
      onError: () => undefined,
      settleMs: 2_000,
    });
    onTestFinished(() => watcher.close());
    await watcher.ready;
    for (let i = 0; i < 20; i++) await writeFile(file, String(i));
    await notice.promise;
    expect(changes).toBe(1);
    notice = Promise.withResolvers();
    await writeFile(file, "last");
    await notice.promise;
    expect(changes).toBe(2);
  });

  test("a process with nothing else to do -> ends although files are watched", async () => {
    const program = join(folder, "program.ts");
    const watch = join(import.meta.dirname, "../../workers/connection/config/live/follow.ts");
    await writeFile(
      program,
      `import { LOOK_MS, watchConfig } from ${JSON.stringify(watch)};
       const files = [import.meta.filename, "/nowhere/at/all.json"];
       await watchConfig({ files, onChange() {}, onError() {} }).ready;
       console.log("ready");`,
    );
    const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 20_000 });
    expect(stdout).toBe("ready\n");
  });
});

describe("followConfig", () => {
  interface Following {
    live: LiveConfig;
    /** Runs the action and settles with the next result. */
    next(action: () => Promise<unknown>): Promise<LoadedConfig>;
    results: LoadedConfig[];
    facts: ConfigFacts;
    user: string;
  }

  async function following(files: Record<string, unknown>): Promise<Following> {
    for (const [file, content] of Object.entries(files)) await put(join(folder, file), content);
    const facts: ConfigFacts = {
      agentDir: join(folder, "agent"),
      cwd: join(folder, "project"),
      projectTrusted: true,
      platform: "linux",
      home: join(folder, "home"),
      env: {},
    };
    const results: LoadedConfig[] = [];
    const errors: string[] = [];
    let notice = Promise.withResolvers<LoadedConfig>();
    const live = followConfig({
      facts,
      first: await loadConfig(facts),
      onConfig: (config) => {
        results.push(config);
        notice.resolve(config);
      },
      onError: (message) => errors.push(message),
      settleMs: 30,
      believeMs: 150,
    });
    onTestFinished(async () => {
      await live.close();
      expect(errors).toEqual([]);
    });
    await live.ready;
    return {
      live,
      results,
      facts,
      user: join(folder, "agent", "mcp.json"),
      next: async (action) => {
        notice = Promise.withResolvers();
        await action();
        return notice.promise;
      },
    };
  }

  const names = ({ servers }: LoadedConfig): string[] => servers.map(({ name }) => name);
  const ONE = { mcpServers: { one: { command: "x" } } };
  const TWO = { mcpServers: { one: { command: "x" }, two: { command: "y" } } };

  test("servers are added, changed, removed, also in files that did not exist -> each change applies", async () => {
    const { next, user } = await following({ "agent/mcp.json": ONE });
    expect(names(await next(() => put(user, TWO)))).toEqual(["one", "two"]);
    const local = join(folder, "project", ".pi", "mcp.json");
    expect(names(await next(() => put(local, { mcpServers: { three: { command: "z" } } })))).toEqual([
      "one",
      "two",
      "three",
    ]);
    expect(names(await next(() => rm(local)))).toEqual(["one", "two"]);
    expect(names(await next(() => put(user, ONE)))).toEqual(["one"]);
  });

  test("a broken file -> its last good content stays, and the problem has line and column; a repair applies", async () => {
    const { next, user } = await following({ "agent/mcp.json": TWO });
    const broken = await next(() => put(user, '{"mcpServers": {\n  "one": '));
    expect(names(broken)).toEqual(["one", "two"]);
    expect(broken.problems).toMatchObject([{ severity: "error", file: user, line: 2, column: 10 }]);
    const mended = await next(() => put(user, ONE));
    expect(names(mended)).toEqual(["one"]);
    expect(mended.problems).toEqual([]);
  });

  test("a half-written file, or one that is missing for a moment -> neither reported nor applied", async () => {
    const { next, user, results } = await following({ "agent/mcp.json": TWO });
    const text = JSON.stringify(ONE);
    const result = await next(async () => {
      await writeFile(user, "");
      await writeFile(user, text.slice(0, 20));
      await rm(user);
      await writeFile(user, text);
    });
    expect(names(result)).toEqual(["one"]);
    expect(results).toHaveLength(1);
  });

  test("a file that stays deleted -> its servers are removed", async () => {
    const { next, user } = await following({ "agent/mcp.json": ONE });
    expect(names(await next(() => rm(user)))).toEqual([]);
  });

  test("the same content is written again -> no new result", async () => {
    const { next, user, results } = await following({ "agent/mcp.json": ONE });
    await put(user, JSON.stringify(ONE, null, 2));
    await next(() => put(join(folder, "home/.config/mcp/mcp.json"), { settings: { idleTimeout: 1 } }));
    expect(results.at(-1)?.settings.idleTimeout).toBe(1);
    expect(results.filter(({ settings }) => settings.idleTimeout !== 1)).toEqual([]);
  });

  test("another host's file is imported -> its changes apply from then on", async () => {
    const { next, user } = await following({ "agent/mcp.json": ONE });
    const codex = join(folder, "home", ".codex", "config.toml");
    const imported = await next(() => put(user, { ...ONE, imports: ["codex"] }));
    expect(imported.files).toContain(codex);
    expect(names(await next(() => put(codex, '[mcp_servers.two]\ncommand = "y"\n')))).toEqual(["two", "one"]);
    expect(names(await next(() => put(user, ONE)))).toEqual(["one"]);
  });

  test("ten edits in a row -> the last one applies", async () => {
    const { next, user, live } = await following({ "agent/mcp.json": ONE });
    const last = next(async () => {
      for (let i = 0; i < 10; i++) await put(user, { mcpServers: { [`s${i}`]: { command: "x" } } });
    });
    await last;
    await live.reload();
    expect(names(live.current)).toEqual(["s9"]);
  });

  test("an extension registers a server -> a reload adds it", async () => {
    const { next, live } = await following({ "agent/mcp.json": ONE });
    const registered = [{ name: "ext", config: { command: "x" }, extensionPath: "/ext.ts" }];
    expect(names(await next(() => live.reload({ registered })))).toEqual(["ext", "one"]);
  });
});

test("--mcp-config names a file that does not exist -> a problem", async () => {
  const config = await loadConfig({
    agentDir: folder,
    cwd: folder,
    projectTrusted: false,
    configPath: "nowhere.json",
    platform: "linux",
    home: folder,
    env: {},
  });
  expect(config.problems).toMatchObject([{ file: join(folder, "nowhere.json"), line: 1, column: 1 }]);
});

test("a folder in place of a file -> a problem, and the other files apply", async () => {
  await mkdir(join(folder, ".mcp.json"));
  await put(join(folder, "agent", "mcp.json"), { mcpServers: { a: { command: "x" } } });
  const config = await loadConfig({
    agentDir: join(folder, "agent"),
    cwd: folder,
    projectTrusted: true,
    platform: "linux",
    home: folder,
    env: {},
  });
  expect(config.servers).toHaveLength(1);
  expect(config.problems).toMatchObject([
    { file: join(folder, ".mcp.json"), message: expect.stringContaining("cannot be read") },
  ]);
});
