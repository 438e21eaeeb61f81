/**
 * Connects to a server over HTTP. Owns: the order Streamable HTTP, then legacy SSE if the server refuses that, and the
 * stateless transport if the server is of that era;
 * another try if the failure may pass; the explanation of a failure. Any `type` except "sse" begins with Streamable
 * HTTP and may fall back: in the files of other clients "http" only means that the server has a url.
 * Must not: know lifecycles. Called by: transports.ts, which loads this folder when it is first needed.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { authorizedClient, type RequestAuth } from "../../auth/auth.ts";
import type { ResolvedHttp } from "../../config/values/values.ts";
import { type Peer, Wire } from "../../mcp/both-eras.ts";
import { toConnection } from "../../mcp/client.ts";
import type { Connection, ConnectOptions } from "../../mcp/connection.ts";
import { evidenceOf, isTimeout, startupTimeout } from "../../mcp/failures.ts";
import { initialize } from "../../mcp/legacy-peer.ts";
import { type Evidence, judgeEra, negotiate } from "../../mcp/modern/era.ts";
import { MirroredHeaders } from "../../mcp/modern/headers.ts";
import { speakModern } from "../../mcp/modern-peer.ts";
import { type JSONRPCRequest, MustNegotiate, type Transport } from "../../mcp/wire/wire.ts";
import { BoundedTransport } from "../../messages/server-requests.ts";
import { credentialsOf } from "../../secrets/find.ts";
import { createHttpClient, type HttpClient, proxyFor } from "../../web/client.ts";
import { answerError } from "./exchange.ts";
import {
  AnswerError,
  classifyFailure,
  describeConnect,
  explainConnect,
  explainRequest,
  type HttpAddress,
  type HttpFailure,
} from "./failure.ts";
import { LegacySseTransport } from "./sse.ts";
import { StatelessHttpTransport } from "./stateless.ts";
import { type HttpTransportOptions, StreamableHttpTransport } from "./streamable.ts";

export interface Probe {
  url: URL;
  /** The meaning of the answer if it explains the failure, otherwise undefined. */
  read: (found: HttpFailure) => HttpFailure | undefined;
}

/** Findings that say more than the failure itself. */
const TELLING = new Set<HttpFailure["kind"]>([
  "web-page",
  "redirect",
  "certificate",
  "not-tls",
  "not-http",
  "proxy",
]);

const asBrowser = (url: URL): Probe => ({
  url,
  read: (found) => (TELLING.has(found.kind) ? found : undefined),
});

/** A server that closes a plain connection may want TLS. Any answer over TLS, even an error of TLS, proves that. */
function asTls(url: URL): Probe {
  const secure = new URL(url);
  secure.protocol = "https:";
  const speaks = new Set<HttpFailure["kind"]>(["network", "not-tls", "other", "cancelled", "proxy"]);
  return {
    url: secure,
    read: (found) =>
      speaks.has(found.kind)
        ? undefined
        : { kind: "other", message: "it speaks TLS, so the url must begin with https://" },
  };
}

/** The probe that could explain the failure; undefined if the failure needs no explanation. Pure. */
export function chooseProbe(failure: HttpFailure, url: URL): Probe | undefined {
  switch (failure.kind) {
    case "not-http":
      return url.protocol === "http:" ? asTls(url) : undefined;
    case "network":
      return failure.code === "ECONNRESET" && url.protocol === "http:" ? asTls(url) : undefined;
    case "rejected":
    case "refuses-streamable":
    case "busy":
    case "unusable":
      return failure.text === "" ? asBrowser(url) : undefined;
    default:
      return undefined;
  }
}

/** The failure that explains `failure`, or `failure` itself. Never rejects. */
export async function explainByProbe(
  failure: HttpFailure,
  { client, url, signal }: { client: HttpClient; url: URL; signal: AbortSignal },
): Promise<HttpFailure> {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  bare.search = "";
  const probe = chooseProbe(failure, bare);
  if (!probe) return failure;
  try {
    const headers = { accept: "text/html, */*" };
    const response = await client.request({ method: "GET", url: probe.url, headers, signal });
    const { error } = await answerError(response, { url: probe.url });
    return probe.read(classifyProbe(error)) ?? failure;
  } catch (error) {
    return probe.read(classifyFailure(error)) ?? failure;
  }
}

/** For a browser a page is a page, whatever its status. */
function classifyProbe(answer: AnswerError): HttpFailure {
  const html = /^text\/html\b/i.test(answer.headers["content-type"] ?? "");
  if (!html || answer.redirect) return classifyFailure(answer);
  return { kind: "web-page", status: answer.status, text: answer.text };
}

export const httpEvidence = (error: unknown): Evidence =>
  error instanceof AnswerError ? { kind: "http", status: error.status, error: error.rpc } : evidenceOf(error);

/** Whether a server that refuses the handshake is of the new era for certain, so that SSE need not be tried. */
export const isModernRefusal = (evidence: Evidence): boolean => judgeEra("initialize", evidence) === "modern";

/** Codes with which servers of the old era refuse a request that no handshake came before. */
const NO_SESSION = new Set([-32000, -32001, -32600, -32601]);

/** Failures before anything was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL"]);

/**
 * Whether the first request to a server that was taken for a modern one shows that it is not, or that it is not there.
 * Either way nothing has run: the status refuses the request, or nothing was sent.
 */
export function isWrongEra(error: unknown): boolean {
  const failure = classifyFailure(error);
  if (failure.kind === "network") return UNSENT.has(failure.code);
  if (!(error instanceof AnswerError) || error.status < 400 || error.status >= 500) return false;
  if (error.rpc && !NO_SESSION.has(error.rpc.code)) return false;
  return judgeEra("modern", httpEvidence(error)) === "legacy";
}

/** Before the second and the third attempt. */
export const RETRY_MS: readonly number[] = [300, 1_000];

/**
 * Wait in ms before the next attempt; undefined: there is no other attempt. `retry` counts from 0. `delaysMs`: the wait
 * before each further attempt. A server that asks for a longer wait than `LIMITS.retryAfterMs` is not asked again: it
 * would only refuse.
 */
export function retryDelay(
  failure: HttpFailure,
  retry: number,
  delaysMs: readonly number[] = RETRY_MS,
): number | undefined {
  const delayMs = delaysMs[retry];
  if (delayMs === undefined) return undefined;
  if (failure.kind === "network") return delayMs;
  if (failure.kind !== "busy") return undefined;
  const askedMs = failure.retryAfterMs ?? 0;
  return askedMs > LIMITS.retryAfterMs ? undefined : Math.max(delayMs, askedMs);
}

/** Rejects with the last attempt's error, or at once if the signal is aborted. */
export async function retryWhileTransient<T>(
  attempt: () => Promise<T>,
  options: {
    failureOf: (error: unknown) => HttpFailure;
    onNote: (note: string) => void;
    signal: AbortSignal;
    delaysMs?: readonly number[] | undefined;
  },
): Promise<T> {
  for (let retry = 0; ; retry++) {
    try {
      return await attempt();
    } catch (error) {
      const failure = options.failureOf(error);
      const delayMs = retryDelay(failure, retry, options.delaysMs);
      if (delayMs === undefined || options.signal.aborted) throw error;
      const reason =
        failure.kind === "busy" ? `status ${failure.status}` : "code" in failure ? failure.code : "";
      options.onNote(`could not be connected (${reason}), trying again in ${delayMs} ms`);
      await sleep(delayMs, undefined, { signal: options.signal });
    }
  }
}

/** Limit for answers to the server's requests: each answer is a POST, which takes a connection while it is sent. */
export const ANSWERS_AT_A_TIME = 10;

interface HttpConnect extends Omit<ConnectOptions, "auth"> {
  address: HttpAddress;
  requestAuth: RequestAuth | undefined;
  headers: Record<string, string>;
  /** PEM of further certificate authorities. */
  ca: readonly string[] | undefined;
}

/** A failed attempt to connect, with the meaning of its failure. */
class AttemptFailed extends Error {
  readonly failure: HttpFailure;

  constructor(cause: unknown) {
    super("the attempt failed", { cause });
    this.failure = classifyFailure(cause);
  }
}

const failureOf = (error: unknown): HttpFailure =>
  error instanceof AttemptFailed ? error.failure : classifyFailure(error);

function describeAddress(target: ResolvedHttp, { definition, redact }: ConnectOptions): HttpAddress {
  const url = new URL(target.url);
  let proxy: string | undefined;
  try {
    proxy = proxyFor(url, process.env)?.host;
  } catch {
    // The first request reports that the variable is wrong.
  }
  const { name, file, auth, target: written } = definition;
  const sent = Object.keys(target.headers);
  const keys = written.kind === "http" ? credentialsOf(written, sent) : [];
  const isOwn = (header: string): boolean =>
    written.kind === "http" && Object.hasOwn(written.headers, header);
  // The header that a token became, and nobody wrote.
  const isToken = sent.some((header) => header.toLowerCase() === "authorization" && !isOwn(header));
  const token = auth.token === undefined ? "bearerTokenEnv" : "bearerToken";
  return {
    server: name,
    url,
    proxy,
    credentials: isToken ? [token, ...keys] : keys,
    keyPlace: file,
    redact,
  };
}

/** The address with the line of its first credential, for the person who has to change it. */
async function withLine(address: HttpAddress, { definition }: ConnectOptions): Promise<HttpAddress> {
  const [first] = address.credentials;
  if (first === undefined) return address;
  const [, key = first, name] = /^(headers)\.(.+)$/s.exec(first) ?? [];
  const { lineOf } = await import("../../config/wish/wish.ts");
  return { ...address, keyPlace: await lineOf(definition, name === undefined ? [key] : [key, name]) };
}

const describeRequest = ({
  method,
  params,
}: JSONRPCRequest): { method: string; call: string | undefined } => ({
  method,
  call: method === "tools/call" ? String(params?.name) : undefined,
});

function createClient({ requestAuth, reader, ca }: HttpConnect): HttpClient {
  const client = createHttpClient(process.env, reader, ca);
  return requestAuth ? authorizedClient(client, requestAuth) : client;
}

/** How one attempt speaks. */
interface Way {
  kind: "http" | "sse";
  /** `isWrongEra`: whether the failure of a request is none of its own, but shows that the server is of another era. */
  make: (
    options: HttpTransportOptions,
    isWrongEra: (error: unknown) => boolean,
  ) => Transport & { failure?: unknown };
  speak: (wire: Wire, connect: HttpConnect) => Promise<Peer>;
}

/** One attempt over one transport. Rejects with `AttemptFailed`; then it has left nothing open. */
async function open(way: Way, connect: HttpConnect): Promise<Connection> {
  const { address, definition } = connect;
  const client = createClient(connect);
  let peer: Peer | undefined;
  let failure: ThreadsError | undefined;
  const isLost = (error: unknown): boolean => peer?.isFromMemory === true && isWrongEra(error);
  const options: HttpTransportOptions = {
    server: definition.name,
    url: address.url,
    headers: connect.headers,
    client,
    maxMessageBytes: connect.maxMessageBytes,
    onNote: connect.onNote,
    // A failure of the connect is judged below. A later failure is explained to the caller of the request.
    explain: (error, request) => {
      if (!peer) return error;
      if (isLost(error)) return new MustNegotiate(definition.name);
      const explained = failure ?? explainRequest(classifyFailure(error), describeRequest(request), address);
      // The caller gets its error before the connection ends.
      if (explained.code === "needs_auth") setImmediate(() => connect.onAuthLost?.(explained));
      return explained;
    },
  };
  const transport = way.make(options, isLost);
  const bounded = new BoundedTransport(transport, {
    server: definition.name,
    onNote: connect.onNote,
    answersAtATime: ANSWERS_AT_A_TIME,
    end: (reason) => {
      failure = reason;
      void transport.close();
    },
  });
  const giveUp = (): void => void transport.close();
  connect.signal.addEventListener("abort", giveUp, { once: true });
  try {
    peer = await way.speak(new Wire(bounded), connect);
    return toConnection(peer, {
      definition,
      onNote: connect.onNote,
      redact: connect.redact,
      asks: connect.asks,
      transport: way.kind,
      pid: undefined,
      close: () => transport.close(),
      failure: () => failure,
      whyClosed: () => {
        const why = failure ?? transport.failure;
        return why === undefined
          ? `${definition.name} closed its connection.`
          : describeConnect(classifyFailure(why), address);
      },
    });
  } catch (error) {
    await transport.close();
    throw new AttemptFailed(failure ?? error);
  } finally {
    connect.signal.removeEventListener("abort", giveUp);
  }
}

const STREAMABLE: Way = {
  kind: "http",
  make: (options) => new StreamableHttpTransport(options) as Transport,
  speak: initialize,
};

const SSE: Way = { kind: "sse", make: (options) => new LegacySseTransport(options), speak: initialize };

/** Failures of the fallback that say more than the refusal before it. */
const SAYS_MORE = new Set<HttpFailure["kind"]>([
  "needs-auth",
  "web-page",
  "redirect",
  "too-large",
  "explained",
]);

async function openEither(connect: HttpConnect): Promise<Connection> {
  try {
    return await open(STREAMABLE, connect);
  } catch (error) {
    const refusal = failureOf(error);
    if (refusal.kind !== "refuses-streamable" || isModernRefusal(evidenceIn(error))) throw error;
    connect.onNote(`refuses Streamable HTTP (status ${refusal.status}), trying SSE`);
    return await open(SSE, connect).catch((second: unknown) => {
      throw SAYS_MORE.has(failureOf(second).kind) ? second : error;
    });
  }
}

const evidenceIn = (error: unknown): Evidence =>
  httpEvidence(error instanceof AttemptFailed ? error.cause : error);

function openModern(connect: HttpConnect): Promise<Connection> {
  const headers = new MirroredHeaders();
  const { remembered } = connect;
  return open(
    {
      kind: "http",
      make: (options, isWrong) =>
        new StatelessHttpTransport({
          ...options,
          headersOf: (request) => headers.of(request),
          isWrongEra: isWrong,
        }),
      speak: (wire, options) =>
        speakModern(wire, options, {
          headers,
          remembered: remembered?.isTrusted ? remembered.protocol : undefined,
        }),
    },
    connect,
  );
}

function openAny(connect: HttpConnect, sseOnly: boolean): Promise<Connection> {
  const { definition, remembered, onNote } = connect;
  if (sseOnly) return open(SSE, connect);
  return negotiate(
    { definition, wasModern: remembered !== undefined },
    {
      legacy: () => openEither(connect),
      modern: () => openModern(connect),
      evidenceOf: evidenceIn,
      onNote,
    },
  );
}

async function probe(failure: HttpFailure, connect: HttpConnect): Promise<HttpFailure> {
  const { address, ca, reader, signal } = connect;
  const client = createHttpClient(process.env, reader, ca);
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMITS.probeMs)]);
  return explainByProbe(failure, { client, url: address.url, signal: limited }).finally(() => client.close());
}

/** Throws `ThreadsError`; then it has left nothing running. */
export async function connectHttp(target: ResolvedHttp, options: ConnectOptions): Promise<Connection> {
  const { name, startupTimeoutMs = LIMITS.startupTimeoutMs } = options.definition;
  const address = describeAddress(target, options);
  const deadline = AbortSignal.timeout(startupTimeoutMs);
  const signal = AbortSignal.any([options.signal, deadline]);
  const onNote = (note: string): void => options.onNote(options.redact(note));
  const { auth, ...others } = options;
  const connect: HttpConnect = {
    ...others,
    signal,
    onNote,
    address,
    requestAuth: auth?.(target),
    headers: target.headers,
    ca: target.ca,
  };
  try {
    return await retryWhileTransient(() => openAny(connect, target.sseOnly), {
      failureOf,
      onNote,
      signal,
      delaysMs: options.retryMs,
    });
  } catch (error) {
    if (options.signal.aborted) throw new ThreadsError("cancelled", `${name}: the connect was given up.`);
    const cause = error instanceof AttemptFailed ? error.cause : error;
    if (deadline.aborted || isTimeout(cause)) throw startupTimeout(options);
    const failure = await probe(failureOf(error), connect);
    throw explainConnect(failure, failure.kind === "needs-auth" ? await withLine(address, options) : address);
  }
}
