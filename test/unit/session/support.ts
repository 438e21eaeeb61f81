/** Owns: a session on a Pi in memory whose only neighbour, the runtime, is a fake. No thread, no Pi. */
import { mkdir, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { snapshotPath } from "../../../src/catalog/store.ts";
import type { Runtime, RuntimeOptions } from "../../../src/runtime/contract.ts";
import { createSession, type Session, type SessionOptions } from "../../../src/session/session.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import {
  type CatalogSettings,
  DEFAULT_CATALOG_SETTINGS,
  type ServerStatus,
  type StatusReport,
} from "../../../src/shared/protocol/session.ts";
import { onCleanup } from "../../support/cleanup.ts";
import { type MadeServer, makeSnapshotBytes } from "../make-catalog.ts";
import {
  createRecordingContext,
  type RecordingContext,
  type RecordingOptions,
} from "../recording-context.ts";
import { createRecordingPi, type RecordingPi, type RecordingPiOptions } from "../recording-pi.ts";
import { makeReport, makeStatus } from "../server-status.ts";
import { tempFolder } from "../temp-folder.ts";

export interface FakeRuntime {
  options: RuntimeOptions;
  /** Requests in order: method and parameters. */
  asked: [method: string, params: unknown][];
  /** Lines of the log, without their level. */
  logged: string[];
  isStopped: boolean;
}

/** What the runtime answers; a request without an answer here fails. */
export type Answers = Partial<Record<string, (params: unknown) => unknown>>;

export interface Opened extends RecordingContext {
  agentDir: string;
  pi: RecordingPi;
  session: Session;
  /** One per start, in order. */
  runtimes: FakeRuntime[];
  answers: Answers;
  /** Sends an event of the newest runtime. */
  send(event: WorkerEvent): void;
}

function fakeRuntime(options: RuntimeOptions, answers: Answers): Runtime & { fake: FakeRuntime } {
  const fake: FakeRuntime = { options, asked: [], logged: [], isStopped: false };
  const answer = async (method: string, params: unknown): Promise<never> => {
    fake.asked.push([method, params]);
    if (fake.isStopped) throw new ThreadsError("runtime_stopped", "stopped");
    const found = answers[method];
    if (!found) throw new Error(`${method} was not expected`);
    return (await found(params)) as never;
  };
  return {
    fake,
    callTool: (params) => answer("callTool", params),
    settleTools: (params) => answer("settleTools", params),
    ask: answer,
    post: (method, params) => void fake.asked.push([method, params]),
    log: (_level, message) => void fake.logged.push(message),
    isBehind: async () => false,
    stop: async () => {
      fake.isStopped = true;
    },
  };
}

export interface OpenOptions extends RecordingOptions, RecordingPiOptions {
  /** Servers of the snapshot that the factory finds; undefined for no snapshot. */
  snapshot?: readonly MadeServer[];
  /** Settings of the snapshot. */
  settings?: Partial<CatalogSettings>;
  answers?: Answers;
  /** Whether the session has started. */
  started?: boolean;
  agentDir?: string;
  /** What the factory takes the session's folder for. */
  factory?: Omit<SessionOptions, "agentDir">;
}

/** Far in the future, so that no real file of this machine is newer than a snapshot. */
const WRITTEN_AT = new Date("2099-01-01");

export async function storeSnapshot(
  agentDir: string,
  cwd: string,
  servers: readonly MadeServer[],
  settings: Partial<CatalogSettings> = {},
): Promise<void> {
  const path = snapshotPath(agentDir, { cwd });
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, makeSnapshotBytes(servers, settings));
  await utimes(path, WRITTEN_AT, WRITTEN_AT);
}

/** Writes a file that is newer than every snapshot of these tests. */
export async function writeNewer(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, "{}");
  await utimes(path, new Date("2099-01-02"), new Date("2099-01-02"));
}

/** Runs the factory and, unless `started` is false, `session_start`. */
export async function openSession(options: OpenOptions = {}): Promise<Opened> {
  const agentDir = options.agentDir ?? (await tempFolder());
  const cwd = options.cwd ?? join(agentDir, "project");
  const factory = options.factory ?? { cwd, configFile: undefined };
  if (options.snapshot) await storeSnapshot(agentDir, factory.cwd, options.snapshot, options.settings);
  const pi = createRecordingPi(options);
  const recording = createRecordingContext({ ...options, cwd });
  const runtimes: FakeRuntime[] = [];
  const answers: Answers = { ...options.answers };
  const session = createSession(pi, {
    agentDir,
    ...factory,
    startRuntime: (runtimeOptions) => {
      const { fake, ...runtime } = fakeRuntime(runtimeOptions, answers);
      runtimes.push(fake);
      return runtime;
    },
  });
  // The slot of the only session is global.
  onCleanup(() => session.stop());
  session.register();
  if (options.started !== false) session.start(recording.ctx);
  const send = (event: WorkerEvent): void => runtimes.at(-1)?.options.onEvent(event);
  return { ...recording, agentDir, pi, session, runtimes, answers, send };
}

export const planned = (report: Partial<StatusReport> = {}): Extract<WorkerEvent, { type: "planned" }> => ({
  type: "planned",
  settings: DEFAULT_CATALOG_SETTINGS,
  accepted: { servers: [] },
  ...makeReport(report),
});

/** A plan of these servers: each is connected and its tools are known, unless the test says otherwise. */
export const planOf = (servers: Record<string, Partial<ServerStatus>>): WorkerEvent =>
  planned({ servers: Object.entries(servers).map(([name, rest]) => makeStatus(name, rest)) });

export const catalogOf = (servers: readonly MadeServer[]): WorkerEvent => ({
  type: "catalog",
  snapshot: makeSnapshotBytes(servers),
});

/** Names of the MCP tools that Pi has, each once, without the withdrawn ones. */
export const reachable = ({ tools }: RecordingPi): string[] =>
  [...tools.values()]
    .filter(({ name, exposure }) => name.includes("__") && exposure !== "hidden")
    .map(({ name }) => name);

/** Names of the tools that Pi declares from the first request on. */
export const direct = ({ tools }: RecordingPi): string[] =>
  [...tools.values()].filter(({ exposure }) => exposure === "direct").map(({ name }) => name);

/** The entry of a transcript that declares tools. */
export const declares = (...names: string[]): unknown => ({
  type: "message",
  message: {
    role: "system",
    content: [],
    toolsAdded: names.map((name) => ({ name, description: "As it was.", parameters: { type: "object" } })),
  },
});
