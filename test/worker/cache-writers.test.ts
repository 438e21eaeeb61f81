/**
 * Owns: several processes that write one cache file, and writers that are killed. `npm run test:long` repeats both many
 * times.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, test } from "vitest";
import { storeEntries } from "../../workers/cache/metadata/metadata.ts";
import { nodeFiles } from "../../workers/shared/files/file-system.ts";
import { compiledEnv } from "../support/compiled-env.ts";
import { repeats } from "../support/long.ts";
import { oneFile } from "../support/one-file.ts";
import { createRandom } from "../unit/random.ts";
import { tempFolder } from "../unit/temp-folder.ts";

const ROUNDS = repeats("CACHE_WRITER_ROUNDS", 1);
const KILLS = repeats("CACHE_KILLS", 4);
/**
 * These limits are very long: if the next writer had to wait until a killed writer counts as silent, the test would
 * fail.
 */
const NEVER_SILENT = { waitMs: 30_000, beatMs: 1_000, silentMs: 29_000 };
/** A kill comes at a random moment within this time after the writer's first entry. */
const KILL_WITHIN_MS = 60;
const SEED = 1;

const FIXTURES = join(import.meta.dirname, "..", "fixtures", "cache");
const WRITER = join(FIXTURES, "writes-entries.ts");
const OLDER_WRITER = join(FIXTURES, "writes-as-before.ts");

interface Writer {
  child: ChildProcess;
  /** Names that the writer has stored so far. */
  stored: string[];
  /** Settles when the writer has stored its first entry or has ended. */
  begun: Promise<unknown>;
  exited: Promise<unknown>;
  stderr: () => string;
}

function startWriter(path: string, prefix: string, count: number, program = WRITER): Writer {
  const child = spawn(
    process.execPath,
    [oneFile(basename(program, ".ts"), program).file, path, prefix, String(count)],
    {
      env: compiledEnv(),
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const stored: string[] = [];
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  const lines = createInterface(child.stdout).on("line", (line) => stored.push(line));
  const exited = Promise.all([once(child, "exit"), once(lines, "close")]);
  return { child, stored, begun: Promise.race([once(lines, "line"), exited]), exited, stderr: () => stderr };
}

async function namesIn(path: string): Promise<string[]> {
  const cache = JSON.parse(await readFile(path, "utf8")) as { version: number; servers: object };
  expect(cache.version).toBe(1);
  return Object.keys(cache.servers);
}

describe("four processes that write 20 entries each", () => {
  it.each<[string, string[]]>([
    ["of this version", [WRITER, WRITER, WRITER, WRITER]],
    ["two of them of an older version", [WRITER, OLDER_WRITER, WRITER, OLDER_WRITER]],
  ])(
    `%s: all 80 entries are in the file, ${ROUNDS} times`,
    {
      timeout: 30_000 + ROUNDS * 10_000,
    },
    async (_name, programs) => {
      for (let round = 0; round < ROUNDS; round++) {
        const folder = await tempFolder();
        const path = join(folder, "mcp-cache.json");
        const writers = programs.map((program, index) => startWriter(path, "abcd"[index] ?? "", 20, program));
        await Promise.all(writers.map((writer) => writer.exited));
        expect(writers.map((writer) => writer.stderr())).toEqual(["", "", "", ""]);
        expect((await namesIn(path)).length, `round ${round}`).toBe(80);
        expect(await readdir(folder)).toEqual(["mcp-cache.json"]);
      }
    },
  );
});

const TEMP = /^\.mcp-cache\.json\.[0-9a-f]{12}\.tmp$/;
const LOCK = ".mcp-cache.json.lock";
/**
 * A new folder follows after these kills. Every write rewrites the whole file, so the file must stay as small as real
 * ones.
 */
const KILLS_A_FOLDER = 20;

interface Counts {
  /** Entries that the killed writers had stored. */
  stored: number;
  /** Kills that left the lock behind. */
  lockLeft: number;
  /** Kills that left an unfinished file behind. */
  tempLeft: number;
}

/** Kills one of two writers at a random moment, again and again, and checks the folder after each kill. */
async function killWriters(kills: number, random: () => number, counts: Counts): Promise<void> {
  const folder = await tempFolder();
  const path = join(folder, "mcp-cache.json");
  const expected = new Set<string>();
  for (let kill = 0; kill < kills; kill++) {
    const victim = startWriter(path, `victim${kill}-`, 1_000);
    const survivor = startWriter(path, `survivor${kill}-`, 5);
    await victim.begun;
    await sleep(random() * KILL_WITHIN_MS);
    victim.child.kill("SIGKILL");
    await victim.exited;

    const left = await readdir(folder);
    if (left.includes(LOCK)) counts.lockLeft++;
    if (left.some((name) => TEMP.test(name))) counts.tempLeft++;
    counts.stored += victim.stored.length;
    const after = `after${kill}`;
    const entries = { [after]: { configHash: after, tools: [], cachedAt: Date.now() } };
    const context = { files: nodeFiles, limitBytes: 2 ** 30, now: Date.now, lockTimes: NEVER_SILENT };
    expect(await storeEntries({ path, entries, used: {} }, context)).toEqual({ stored: true, problems: [] });

    await survivor.exited;
    expect([victim.stderr(), survivor.stderr()]).toEqual(["", ""]);
    expect(survivor.stored).toHaveLength(5);
    for (const name of [...victim.stored, ...survivor.stored, after]) expected.add(name);
    const names = new Set(await namesIn(path));
    expect([...expected].filter((name) => !names.has(name))).toEqual([]);
    expect(await readdir(folder)).not.toContain(LOCK);
    for (const name of await readdir(folder)) if (TEMP.test(name)) await rm(join(folder, name));
  }
}

describe("one of two writers is killed", () => {
  test(`at ${KILLS} random moments -> the file is whole, no entry is lost, the lock is free at once`, {
    timeout: 30_000 + KILLS * 5_000,
  }, async () => {
    const random = createRandom(SEED);
    const counts: Counts = { stored: 0, lockLeft: 0, tempLeft: 0 };
    for (let done = 0; done < KILLS; done += KILLS_A_FOLDER) {
      await killWriters(Math.min(KILLS_A_FOLDER, KILLS - done), random.next, counts);
    }
    const { stored, lockLeft, tempLeft } = counts;
    process.stdout.write(
      `${KILLS} kills after ${stored} entries: ${lockLeft} with the lock held, ${tempLeft} with a new file open\n`,
    );
  });
});
