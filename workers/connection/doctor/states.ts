/**
 * Whether servers are reached: what their own states say, whether the addresses of remote ones can be reached, and the
 * attempt to connect the one that the person named. Looks only at addresses that the user's own files define, opens
 * connections and sends nothing over them.
 */

import {
  ThreadsError,
  toWireError,
  type WireError,
  withoutServer,
} from "../../../src/shared/protocol/errors.ts";
import type { DoctorStage, Finding, FindingId, Severity } from "../../../src/shared/protocol/person.ts";
import type { ServerStatus } from "../../../src/shared/protocol/session.ts";
import { counted, formatMs } from "../../../src/shared/text/amounts.ts";
import { commandFor } from "../../shared/commands.ts";
import { settledWithin } from "../../shared/pace/abort.ts";
import { createGate } from "../../shared/pace/pace.ts";
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
  staged,
} from "./check.ts";
import { type Machine, PROBE_MS } from "./machine.ts";

/** What a finding is about -> kinds of a failed exchange (transports/http), codes of the network, and codes of errors. */
const KINDS: Readonly<Partial<Record<FindingId, readonly string[]>>> = {
  dns: ["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "ENODATA"],
  port: ["ECONNREFUSED", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH", "ETIMEDOUT"],
  tls: ["certificate", "not-tls", "tls-refused", "ca-file"],
  proxy: ["proxy"],
  address: ["web-page", "redirect", "refuses-streamable", "unusable", "not-http"],
  refused: ["rejected"],
  protocol: ["era"],
  crash: ["held-back"],
  "sign-in": ["needs_auth"],
  command: ["spawn_failed"],
  // The check of the programs has told of it under this word.
  folder: ["no-folder"],
  "time-out": ["connect_timeout"],
  ended: ["server_died"],
  variable: ["bad_config"],
  consent: ["server_not_trusted"],
};
const ID_OF = new Map(
  Object.entries(KINDS).flatMap(([id, kinds]) => kinds.map((kind) => [kind, id as FindingId] as const)),
);

/** What the error of a server is about: its reason says more than its code. */
function idOf({ code, data }: WireError): FindingId {
  const reason = typeof data?.reason === "string" ? data.reason : "";
  return (reason.startsWith("npm-") ? "npx" : ID_OF.get(reason)) ?? ID_OF.get(code) ?? "connect";
}

const NOT_FOUND_REMEDY =
  "The path of the url is probably wrong: the MCP endpoint often ends in /mcp, or in /sse for old servers.";

/** The finding about the error of an attempt to reach a server. */
function findingOf(server: string, error: WireError, severity: Severity): Finding {
  const remedy = error.data?.status === 404 ? NOT_FOUND_REMEDY : error.remedy;
  // What a process wrote follows on lines of its own.
  const [title = "", ...more] = withoutServer(server, error.message).split("\n");
  return {
    id: idOf(error),
    severity,
    server,
    title,
    ...(more.length === 0 ? {} : { detail: more.join("\n") }),
    ...(remedy === undefined ? {} : { remedy }),
  };
}

const bound = (server: string): Finding => ({
  id: "sign-in",
  severity: "note",
  server,
  title: "The sign-in is bound to a key (DPoP).",
  detail: "Its tokens are of no use without the key, which is stored beside them.",
});

/** The finding about one server; undefined: nothing is wrong. */
export function judgeState(status: ServerStatus): Finding | undefined {
  const { name: server, state, error, transport, protocol, signIn } = status;
  const wantsSignIn = signIn && (state === "needs-auth" || signIn.state === "needed");
  if (wantsSignIn && signIn.state !== "running") {
    const isOld = signIn.state === "signed-in";
    return {
      id: "sign-in",
      severity: "warning",
      server,
      title: isOld ? "The server no longer accepts its sign-in." : "The server needs a sign-in.",
      // That it needs a sign-in, the title says; not that it is one at the company's identity provider.
      ...(error && (error.data?.reason !== "not-signed-in" || error.data.at !== undefined)
        ? { detail: withoutServer(server, error.message) }
        : {}),
      remedy: commandFor("auth", server),
    };
  }
  if (error) {
    const isPast = state === "idle" && error.data?.reason !== "held-back";
    return findingOf(server, error, isPast ? "warning" : "error");
  }
  if (state !== "connected") return undefined;
  if (transport !== "sse") return signIn?.state === "signed-in" && signIn.isBound ? bound(server) : undefined;
  return {
    id: "protocol",
    severity: "note",
    server,
    title: `The server speaks only the old SSE transport${protocol ? ` (MCP ${protocol})` : ""}.`,
    detail: "Newer revisions of MCP do without it; it works here.",
  };
}

/** The doctor starts no server that the person did not name. */
function notConnected(statuses: readonly ServerStatus[]): Finding[] {
  const count = statuses.filter(({ state, error }) => state === "idle" && !error).length;
  if (count === 0) return [];
  return [
    {
      id: "connect",
      severity: "note",
      title: `${counted(count, "server")} ${count === 1 ? "does" : "do"} not run now, and nothing was started.`,
      remedy: `${commandFor("doctor", "<server>")} starts one and looks at it.`,
    },
  ];
}

export function checkStates({ servers }: DoctorInput): Finding[] {
  const statuses = servers.map((server) => server.status());
  const found = [...statuses.flatMap((status) => judgeState(status) ?? []), ...notConnected(statuses)];
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

async function throughProxy(server: string, proxy: URL, way: Way): Promise<Finding> {
  const { host, port } = proxyAddress(proxy);
  const about = { id: "proxy", server } as const;
  try {
    await reach({ host, port: Number(port), ca: undefined }, way);
    return {
      ...about,
      severity: "note",
      title: `Requests to the server go through the proxy ${proxy.host}.`,
      remedy: "If they should not, name the server's host in NO_PROXY.",
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return {
      ...about,
      severity: "error",
      title: `The proxy ${proxy.host}, through which the server is reached, cannot be reached${code ? ` (${code})` : ""}.`,
      remedy: "Check HTTP_PROXY and HTTPS_PROXY, or name the server's host in NO_PROXY.",
    };
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
  const nothing = (): void => undefined;
  const options = { ...way.machine, caFile, signal: way.signal, onSpawn: nothing, onExit: nothing };
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
    const proxy = proxyFor(url, way.machine.env);
    if (proxy) return await throughProxy(server, proxy, way);
    const ca = url.protocol === "https:" ? (found.ca ?? []) : undefined;
    await reach({ host: bareHost(url), port: Number(url.port || (ca ? 443 : 80)), ca }, way);
    return undefined;
  } catch (error) {
    const failure = address ? explainConnect(classifyFailure(error), address) : error;
    if (!(failure instanceof ThreadsError)) throw error;
    return findingOf(server, toWireError(failure), "error");
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

async function ping(server: Examined, stages: DoctorStage[]): Promise<Finding[] | undefined> {
  const asked = server.ifConnected((connection) => staged(stages, "ping", () => connection.ping(PING_MS)));
  const silent: Finding = {
    id: "ended",
    severity: "error",
    server: server.name,
    title: `The server is connected, but does not answer a ping within ${formatMs(PING_MS)}.`,
    remedy: commandFor("reconnect", server.name),
  };
  return asked?.then(
    () => [],
    () => [silent],
  );
}

/** `ms`: the longest wait. A failure of the connect is in the server's state, which another check reads afterwards. */
export async function attempt(
  server: Examined,
  { stages }: Pick<DoctorInput, "stages">,
  ms: number = CONNECT_MS,
): Promise<Finding[]> {
  const { name, definition } = server;
  const { enabled, file } = definition;
  const title = "The server is switched off.";
  const remedy = commandFor("enable", name);
  if (!enabled) return [{ id: "connect", severity: "note", server: name, title, remedy, file }];
  const pinged = await ping(server, stages);
  if (pinged) return pinged;
  const step = staged(stages, "start, handshake and list of tools", () => server.connect("user"));
  if (await settledWithin(step, ms)) {
    await step.catch((error: unknown) => {
      // Anything but the errors of the servers is a mistake of our own.
      if (!(error instanceof ThreadsError)) throw error;
    });
    return [];
  }
  const { waits } = server.status();
  const slow = `The server has not started within ${formatMs(ms)}; the attempt goes on.`;
  return [
    {
      id: waits === undefined ? "time-out" : "npx",
      severity: "warning",
      server: name,
      title: waits ? `The server waits for its package: ${waits}.` : slow,
      remedy: `Run ${commandFor("doctor")} again in a moment to see how it ended. A first start may have to download a package.`,
    },
  ];
}
