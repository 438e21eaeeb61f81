/** Makes servers, a machine and an input for the checks of the doctor. */
import type { ServerStatus } from "../../../../../src/shared/protocol/session.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import type { DoctorInput, Examined } from "../../../../../workers/connection/doctor/check.ts";
import type { Machine } from "../../../../../workers/connection/doctor/machine.ts";
import { makeStatus } from "../../../server-status.ts";
import { definition } from "../config/support.ts";

export const makeMachine = (over: Partial<Machine> = {}): Machine => ({
  env: { PATH: "/usr/bin:/bin" },
  home: "/home/me",
  platform: "linux",
  cwd: "/work/app",
  findProgram: async () => undefined,
  kindOf: async () => "missing",
  versionOf: async () => undefined,
  printedBy: async () => ({ stdout: "", stderr: "" }),
  lookAt: async () => undefined,
  list: async () => [],
  tryToWrite: async () => undefined,
  freeBytes: async () => undefined,
  commandLines: async () => [],
  sharedServers: async () => undefined,
  signIns: async () => [],
  probeTokenStore: async () => undefined,
  lookUp: async () => [{ address: "192.0.2.1", family: 4 }],
  openSocket: async () => ({ destroy: () => undefined, secure: async () => undefined }),
  ...over,
});

export const examined = (
  name: string,
  entry: Record<string, unknown>,
  status: Partial<ServerStatus> = {},
  more: Partial<Examined> = {},
): Examined => ({
  name,
  definition: definition(name, entry),
  redact: (text) => text,
  status: () => makeStatus(name, status),
  connect: async () => undefined,
  ifConnected: () => undefined,
  timings: { slowestCallMs: 0, lateCalls: 0 },
  ...more,
});

export const makeInput = (servers: readonly Examined[], over: Partial<DoctorInput> = {}): DoctorInput => ({
  state: { problems: [], files: [], questions: [], refused: [] },
  facts: { cwd: "/work/app", projectTrusted: true },
  settings: DEFAULT_SETTINGS,
  servers,
  all: servers,
  named: undefined,
  agentDir: "/home/me/.pi/agent",
  machine: makeMachine(),
  stages: [],
  catalog: { inspect: async () => ({ tools: [], taken: [], repairs: [], leftOut: [], problems: [] }) },
  signal: new AbortController().signal,
  ...over,
});
