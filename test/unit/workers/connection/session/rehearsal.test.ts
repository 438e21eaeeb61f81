/** Owns: what the rehearsal of a first call runs, when it runs, and that it leaves nothing. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import { Results } from "../../../../../workers/connection/results/results.ts";
import { rehearseCall } from "../../../../../workers/connection/session/rehearsal.ts";
import type { CacheEntry } from "../../../../../workers/shared/tasks.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";
import { openWith } from "./support.ts";

const REHEARSED = /^debug a call was rehearsed in \d+ ms$/;

async function prepare() {
  const agentDir = await tempFolder();
  const { log, lines } = recordingLog();
  const settings = () => DEFAULT_SETTINGS;
  const results = new Results({ agentDir, settings, log, warn: log.warn });
  const controller = new AbortController();
  const npxCacheFile = join(agentDir, "mcp-npx-cache.json");
  const context = { cwd: agentDir, npxCacheFile, settings, log, results, signal: controller.signal };
  return { agentDir, lines, controller, context };
}

const open = (kind: string): number => process.getActiveResourcesInfo().filter((one) => one === kind).length;
const counts = () => ["ProcessWrap", "PipeWrap"].map(open);

test("a call -> answered; no process, pipe, file or line of a server is left", async () => {
  const at = await prepare();
  const before = counts();
  await rehearseCall(at.context);
  expect(at.lines).toEqual([expect.stringMatching(REHEARSED)]);
  expect(counts()).toEqual(before);
  expect(await readdir(at.agentDir)).toEqual([]);
});

test("the session ends before it, or while it runs -> it ends without a word", async () => {
  const early = await prepare();
  early.controller.abort();
  await rehearseCall(early.context);
  const at = await prepare();
  const rehearsal = rehearseCall(at.context);
  at.controller.abort();
  await rehearsal;
  expect([early.lines, at.lines]).toEqual([[], []]);
});

const entry: CacheEntry = { configHash: "hash", tools: [{ name: "t" }], cachedAt: 1 };
const rested = { rested: "{}" };
const asks = (lines: readonly string[]) => lines.filter((line) => line.includes("rehearsed"));

test("a session that has rested, its servers known -> rehearsed once, and no server connects", async () => {
  const at = await openWith({ a: {} }, { entries: { a: entry }, facts: rested });
  await vi.waitFor(() => expect(asks(at.lines)).toEqual([expect.stringMatching(REHEARSED)]), 5_000);
  expect(at.openings).toEqual([]);
});

test("a server that connects, or only servers at an address -> not rehearsed", async () => {
  const connecting = await openWith({ a: {} }, { facts: rested });
  const remote = await openWith(
    { a: { command: undefined, url: "http://127.0.0.1:9/mcp" } },
    { entries: { a: entry }, facts: rested },
  );
  await connecting.opening("a");
  // The rehearsal of this one comes after the time at which theirs would have.
  const later = await openWith({ a: {} }, { entries: { a: entry }, facts: rested });
  await vi.waitFor(() => expect(asks(later.lines)).toHaveLength(1), 5_000);
  expect([asks(connecting.lines), asks(remote.lines)]).toEqual([[], []]);
});
