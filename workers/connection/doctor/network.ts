/**
 * Whether the addresses of remote servers can be reached: the name, the port, the certificate, and the proxy on the way.
 * Looks only at addresses that the user's own files define, opens connections and sends nothing over them.
 */
import type { DoctorStage, Finding } from "../../../src/shared/protocol/doctor.ts";
import { ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { counted } from "../../../src/shared/text/counts.ts";
import { createGate } from "../../shared/pace/gate.ts";
import { resolveAddress } from "../config/values/values.ts";
import { classifyFailure, explainConnect, type HttpAddress } from "../transports/http/failure.ts";
import { bareHost, proxyAddress, proxyFor } from "../web/client.ts";
import { allWell, type DoctorInput, type Examined, staged } from "./check.ts";
import { LOOKUPS_AT_A_TIME, PROBE_MS, PROBES, PROBES_AT_A_TIME } from "./limits.ts";
import type { Machine } from "./machine.ts";
import { findingOf } from "./states.ts";

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
export async function probe(
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
