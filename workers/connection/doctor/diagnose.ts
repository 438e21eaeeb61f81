/**
 * Runs all checks at the same time and within their bounds, and puts their findings in order. A check that fails or takes
 * too long costs only itself. A finding
 * fits to be shown to others: one line, bounded, without secrets, queries of urls and the path of the home folder.
 */

import { release } from "node:os";
import manifest from "../../../package.json" with { type: "json" };
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { DoctorReport, DoctorServer, Finding, FindingId } from "../../../src/shared/protocol/person.ts";
import type { ServerStatus } from "../../../src/shared/protocol/session.ts";
import { isTrouble, worstFirst } from "../../../src/shared/text/failure.ts";
import { escapePattern } from "../../../src/shared/text/reading.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { advice } from "../../shared/commands.ts";
import { settledWithin } from "../../shared/pace/abort.ts";
import { lineOf } from "../config/edit/setting-change.ts";
import {
  CHECKS_MS,
  type Check,
  DETAIL_CHARS,
  type DoctorInput,
  type Examined,
  FINDINGS,
  REMEDY_CHARS,
  SERVERS_SHOWN,
  TITLE_CHARS,
} from "./check.ts";
import { checkConfiguration, checkPlace, isMentioned } from "./configuration.ts";
import { checkInherited, checkNpx, checkPrograms, checkVariables } from "./programs.ts";
import { checkSharing } from "./sharing.ts";
import { checkSignIns } from "./sign-ins.ts";
import { attempt, checkNetwork, checkStates } from "./states.ts";
import { checkTimes, checkTools } from "./tools.ts";

export const PACKAGE = { name: manifest.name, version: manifest.version };

/** What may follow the home folder's path, so that `/home/ann` is not found in `/home/anna`. */
const END = "(?=$|[/\\\\\\s\"'`,;:)\\]])";

/** The text with `~` in the place of the home folder. */
export function withoutHome(text: string, home: string): string {
  if (home.length < 2) return text;
  return text.replaceAll(new RegExp(`${escapePattern(home)}${END}`, "g"), "~");
}

/** Urls lose their user, their query and their fragment, which may be secrets. */
export const withoutQueries = (text: string): string =>
  text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)(?:[^\s/?#@"'`]*@)?([^\s?#"'`]*)(?:[?#][^\s"'`]*)?/gi, "$1$2");

export interface TextFacts {
  home: string;
  /** Takes the secrets of the finding's server out. Absent: the finding has no words of a server. */
  redact?: ((text: string) => string) | undefined;
}

/** Cleans before it cuts: half a secret would not be found. */
export function cleanFinding(finding: Finding, { home, redact = (text) => text }: TextFacts): Finding {
  const clean = (text: string, chars: number): string =>
    oneLine(withoutHome(withoutQueries(redact(text)), home), chars);
  const { title, detail, remedy, file, ...rest } = finding;
  return {
    ...rest,
    title: clean(title, TITLE_CHARS),
    ...(detail ? { detail: clean(detail, DETAIL_CHARS) } : {}),
    ...(remedy ? { remedy: clean(remedy, REMEDY_CHARS) } : {}),
    ...(file === undefined ? {} : { file: clean(file, TITLE_CHARS) }),
  };
}

/** What is checked -> the check. The first ones know causes, the last ones only what follows from them. */
const CHECKS: readonly (readonly [what: string, check: Check])[] = [
  ["the configuration files", checkConfiguration],
  ["variables", checkVariables],
  ["commands", checkPrograms],
  ["the environment", checkInherited],
  ["the sandbox", async (input, signal) => (await import("./sandbox.ts")).checkSandbox(input, signal)],
  ["addresses", checkNetwork],
  ["packages of npx", checkNpx],
  ["times", checkTimes],
  ["tools", checkTools],
  ["the extension's folder", checkPlace],
  ["stored sign-ins", checkSignIns],
];
/** What an attempt to connect changes is looked at after it. */
const AFTERWARDS: typeof CHECKS = [
  ["the servers' states", checkStates],
  ["shared servers", checkSharing],
];

/**
 * The worst first. A check says nothing about a server's trouble of which an earlier check has told the cause, unless it
 * calls an error what was a warning before: a start that failed counts more than one that might fail.
 */
export function inOrder(lists: readonly (readonly Finding[])[]): Finding[] {
  const causeOf = ({ id, server }: Finding): string => `${id}\0${server}`;
  let all: Finding[] = [];
  for (const list of lists) {
    const told = new Map<string, Finding["severity"]>();
    for (const one of worstFirst(all).reverse()) told.set(causeOf(one), one.severity);
    const added = list.filter((finding) => {
      if (finding.server === undefined || !isTrouble(finding)) return true;
      const before = told.get(causeOf(finding));
      return before !== "error" && before !== finding.severity;
    });
    const replaces = (before: Finding): boolean =>
      before.severity === "warning" &&
      before.server !== undefined &&
      added.some(
        (now) => now.severity === "error" && causeOf(now) === causeOf(before) && now.remedy === before.remedy,
      );
    all = [...all.filter((before) => !replaces(before)), ...added];
  }
  return worstFirst(all);
}

/** What a finding about a server is about -> the key of its entry that is to be changed. */
const KEYS: Readonly<Partial<Record<FindingId, string>>> = {
  command: "command",
  folder: "cwd",
  variable: "env",
  dns: "url",
  port: "url",
  tls: "url",
  address: "url",
  refused: "url",
  protocol: "protocol",
  "time-out": "timeout",
  tokens: "directTools",
  connect: "command",
};
/** Each place is read from the files anew, and a file may lie on a network that does not answer. */
const PLACES = 20;
const PLACES_MS = 2_000;

/** The finding with the line of the key, or else of the server's entry, in the file that the person has to change. */
async function placed(finding: Finding, all: readonly Examined[]): Promise<Finding> {
  const definition = all.find(({ name }) => name === finding.server)?.definition;
  const key = KEYS[finding.id];
  const isElsewhere = finding.file !== undefined && finding.file !== definition?.file;
  if (!definition || key === undefined || isElsewhere || finding.line !== undefined) return finding;
  const place = await lineOf(definition, [key]);
  return { ...finding, ...(place.line === undefined ? await lineOf(definition, []) : place) };
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
  const { name, transport, state, lifecycle, toolCount, protocol, error } = server.status();
  const reason = state === "needs-auth" ? error?.data?.reason : undefined;
  const { startMs } = server.timings;
  return {
    name,
    transport,
    state,
    ...(typeof reason === "string" ? { reason } : {}),
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

const unknown = (server: string, known: readonly { name: string }[]): ThreadsError =>
  new ThreadsError("unknown_server", `No server named ${server} is configured.`, {
    remedy: advice("lists"),
    data: { known: known.slice(0, SERVERS_SHOWN).map(({ name }) => name) },
  });

/** Rejects with `unknown_server` or `cancelled`. */
export async function diagnose(input: DoctorInput): Promise<DoctorReport> {
  const startedAt = performance.now();
  const { servers, all, machine, signal, named } = input;
  if (named !== undefined && servers.length === 0 && !isMentioned(input.state, named))
    throw unknown(named, all);
  const limited = AbortSignal.any([signal, AbortSignal.timeout(CHECKS_MS)]);
  const { stages } = input;
  const [one] = servers;
  const connecting: Promise<readonly Finding[]> =
    named === undefined || !one
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
  const first = found.slice(0, FINDINGS);
  const places = Promise.all(first.map((finding, at) => (at < PLACES ? placed(finding, all) : finding)));
  const withPlaces = (await settledWithin(places, PLACES_MS)) ? await places : first;
  const shown = withPlaces.map((finding) =>
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
