/**
 * Owns: an update of the package between two sessions of one process, as Pi has them, which keeps main. Main is the packed one.
 */
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { Runtime, RuntimeOptions } from "../../src/runtime/contract.ts";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import { configure, createPlace, fixture, onCleanup, root, textOf } from "./support.ts";

interface Main {
  startRuntime(options: RuntimeOptions): Runtime;
}

/** What a session of this main is told, and what its call of `s/work` answers. */
interface Seen {
  notices: string[];
  failures: string[];
  crashes: unknown[];
  answer: string;
}

async function packedMain() {
  const place = await createPlace();
  await configure(place, { s: fixture("noisy.mjs") });
  const dist = join(place.cwd, "..", "package", "dist");
  await cp(join(root, "dist"), dist, { recursive: true });
  await writeFile(join(dist, "..", "package.json"), '{"type":"module"}');
  /** Loaded once, as by Pi. */
  const main = (await import(pathToFileURL(join(dist, "later.js")).href)) as Main;
  const session = async (): Promise<Seen> => {
    const seen: Omit<Seen, "answer"> = { notices: [], failures: [], crashes: [] };
    const runtime = main.startRuntime({
      logFile: join(place.agentDir, "mcp-threads.log"),
      facts: () => ({
        ...place,
        projectTrusted: false,
        configPath: undefined,
        registered: [],
        canAsk: false,
        snapshotChecksum: undefined,
      }),
      onEvent: (event: WorkerEvent) => {
        if (event.type === "notice") seen.notices.push(event.text);
      },
      onCrash: (crash) => seen.crashes.push(crash),
      onStartFailed: (error) => seen.failures.push(error.message),
      // On a busy machine a start takes longer than a hang may.
      limits: { heartbeatMs: 60_000 },
    });
    onCleanup(() => runtime.stop());
    const asked = runtime.callTool({ callId: "1", server: "s", tool: "work", args: {} }, undefined);
    const answer = await asked.then(textOf, (error: Error) => error.message);
    await runtime.ask("status", {}).catch(() => undefined);
    await runtime.stop();
    return { ...seen, answer };
  };
  return { dist, session };
}

/** Puts a next version in its place: files of the same names say another one, and the other files have other names. */
async function update(dist: string): Promise<void> {
  const workers = join(dist, "workers");
  for (const name of await readdir(workers)) {
    const file = join(workers, name);
    await writeFile(file, (await readFile(file, "utf8")).replaceAll('version:"0.', 'version:"99.'));
  }
}

test("the next session has the worker of main's version, and is told once that Pi has to start again", async () => {
  const { dist, session } = await packedMain();
  expect(await session()).toEqual({ notices: [], failures: [], crashes: [], answer: "through the noise" });
  await update(dist);
  const next = await session();
  expect(next).toMatchObject({ failures: [], crashes: [], answer: "through the noise" });
  expect(next.notices).toEqual([expect.stringMatching(/^pi-mcp-threads was updated\..* start Pi again/)]);
});

test("an update before main could keep the files -> the session says so, in place of one with parts of two versions", async () => {
  const { dist, session } = await packedMain();
  await update(dist);
  const { failures, crashes, answer } = await session();
  expect(failures).toEqual([expect.stringMatching(/was updated: 0\.\S+ is loaded, 99\.\S+ is on the disk/)]);
  expect(crashes).toEqual([]);
  expect(answer).toMatch(/^s\/work was not called: pi-mcp-threads was updated/);
});
