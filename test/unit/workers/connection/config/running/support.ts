/**
 * Opens a running configuration on real files in a folder of its own, without Pi, threads or servers, and records
 * what it hands on: plans in the words of the effect notice, edits that wait, and lines of the log.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";
import type { AcceptedBefore, SessionFacts } from "../../../../../../src/shared/protocol/session.ts";
import {
  type ConfigState,
  type RunningConfiguration,
  runConfiguration,
} from "../../../../../../workers/connection/config/config.ts";
import { describeEffect, type Plan } from "../../../../../../workers/connection/config/plan/plan.ts";
import type { Log } from "../../../../../../workers/shared/log.ts";
import { put, temporaryFolder } from "../support.ts";

/** The folders of a user and of his project. */
export interface Home {
  agentDir: string;
  cwd: string;
  /** The user's own mcp.json. */
  mcp: string;
  /** The project's .pi/mcp.json. */
  projectPi: string;
  /** The project's .mcp.json. */
  projectFile: string;
}

export async function createHome(): Promise<Home> {
  const dir = await temporaryFolder();
  vi.stubEnv("HOME", dir);
  onTestFinished(() => void vi.unstubAllEnvs());
  const [agentDir, cwd] = [join(dir, "agent"), join(dir, "project")];
  await mkdir(agentDir);
  await mkdir(cwd);
  return {
    agentDir,
    cwd,
    mcp: join(agentDir, "mcp.json"),
    projectPi: join(cwd, ".pi", "mcp.json"),
    projectFile: join(cwd, ".mcp.json"),
  };
}

export interface Recorded {
  running: RunningConfiguration;
  first: Plan;
  /** The effect of each plan, the first plan left out; an idle plan is "". */
  effects: string[];
  /** What main would hold for the next worker. */
  accepted: () => AcceptedBefore;
  /** Edits that wait, as the user hears of them. */
  held: { id: string; text: string }[];
  log: string[];
  /** Names of the servers that may run and are enabled. */
  runs: () => string[];
  /** Names of the servers about which the user is asked. */
  asked: () => string[];
  /** Settles when everything that is on the disk now has been read, and applied or held. */
  settled: () => Promise<void>;
}

export const enabledIn = ({ servers }: RunningConfiguration["now"]): string[] =>
  servers.filter(({ enabled }) => enabled).map(({ name }) => name);

export async function open(home: Home, over: Partial<SessionFacts> = {}): Promise<Recorded> {
  const effects: string[] = [];
  const held: Recorded["held"] = [];
  const log: string[] = [];
  let accepted: AcceptedBefore = { servers: [] };
  const plans: Plan[] = [];
  const record = (message: string): void => void log.push(message);
  const recorder: Log = {
    debug: record,
    info: record,
    warn: record,
    error: record,
    write: (_, message) => record(message),
    flush: async () => undefined,
  };
  const { agentDir, cwd } = home;
  const facts: SessionFacts = {
    agentDir,
    cwd,
    projectTrusted: true,
    configPath: undefined,
    registered: [],
    canAsk: true,
    snapshotChecksum: undefined,
    ...over,
  };
  const running = await runConfiguration({
    facts,
    log: recorder,
    onPlan: async (change: Plan, _: ConfigState, now: AcceptedBefore) => {
      accepted = now;
      if (plans.push(change) > 1) effects.push(describeEffect(change, new Map()) ?? "");
    },
    onHeld: (edit) =>
      held.push({ id: edit?.id ?? "", text: (edit && describeEffect(edit.change, new Map())) ?? "" }),
    onFirstChange: () => undefined,
    signal: new AbortController().signal,
  });
  onTestFinished(() => running.close());
  return {
    running,
    first: plans[0] as Plan,
    effects,
    accepted: () => accepted,
    held,
    log,
    runs: () => enabledIn(running.now),
    asked: () => running.state.questions.map(({ server }) => server),
    settled: () => running.register(facts.registered),
  };
}

/** Waits until `read` gives this. */
export const becomes = async <T>(read: () => T | Promise<T>, expected: T): Promise<void> =>
  expect.poll(read).toEqual(expected);

export const server = (args: string[] = [], more: Record<string, unknown> = {}) => ({
  command: "x",
  args,
  ...more,
});

export const configOf = (mcpServers: Record<string, unknown>, settings?: Record<string, unknown>) => ({
  ...(settings ? { settings } : {}),
  mcpServers,
});

/** The decisions in mcp-trust.json. */
export async function decisionsOf({ agentDir }: Home): Promise<string[]> {
  const text = await readFile(join(agentDir, "mcp-trust.json"), "utf8").catch(() => '{"consents":[]}');
  const { consents } = JSON.parse(text) as { consents: { server: string; decision: string }[] };
  return consents.map(({ server: name, decision }) => `${name} ${decision}`);
}

/** Answers the open question about this server. */
export async function answer(
  { running }: Recorded,
  name: string,
  decision: "allowed" | "refused",
): Promise<string> {
  const hash = running.state.questions.find((question) => question.server === name)?.hash;
  if (hash === undefined) throw new Error(`nobody asks about ${name}`);
  await running.answer(hash, decision);
  return hash;
}

export { put };
