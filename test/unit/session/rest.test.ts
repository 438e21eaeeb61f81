/** Owns: how long a session rests: what the file beside the snapshot must say, and what ends the rest. Real files, no thread. */
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { mkdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import { snapshotPath } from "../../../src/catalog/store.ts";
import type { Resting } from "../../../src/runtime/contract.ts";
import { createFiles } from "../../../src/runtime/files.ts";
import { restUntilSent, stampLater, startRest } from "../../../src/session/rest.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CatalogSettings, DEFAULT_CATALOG_SETTINGS } from "../../../src/shared/protocol/session.ts";
import { fileStamp } from "../../../src/shared/protocol/values.ts";
import { REST_BYTES, REST_MS, type Rest, restPlace } from "../../../src/shared/snapshot/rest.ts";
import { makeCatalog } from "../make-catalog.ts";
import { createRecordingPi } from "../recording-pi.ts";
import { makeStatus } from "../server-status.ts";
import { tempFolder } from "../temp-folder.ts";

interface AtRest {
  resting: Resting | undefined;
  folder: string;
  path: string;
  /** Ends the rest as a request would. */
  ask: () => void;
  events: WorkerEvent[];
  ended: Promise<Resting | undefined>;
  /** Settles when the workers' files are kept. */
  remembered: Promise<void>;
  isOver: () => boolean;
}

/** A session beside a file that says what holds, but for `more`; a text is the whole file. */
async function rest(
  more: Partial<Rest> | string = {},
  prepare?: (path: string) => unknown,
  isReplaced = false,
  look = stampLater,
): Promise<AtRest> {
  const folder = await tempFolder();
  const path = join(folder, "x.rest.json");
  const there = join(folder, "mcp.json");
  await writeFile(there, "{}");
  const sound: Rest = {
    version: 2,
    checksum: 7,
    trusted: true,
    place: restPlace(process.env, homedir()),
    madeAt: Date.now(),
    files: [
      [there, fileStamp(statSync(there))],
      [join(folder, "absent", "mcp.json"), ""],
    ],
    settings: DEFAULT_CATALOG_SETTINGS,
    servers: [makeStatus("s")],
    listed: [there],
    traces: "traces",
  };
  await writeFile(path, typeof more === "string" ? more : JSON.stringify({ ...sound, ...more }));
  await prepare?.(path);
  const events: WorkerEvent[] = [];
  const asked = Promise.withResolvers<void>();
  let over = false;
  const kept = Promise.withResolvers<void>();
  const files = {
    ...createFiles(pathToFileURL(join(folder, "workers", "connection.js"))),
    remember: async () => kept.resolve(),
    isReplaced: async () => isReplaced,
  };
  const options = { onEvent: (event: WorkerEvent) => events.push(event), files, look, rememberMs: 0 };
  const resting = startRest(asked.promise, { path, checksum: 7, trusted: true }, options);
  const ended = Promise.resolve(resting?.over).then(() => resting);
  void ended.then(() => {
    over = true;
  });
  const remembered = kept.promise;
  return { folder, path, ask: asked.resolve, events, ended, isOver: () => over, remembered, resting };
}

describe("startRest", () => {
  test("nothing has changed -> main is told the plan once, and the rest lasts until somebody asks", async () => {
    const at = await rest();
    await expect.poll(() => at.events).toHaveLength(1);
    expect(at.events).toMatchObject([
      { type: "planned", servers: [{ name: "s" }], problems: [], questions: [], refused: [] },
    ]);
    expect(at.isOver()).toBe(false);
    at.ask();
    expect(await at.ended).toMatchObject({ traces: "traces" });
    expect(at.events).toHaveLength(1);
  });

  test("a file is edited -> seen before the rest ends", async () => {
    const at = await rest();
    expect(await at.resting?.isEdited()).toBe(false);
    await writeFile(join(at.folder, "mcp.json"), '{"mcpServers":{}}');
    expect(await at.resting?.isEdited()).toBe(true);
  });

  test("a file system that no longer answers -> counts as an edit, and holds one thread for files alone", async () => {
    const asked: string[] = [];
    const never = (path: string): Promise<string> => {
      asked.push(path);
      return new Promise(() => undefined);
    };
    const at = await rest({}, undefined, false, never);
    expect(await Promise.all([at.resting?.isEdited(), at.resting?.isEdited()])).toEqual([true, true]);
    expect(asked).toHaveLength(1);
    expect(at.isOver()).toBe(false);
    at.ask();
    expect(await at.ended).toMatchObject({ traces: "traces" });
  });

  test("asked at once -> the worker's own plan is the first", async () => {
    const at = await rest();
    at.ask();
    expect(await at.ended).toMatchObject({ traces: "traces" });
    expect(at.events).toEqual([]);
  });

  test("the workers' files are kept while it rests, and nobody is told of an update that there was not", async () => {
    const at = await rest();
    await at.remembered;
    await expect.poll(() => at.events.map(({ type }) => type)).toEqual(["planned"]);
    // What is told of an update is told before the files are kept and the plan is.
  });

  test("an update has replaced the package -> the session is told", async () => {
    const at = await rest({}, undefined, true);
    await expect.poll(() => at.events.map(({ type }) => type)).toEqual(["notice", "planned"]);
    expect(at.events).toMatchObject([{ text: expect.stringMatching(/was updated.*start Pi again/) }, {}]);
  });

  test.each<[string, (folder: string) => Promise<unknown>]>([
    ["is written", (folder) => writeFile(join(folder, "mcp.json"), '{"mcpServers":{}}')],
    ["is removed", (folder) => rm(join(folder, "mcp.json"))],
    [
      "is replaced by one of the same size and time",
      async (folder) => {
        const { atime, mtime } = statSync(join(folder, "mcp.json"));
        await writeFile(join(folder, "new"), "[]");
        await utimes(join(folder, "new"), atime, mtime);
        await rename(join(folder, "new"), join(folder, "mcp.json"));
      },
    ],
    [
      "appears, with its folder",
      async (folder) => {
        await mkdir(join(folder, "absent"));
        await writeFile(join(folder, "absent", "mcp.json"), "{}");
      },
    ],
  ])("a file %s -> the rest ends", async (_what, change) => {
    const at = await rest();
    await change(at.folder);
    expect(await at.ended).toMatchObject({ traces: "traces" });
  });

  test.each<[string, Partial<Rest> | string]>([
    ["is broken", '{"version":1,'],
    ["is not an object", "null"],
    ["is empty", ""],
    ["lacks everything", "{}"],
    ["is of another version", { version: 1 as 2 }],
    ["is of another snapshot", { checksum: 8 }],
    ["was made while the project was not trusted", { trusted: false }],
    ["was made in another home", { place: restPlace({}, "/elsewhere") }],
    ["is older than a day", { madeAt: Date.now() - REST_MS }],
    ["is from the future", { madeAt: Date.now() + 60_000 }],
    ["names a file that has changed", { files: [[import.meta.filename, "other"]] }],
    ["names a file that is there by now", { files: [[import.meta.filename, ""]] }],
    ["names very many files", { files: Array.from({ length: 101 }, (_, i) => [`/absent/${i}`, ""]) }],
    ["is too large", { traces: "x".repeat(REST_BYTES) }],
    ["names no files at all", { files: null as never }],
    ["names no servers", { servers: undefined as never }],
    ["has servers without names", { servers: [{} as never] }],
    ["has no settings", { settings: null as never }],
    ["lists no files", { listed: "x" as never }],
    ["does not say what ran", { traces: undefined as never }],
  ])("the file %s -> a worker at once, which tells its plan", async (_what, more) => {
    const at = await rest(more);
    expect(await at.ended).toBeUndefined();
    expect(at.events).toEqual([]);
  });

  test.each<[string, (path: string) => unknown]>([
    ["absent", (path) => rm(path)],
    [
      "a folder",
      async (path) => {
        await rm(path);
        await mkdir(path);
      },
    ],
    // On Windows there are no such pipes.
    ...(process.platform === "win32"
      ? []
      : [
          [
            "a pipe that nobody writes",
            async (path: string) => {
              await rm(path);
              execFileSync("mkfifo", [path]);
            },
          ] as [string, (path: string) => unknown],
        ]),
  ])("the file is %s -> a worker at once", async (_what, prepare) => {
    expect(await (await rest({}, prepare)).ended).toBeUndefined();
  });
});

describe("restUntilSent", () => {
  /** A run with its prompt, beside a snapshot that is younger than every file of the configuration. */
  async function run(more: { settings?: Partial<CatalogSettings>; project?: true; mode?: string } = {}) {
    const folder = await tempFolder();
    const [agentDir, cwd] = [join(folder, "agent"), join(folder, "project")];
    const key = { cwd, configFile: undefined, only: undefined, off: undefined };
    await mkdir(join(agentDir, "mcp-snapshots"), { recursive: true });
    await mkdir(cwd);
    await writeFile(join(agentDir, "mcp.json"), "{}");
    await writeFile(snapshotPath(agentDir, key), "");
    const catalog = makeCatalog(
      [{ name: "s", tools: [{ tool: "work" }], ...(more.project && { project: true }) }],
      more.settings,
    );
    const store = { checksum: (): number | undefined => 7, current: () => catalog };
    const pi = createRecordingPi();
    const asked = Promise.withResolvers<void>();
    const begin = () =>
      restUntilSent(asked.promise, pi, {
        ...{ agentDir, key: () => key, store },
        ...{ mode: more.mode ?? "print", path: join(folder, "x.rest.json") },
      });
    return { folder, agentDir, cwd, pi, ask: asked.resolve, begin };
  }

  const isOver = async (resting: Resting | undefined): Promise<boolean> => {
    let over = false;
    void resting?.over.then(() => {
      over = true;
    });
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    return over;
  };

  afterEach(() => {
    vi.useRealTimers();
  });

  test("the first request leaves -> a moment more; what main is told is left to the worker", async () => {
    const at = await run();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const resting = at.begin();
    expect(resting?.traces).toBeUndefined();
    await vi.advanceTimersByTimeAsync(150);
    at.pi.happens("before_provider_request");
    await vi.advanceTimersByTimeAsync(90);
    expect(await isOver(resting)).toBe(false);
    await vi.advanceTimersByTimeAsync(10);
    expect(await isOver(resting)).toBe(true);
  });

  test("no request leaves -> not for long; somebody asks -> at once", async () => {
    const [alone, wanted] = [await run(), await run()];
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const [first, second] = [alone.begin(), wanted.begin()];
    wanted.ask();
    expect([await isOver(first), await isOver(second)]).toEqual([false, true]);
    await vi.advanceTimersByTimeAsync(LIMITS.firstRequestMs);
    expect(await isOver(first)).toBe(true);
  });

  test.each([
    ["the user's file", (at: { agentDir: string }) => join(at.agentDir, "mcp.json")],
    ["a file of the project that was not there", (at: { cwd: string }) => join(at.cwd, ".mcp.json")],
  ])("%s is written, with an old date -> seen after the rest as well", async (_what, path) => {
    const at = await run();
    const resting = at.begin();
    expect(await resting?.isEdited()).toBe(false);
    await writeFile(path(at), '{"mcpServers":{}}');
    await utimes(path(at), 1, 1);
    at.ask();
    await resting?.over;
    expect(await resting?.isEdited()).toBe(true);
  });

  test.each<[string, Parameters<typeof run>[0]]>([
    ["a person types", { mode: "tui" }],
    ["a program sends its prompts later", { mode: "rpc" }],
    ["a server of the project, which only the plan can let run", { project: true }],
    ["servers that sessions share", { settings: { shared: true } }],
  ])("%s -> a worker at once", async (_what, more) => {
    expect((await run(more)).begin()).toBeUndefined();
  });

  test.each([
    ["a `Rest` that does not hold", (at: { folder: string }) => join(at.folder, "x.rest.json")],
    [
      "a file of the project, which may be trusted by now",
      (at: { cwd: string }) => join(at.cwd, ".mcp.json"),
    ],
  ])("%s, older than the snapshot -> a worker at once", async (_what, path) => {
    const at = await run();
    await writeFile(path(at), "{}");
    await utimes(path(at), 1, 1);
    expect(at.begin()).toBeUndefined();
  });

  test("a file is younger than the snapshot -> a worker at once", async () => {
    const at = await run();
    await utimes(join(at.agentDir, "mcp.json"), 2 ** 31, 2 ** 31);
    expect(at.begin()).toBeUndefined();
  });
});
