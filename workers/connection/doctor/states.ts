/** What the servers' own states say: sign-ins, failures, and what was learned when they were connected last. */

import type { DoctorStage, Finding, FindingId, Severity } from "../../../src/shared/protocol/doctor.ts";
import {
  ThreadsError,
  toWireError,
  type WireError,
  withoutServer,
} from "../../../src/shared/protocol/errors.ts";
import type { ServerStatus } from "../../../src/shared/protocol/status.ts";
import { counted } from "../../../src/shared/text/counts.ts";
import { formatMs } from "../../../src/shared/text/size.ts";
import { commandFor } from "../../shared/commands.ts";
import { settledWithin } from "../../shared/pace/abort.ts";
import { createGate } from "../../shared/pace/gate.ts";
import { resolveAddress } from "../config/values/values.ts";
import { classifyFailure, explainConnect, type HttpAddress } from "../transports/http/failure.ts";
import { bareHost, proxyAddress, proxyFor } from "../web/client.ts";
import {
  allWell,
  CONNECT_MS,
  type DoctorInput,
  type Examined,
  LOOKUPS_AT_A_TIME,
  PROBES,
  PROBES_AT_A_TIME,
  reasonOf,
  staged,
} from "./check.ts";
import { type Machine, PROBE_MS } from "./machine.ts";

/** Kind of a failed exchange (transports/http/failure.ts) or code of the network -> what the finding is about. */
const BY_REASON: ReadonlyMap<string, FindingId> = new Map(
  Object.entries({
    ENOTFOUND: "dns",
    EAI_AGAIN: "dns",
    EAI_FAIL: "dns",
    ENODATA: "dns",
    ECONNREFUSED: "port",
    EHOSTUNREACH: "port",
    EHOSTDOWN: "port",
    ENETUNREACH: "port",
    ETIMEDOUT: "port",
    certificate: "tls",
    "not-tls": "tls",
    proxy: "proxy",
    "web-page": "address",
    redirect: "address",
    "refuses-streamable": "address",
    unusable: "address",
    "not-http": "address",
    rejected: "refused",
    era: "protocol",
  } as const),
);

const BY_CODE: Readonly<Partial<Record<WireError["code"], FindingId>>> = {
  needs_auth: "sign-in",
  spawn_failed: "command",
  connect_timeout: "time-out",
  server_died: "ended",
  bad_config: "variable",
  server_not_trusted: "consent",
};

/** What the error of a server is about. */
const idOf = (error: WireError): FindingId =>
  (reasonOf(error)?.startsWith("npm-") ? "npx" : BY_REASON.get(reasonOf(error) ?? "")) ??
  BY_CODE[error.code] ??
  "connect";

/** Words that point to the one thing to change, for answers whose own remedy is general. */
function remedyOf(error: WireError): string | undefined {
  if (error.data?.status === 404) {
    return "The path of the url is probably wrong: the MCP endpoint often ends in /mcp, or in /sse for old servers.";
  }
  return error.remedy;
}

/** Words of a server that was at work when a worker died (servers/status.ts). */
const isHeldBack = ({ code, message }: WireError): boolean =>
  code === "server_died" && message.endsWith("The server is not connected by itself any more.");

/** The finding about the error of an attempt to reach a server. */
function findingOf(server: string, error: WireError, severity: Severity): Finding {
  const remedy = remedyOf(error);
  // What a process wrote follows on lines of its own.
  const [title = "", ...more] = withoutServer(server, error.message).split("\n");
  return {
    id: isHeldBack(error) ? "crash" : idOf(error),
    severity,
    server,
    title,
    ...(more.length === 0 ? {} : { detail: more.join("\n") }),
    ...(remedy === undefined ? {} : { remedy }),
  };
}

function ofSignIn({ name, state, signIn, error }: ServerStatus): Finding | undefined {
  if (signIn === undefined || (state !== "needs-auth" && signIn.state !== "needed")) return undefined;
  if (signIn.state === "running") return undefined;
  const isOld = signIn.state === "signed-in";
  return {
    id: "sign-in",
    severity: "warning",
    server: name,
    title: isOld ? "The server no longer accepts its sign-in." : "The server needs a sign-in.",
    ...(error ? { detail: withoutServer(name, error.message) } : {}),
    remedy: commandFor("auth", name),
  };
}

/** The findings about one server. */
export function judgeState(status: ServerStatus): Finding[] {
  const { name, state, error, transport, protocol } = status;
  const signIn = ofSignIn(status);
  if (signIn) return [signIn];
  if (error) return [findingOf(name, error, state === "idle" && !isHeldBack(error) ? "warning" : "error")];
  if (state === "connected" && transport === "sse") {
    return [
      {
        id: "protocol",
        severity: "note",
        server: name,
        title: `The server speaks only the old SSE transport${protocol ? ` (MCP ${protocol})` : ""}.`,
        detail: "Newer revisions of MCP do without it; it works here.",
      },
    ];
  }
  return [];
}

export function checkStates({ servers }: DoctorInput): Finding[] {
  const statuses = servers.map((server) => server.status());
  const found = statuses.flatMap(judgeState);
  const connected = statuses.filter(({ state }) => state === "connected").length;
  if (found.some(({ severity }) => severity !== "note") || connected === 0) return found;
  return [...found, allWell("connect", `${counted(connected, "server")} connected without an error.`)];
}

/**
 * Whether the doctor may look at the server's address unasked. Not at one that a file of the project decides: a clone
 * must not learn where and when it is opened.
 */
export const mayProbe = ({ definition }: Pick<Examined, "definition">): boolean =>
  definition.enabled && definition.target.kind === "http" && !definition.project;

interface Way {
  machine: Machine;
  /** Lets few names be looked up at a time. */
  lookUp: Machine["lookUp"];
  stages: DoctorStage[];
  signal: AbortSignal;
}

const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === "https:" ? 443 : 80));

/** Rejects with the error of the step that failed. */
async function reach(
  { host, port, ca }: { host: string; port: number; ca: readonly string[] | undefined },
  { machine, lookUp, stages, signal }: Way,
): Promise<void> {
  const addresses = await staged(stages, `look-up of ${host}`, () => lookUp(host, signal));
  const socket = await staged(stages, `connection to port ${port}`, () =>
    machine.openSocket({ host, port }, addresses, signal),
  );
  try {
    if (ca) await staged(stages, "TLS handshake", () => socket.secure({ host, ca }, signal));
  } finally {
    socket.destroy();
  }
}

const proxyFailed = (server: string, proxy: string, error: unknown): Finding => {
  const { code } = error as NodeJS.ErrnoException;
  return {
    id: "proxy",
    severity: "error",
    server,
    title: `The proxy ${proxy}, through which the server is reached, cannot be reached${code ? ` (${code})` : ""}.`,
    remedy: "Check HTTP_PROXY and HTTPS_PROXY, or name the server's host in NO_PROXY.",
  };
};

async function throughProxy(server: string, proxy: URL, way: Way): Promise<Finding> {
  const { host, port } = proxyAddress(proxy);
  try {
    await reach({ host, port: Number(port), ca: undefined }, way);
    return {
      id: "proxy",
      severity: "note",
      server,
      title: `Requests to the server go through the proxy ${proxy.host}.`,
      remedy: "If they should not, name the server's host in NO_PROXY.",
    };
  } catch (error) {
    return proxyFailed(server, proxy.host, error);
  }
}

/** Undefined: the address can be reached, or only a command knows it. */
async function probe(
  { name: server, definition, redact }: Examined,
  way: Way,
  caFile?: string,
): Promise<Finding | undefined> {
  const { target } = definition;
  if (target.kind !== "http") return undefined;
  const { env, home, platform, cwd } = way.machine;
  const nothing = (): void => undefined;
  const options = { env, home, platform, cwd, caFile, signal: way.signal, onSpawn: nothing, onExit: nothing };
  // Nothing of the path is shown: it may hold a key, and nobody has told the redactor yet.
  const addressOf = (url: URL): HttpAddress => ({
    server,
    url: new URL(url.origin),
    proxy: undefined,
    credentials: [],
    keyPlace: definition.file,
    redact,
  });
  let address: HttpAddress | undefined;
  try {
    const found = await resolveAddress(definition, target, options);
    if (!found) return undefined;
    const url = new URL(found.url);
    address = addressOf(url);
    const proxy = proxyFor(url, env);
    if (proxy) return await throughProxy(server, proxy, way);
    const ca = url.protocol === "https:" ? (found.ca ?? []) : undefined;
    await reach({ host: bareHost(url), port: portOf(url), ca }, way);
    return undefined;
  } catch (error) {
    const failure = address ? explainConnect(classifyFailure(error), address) : error;
    if (!(failure instanceof ThreadsError)) throw error;
    const finding = findingOf(server, toWireError(failure), "error");
    return /\bcaFile\b/.test(failure.message) ? { ...finding, id: "tls" } : finding;
  }
}

const notLookedAt = (count: number): Finding => ({
  id: "unfinished",
  severity: "note",
  title: `The addresses of ${counted(count, "server")} were not looked at: there was no time.`,
});

/** Settles when the signal fires, with what is known by then. */
export async function checkNetwork(input: DoctorInput, signal: AbortSignal): Promise<Finding[]> {
  const { servers, named, machine, settings, stages } = input;
  // An open connection says more than a look.
  const wanted = servers.filter(
    (server) => mayProbe(server) && (named !== undefined || server.status().state !== "connected"),
  );
  const lookups = createGate(LOOKUPS_AT_A_TIME);
  const probes = createGate(PROBES_AT_A_TIME);
  const never = new AbortController().signal;
  const lookUp: Machine["lookUp"] = async (host, until) => {
    const leave = await lookups.enter(never);
    return machine.lookUp(host, until).finally(leave);
  };
  const found: Finding[] = [];
  let done = 0;
  const { promise: over, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  signal.addEventListener("abort", () => resolve(), { once: true });
  const all = wanted.slice(0, PROBES).map(async (server) => {
    const leave = await probes.enter(never);
    try {
      if (signal.aborted) return;
      const limited = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]);
      const way = { machine, lookUp, signal: limited, stages: named === undefined ? [] : stages };
      const finding = await probe(server, way, settings.caFile);
      // What fails because the whole time is over says nothing about the server.
      if (signal.aborted) return;
      done++;
      if (finding) found.push(finding);
    } finally {
      leave();
    }
  });
  await Promise.race([Promise.all(all), over]);
  const left = wanted.length - done;
  if (left > 0) return [...found, notLookedAt(left)];
  if (found.length > 0 || wanted.length === 0) return found;
  return [
    allWell(
      "port",
      `The ${wanted.length === 1 ? "address" : "addresses"} of ${counted(wanted.length, "server")} can be reached.`,
    ),
  ];
}

const PING_MS = 5_000;

const slow = (server: string, ms: number, waits: string | undefined): Finding => ({
  id: waits === undefined ? "time-out" : "npx",
  severity: "warning",
  server,
  title: waits
    ? `The server waits for its package: ${waits}.`
    : `The server has not started within ${formatMs(ms)}; the attempt goes on.`,
  remedy: `${commandFor("doctor")} once more in a moment tells how it ended. A first start may have to download a package.`,
});

async function ping(server: Examined, stages: DoctorInput["stages"]): Promise<Finding[] | undefined> {
  const asked = server.ifConnected((connection) => staged(stages, "ping", () => connection.ping(PING_MS)));
  if (!asked) return undefined;
  try {
    await asked;
    return [];
  } catch {
    return [
      {
        id: "ended",
        severity: "error",
        server: server.name,
        title: `The server is connected, but does not answer a ping within ${formatMs(PING_MS)}.`,
        remedy: commandFor("reconnect", server.name),
      },
    ];
  }
}

/** `ms`: the longest wait. A failure of the connect is in the server's state, which another check reads afterwards. */
export async function attempt(
  server: Examined,
  { stages }: Pick<DoctorInput, "stages">,
  ms: number = CONNECT_MS,
): Promise<Finding[]> {
  const { enabled, file } = server.definition;
  if (!enabled) {
    return [
      {
        id: "connect",
        severity: "note",
        server: server.name,
        title: "The server is switched off.",
        remedy: commandFor("enable", server.name),
        file,
      },
    ];
  }
  const pinged = await ping(server, stages);
  if (pinged) return pinged;
  const step = staged(stages, "start, handshake and list of tools", () => server.connect("user"));
  const outcome = step.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(await settledWithin(step, ms))) return [slow(server.name, ms, server.status().waits)];
  const error = await outcome;
  // Anything but the errors of the servers is a mistake of our own.
  if (error !== undefined && !(error instanceof ThreadsError)) throw error;
  return [];
}
