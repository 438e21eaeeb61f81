/**
 * Owns: six sessions of the real connection worker, each a process, that call three shared servers while servers, sessions and
 * the hub are killed at random: no wrong answer, no call that ran twice, no process that is left, and a hub that does not grow.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { hubReport } from "../../workers/connection/hub/ask.ts";
import { placeOf } from "../../workers/connection/hub/link.ts";
import { onCleanup } from "../support/cleanup.ts";
import { endHub } from "../support/hub.ts";
import { repeats } from "../support/long.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import { createRandom } from "../unit/random.ts";
import { builtWorker, fixture } from "./support.ts";

const SOAK_MS = repeats("SHARED_SOAK_MS", 10_000);
const IS_LONG = SOAK_MS > 60_000;
/**
 * A call takes up to this time at its server. Long ones are open when something is killed, and leave the processors to other
 * tests; in the long run the hub carries as many as it can.
 */
const CALL_MS = IS_LONG ? 20 : 1_000;
const SESSIONS = 6;
const SERVERS = ["a", "b", "c"];
const KILL_EVERY_MS = 1_000;
/** The hub's memory may grow by this much while it is not killed. V8 grows its heap in steps. */
const GROWTH_BYTES = (IS_LONG ? 24 : 48) * 1024 * 1024;
/** Error codes with which a call may end: the server or the hub was killed, or is started again after a pause. */
const ALLOWED = ["answered", "server_died", "connect_failed", "connection_lost"];

interface Report {
  counts: Record<string, number>;
  wrong: string[];
}

interface SoakSession {
  child: ChildProcess;
  report: Promise<Report | undefined>;
}

function startSession(agentDir: string, name: string): SoakSession {
  const file = join(import.meta.dirname, "../fixtures/shared-soak.ts");
  const child = spawn(
    process.execPath,
    [file, agentDir, name, builtWorker.href, String(CALL_MS), ...SERVERS],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  child.stdin?.on("error", () => undefined);
  let last = "";
  if (child.stdout) createInterface({ input: child.stdout }).on("line", (line) => (last = line));
  const report = once(child, "close").then(() =>
    last.startsWith("{") ? (JSON.parse(last) as Report) : undefined,
  );
  return { child, report };
}

/** `RssAnon` of a process in bytes: all but the pages of Node's own file, which every Node of the machine shares. */
async function residentOf(pid: number): Promise<number> {
  const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}

test(`${SESSIONS} sessions of ${SERVERS.length} shared servers for ${SOAK_MS} ms, deaths at random -> each answer is the call's own, no call runs twice, no process is left, the hub does not grow`, {
  tags: "thorough",
  timeout: SOAK_MS + 240_000,
}, async () => {
  const agentDir = await makeTempFolder("pmt-soak");
  const place = placeOf(agentDir);
  onCleanup(() => removeFolder(agentDir));
  const record = join(agentDir, "record");
  const entry = (name: string) => fixture("shared.mjs", { RECORD: record, NAME: name, PMT_PLACE: agentDir });
  const mcpServers = Object.fromEntries(SERVERS.map((name) => [name, entry(name)]));
  await writeFile(
    join(agentDir, "mcp.json"),
    JSON.stringify({ settings: { shared: true, idleTimeout: 0.05 }, mcpServers }),
  );
  const random = createRandom(20_261_124);
  let started = 0;
  const start = (): SoakSession => startSession(agentDir, `session${++started}`);
  const sessions = Array.from({ length: SESSIONS }, start);
  onCleanup(async () => {
    for (const { child } of sessions) child.kill("SIGKILL");
    await Promise.all(sessions.map(({ report }) => report));
    await endHub(agentDir, place);
  });
  const killed: Record<string, number> = { server: 0, session: 0, hub: 0 };
  const kill = (what: string, pid: number): void => {
    killed[what] = (killed[what] ?? 0) + 1;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  };
  const look = () => hubReport(agentDir).catch(() => undefined);
  const killServer = async (): Promise<void> => {
    const { servers = [] } = (await look()) ?? {};
    const server = servers[random.below(Math.max(1, servers.length))];
    if (server) kill("server", server.pid);
  };
  const killSession = (): void => {
    const at = random.below(SESSIONS);
    kill("session", sessions[at]?.child.pid ?? 0);
    sessions[at] = start();
  };
  const killHub = async (): Promise<void> => {
    const report = await look();
    if (report) kill("hub", report.pid);
  };
  /** Kills something from time to time. `withHub`: the hub as well. */
  const rage = async (ms: number, withHub: boolean): Promise<void> => {
    const until = performance.now() + ms;
    while (performance.now() < until) {
      await sleep(KILL_EVERY_MS * (0.5 + random.next()));
      const dice = random.below(withHub ? 6 : 4);
      if (dice >= 4) await killHub();
      else if (dice === 0) killSession();
      else if (dice < 3) await killServer();
    }
  };

  await expect.poll(async () => (await look())?.servers.length).toBe(SERVERS.length);
  await killServer();
  killSession();
  await sleep(KILL_EVERY_MS);
  await killHub();
  await rage(SOAK_MS / 2, true);
  await expect.poll(async () => (await look())?.pid).toBeGreaterThan(0);
  const hub = (await look())?.pid ?? 0;
  await rage(SOAK_MS / 8, false);
  const before = await residentOf(hub);
  await rage((SOAK_MS * 3) / 8, false);
  const grown = async (): Promise<number> => (await residentOf(hub)) - before;
  // What is garbage goes with a later collection, and what is held stays.
  await expect.poll(grown).toBeLessThan(GROWTH_BYTES);
  const after = await residentOf(hub);

  for (const { child } of sessions) child.stdin?.write("end\n");
  const reports = await Promise.all(sessions.map(({ report }) => report));
  const counts: Record<string, number> = {};
  for (const report of reports)
    for (const [code, count] of Object.entries(report?.counts ?? {}))
      counts[code] = (counts[code] ?? 0) + count;
  process.stderr.write(
    `shared soak: ${JSON.stringify({ counts, killed, hubMB: [before, after].map((bytes) => Math.round(bytes / 1e6)) })}\n`,
  );
  expect(reports.map((report) => report?.wrong)).toEqual(reports.map(() => []));
  expect(Object.keys(counts).filter((code) => !ALLOWED.includes(code))).toEqual([]);
  expect(counts.answered).toBeGreaterThan(0);
  for (const what of Object.keys(killed)) expect(killed[what]).toBeGreaterThan(0);
  // Each text is one call's own.
  const calls = (await readFile(record, "utf8")).split("\n").filter((line) => line.startsWith("call "));
  expect(calls.length).toBe(new Set(calls).size);

  const left = (await processesWithMarker(agentDir)).filter(({ pid }) => pid !== hub);
  expect(await waitGone(left.map(({ pid }) => pid))).toEqual([]);
  if (IS_LONG) expect(await waitGone([hub], 60_000)).toEqual([]);
});
