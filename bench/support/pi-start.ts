/**
 * Owns: one measured start of the real Pi: over RPC, one prompt, watched for two seconds.
 * Must not: summarise; one start gives one set of figures.
 * Called by: the start scenario.
 */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startModel } from "../../test/support/model.ts";
import { createHome, type PiHome, startRpc } from "../../test/support/pi-run.ts";
import { type ProbeReport, readProbeReport } from "./probe-report.ts";
import { syntheticTools } from "./synthetic-tools.ts";
import { withProbe } from "./with-probe.ts";

const TOOL_SERVER = fileURLToPath(new URL("./tool-server.mjs", import.meta.url));
const POLL_MS = 20;
const CONNECT_TIMEOUT_MS = 30_000;
/**
 * Every case is watched for as long: the heartbeat and Pi itself use CPU while nothing happens. Long enough
 * for 20 servers to connect and for what follows, such as a catalog event.
 */
const WINDOW_MS = 2_000;

const nowMs = (): number => performance.timeOrigin + performance.now();

export interface PiStart {
  probe: ProbeReport;
  /** From the start of the process until its first request reached the model. */
  firstRequestMs: number;
  /** From the start of the process until the last server was connected; undefined if none was to connect. */
  connectedMs: number | undefined;
  /** `session_shutdown` handler. */
  shutdownMs: number | undefined;
}

export interface PreparedHome {
  home: PiHome;
  servers: number;
  dispose(): Promise<void>;
}

/** A home with `servers` configured servers, whose tools one start has already learned and stored. */
export async function prepareHome(options: {
  entry: string;
  servers: number;
  toolsPerServer: number;
}): Promise<PreparedHome> {
  const { entry, servers, toolsPerServer } = options;
  const home = await createHome();
  const prepared: PreparedHome = { home, servers, dispose: () => home.dispose() };
  const mcpServers: Record<string, unknown> = {};
  for (let index = 1; index <= servers; index++) {
    const tools = syntheticTools(toolsPerServer, index);
    const file = await home.writeFile(join("..", "tools", `${index}.json`), tools);
    mcpServers[`bench-${index}`] = {
      command: process.execPath,
      args: [TOOL_SERVER],
      env: { TOOLS_FILE: file },
      description: `Server ${index} of the benches, for issues, files and messages.`,
    };
  }
  await home.writeMcp({ mcpServers });
  try {
    await startOnce({ subject: entry, home: prepared, cold: true });
    return prepared;
  } catch (error) {
    await prepared.dispose();
    throw error;
  }
}

/** Starts Pi with `subject`, sends one prompt, waits until the window is over, and ends it. */
export async function startOnce(options: {
  subject: string;
  home: PreparedHome;
  cold: boolean;
}): Promise<PiStart> {
  const { subject, cold } = options;
  const { home, servers } = options.home;
  const logFile = join(home.agentDir, "mcp-threads.log");
  const reportFile = join(home.dir, "report.json");
  const forgotten = cold ? ["mcp-cache.json", "mcp-snapshots"] : [];
  for (const name of ["mcp-threads.log", ...forgotten]) {
    await rm(join(home.agentDir, name), { recursive: true, force: true });
  }

  const model = await startModel([{ text: "ready" }]);
  const session = await startRpc({
    home,
    model,
    extensions: withProbe(subject),
    env: { BENCH_REPORT: reportFile },
  });
  try {
    await session.prompt("hello");
    const connectedMs = cold ? await waitConnected(logFile, servers, session.startedAtMs) : undefined;
    await sleep(Math.max(session.startedAtMs + WINDOW_MS - nowMs(), 0));
    await session.command("/bench-report");
    const probe = await readProbeReport(reportFile);
    const arrivedAtMs = model.requests[0]?.arrivedAtMs;
    if (arrivedAtMs === undefined) throw new Error("Pi made no request");
    await session.stop();
    // The exit has written the report again, now with the shutdown.
    const { shutdownMs } = await readProbeReport(reportFile);
    return { probe, firstRequestMs: arrivedAtMs - session.startedAtMs, connectedMs, shutdownMs };
  } finally {
    await session.stop();
    await model.close();
  }
}

/** Reads the log from outside, so that Pi is not disturbed: `bench-3 connected over stdio, ...`. */
async function waitConnected(logFile: string, servers: number, startedAtMs: number): Promise<number> {
  const deadlineMs = nowMs() + CONNECT_TIMEOUT_MS;
  for (;;) {
    const log = await readFile(logFile, "utf8").catch(() => "");
    const connected = log.match(/ connected over /g)?.length ?? 0;
    if (connected >= servers) return nowMs() - startedAtMs;
    if (nowMs() > deadlineMs) {
      throw new Error(`${connected} of ${servers} servers connected. ${logFile} ends:\n${log.slice(-2_000)}`);
    }
    await sleep(POLL_MS);
  }
}
