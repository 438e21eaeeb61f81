/**
 * Runs all checks at the same time and within their bounds, and puts their findings in order. A check that fails or takes
 * too long costs only itself. Called by: doctor.ts.
 */
import { release } from "node:os";
import type { DoctorReport, DoctorServer, Finding } from "../../../src/shared/protocol/doctor.ts";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { ServerStatus } from "../../../src/shared/protocol/status.ts";
import { isTrouble, worstFirst } from "../../../src/shared/text/failure.ts";
import { attempt } from "./attempt.ts";
import type { Check, DoctorInput, Examined } from "./check.ts";
import { checkConfiguration } from "./configuration.ts";
import { CHECKS_MS, FINDINGS, SERVERS_SHOWN } from "./limits.ts";
import { checkNetwork } from "./network.ts";
import { checkNpx } from "./npx.ts";
import { PACKAGE } from "./package.ts";
import { checkPlace } from "./place.ts";
import { checkPrograms } from "./programs.ts";
import { checkStates } from "./states.ts";
import { cleanFinding } from "./text.ts";
import { checkTimes } from "./times.ts";
import { checkTools } from "./tools.ts";
import { checkVariables } from "./variables.ts";

export { isMentioned } from "./configuration.ts";

/** What is checked -> the check. The first ones know causes, the last ones only what follows from them. */
const CHECKS: readonly (readonly [what: string, check: Check])[] = [
  ["the configuration files", checkConfiguration],
  ["variables", checkVariables],
  ["commands", checkPrograms],
  ["addresses", checkNetwork],
  ["packages of npx", checkNpx],
  ["times", checkTimes],
  ["tools", checkTools],
  ["the extension's folder", checkPlace],
];
/** What an attempt to connect changes is looked at after it. */
const AFTERWARDS: typeof CHECKS = [["the servers' states", checkStates]];

/** The worst first. A check says nothing about a server's trouble of which an earlier check has told the cause. */
export function inOrder(lists: readonly (readonly Finding[])[]): Finding[] {
  const causes = new Set<string>();
  const causeOf = ({ id, server }: Finding): string => `${id}\0${server}`;
  const all = lists.flatMap((list) => {
    const added = list.filter(
      (finding) => finding.server === undefined || !isTrouble(finding) || !causes.has(causeOf(finding)),
    );
    for (const finding of added.filter(isTrouble)) causes.add(causeOf(finding));
    return added;
  });
  return worstFirst(all);
}

const unfinished = (what: string, why: string): Finding => ({
  id: "unfinished",
  severity: "note",
  title: `The check of ${what} ${why}.`,
});

/** Never rejects, and settles as soon as `signal` fires. */
async function run(
  [what, check]: (typeof CHECKS)[number],
  input: DoctorInput,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { promise: over, resolve } = Promise.withResolvers<readonly Finding[]>();
  const end = (): void => resolve([unfinished(what, "was not done in time")]);
  signal.addEventListener("abort", end, { once: true });
  const done = (async () => check(input, signal))().catch((error: unknown) =>
    signal.aborted ? over : [unfinished(what, `failed: ${messageOf(error).replace(/\.$/, "")}`)],
  );
  return Promise.race([done, over]).finally(() => signal.removeEventListener("abort", end));
}

const serverLine = (server: Examined): DoctorServer => {
  const { name, transport, state, lifecycle, toolCount, protocol } = server.status();
  const { startMs } = server.timings;
  return {
    name,
    transport,
    state,
    lifecycle,
    tools: toolCount,
    ...(protocol === undefined ? {} : { protocol }),
    ...(startMs === undefined ? {} : { startMs }),
  };
};

const runtimeName = (): string =>
  process.versions.bun === undefined ? `Node ${process.versions.node}` : `Bun ${process.versions.bun}`;

const PROXIES = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

function factsOf({ all, state, machine }: DoctorInput): DoctorReport["facts"] {
  const statuses: ServerStatus[] = all.map((server) => server.status());
  return {
    version: PACKAGE.version,
    runtime: runtimeName(),
    platform: `${machine.platform} ${process.arch} ${release()}`,
    proxies: PROXIES.filter((name) => machine.env[name]),
    servers: all.length,
    connected: statuses.filter((status) => status.state === "connected").length,
    waiting: state.questions.length + state.refused.length,
    tools: statuses.reduce((sum, { toolCount }) => sum + toolCount, 0),
  };
}

/** Rejects with `cancelled`. */
export async function diagnose(input: DoctorInput): Promise<DoctorReport> {
  const startedAt = performance.now();
  const { servers, all, machine, signal } = input;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(CHECKS_MS)]);
  const { stages } = input;
  const [one] = servers;
  const connecting: Promise<readonly Finding[]> =
    input.named === undefined || !one
      ? Promise.resolve([])
      : run(["the connection", () => attempt(one, input)], input, limited);
  const [attempted, ...before] = await Promise.all([
    connecting,
    ...CHECKS.map((check) => run(check, input, limited)),
  ]);
  const after = await Promise.all(AFTERWARDS.map((check) => run(check, input, limited)));
  const lists = [attempted, ...before, ...after];
  if (signal.aborted) throw new ThreadsError("cancelled", "The doctor was cancelled.");
  const redactors = new Map(all.map((server) => [server.name, server.redact]));
  const found = inOrder(lists);
  const shown = found
    .slice(0, FINDINGS)
    .map((finding) =>
      cleanFinding(finding, { home: machine.home, redact: redactors.get(finding.server ?? "") }),
    );
  const lines = servers.slice(0, SERVERS_SHOWN).map(serverLine);
  return {
    findings: shown,
    leftOut: found.length - shown.length + servers.length - lines.length,
    facts: factsOf(input),
    servers: lines,
    stages,
    tookMs: Math.round(performance.now() - startedAt),
  };
}
