/**
 * Connects to a server over HTTP. Owns: the order Streamable HTTP, then legacy SSE if the server refuses that, and the
 * stateless transport if the server is of that era; another try if the failure may pass; one more request if the failure
 * says too little. Any `type` except "sse" begins with Streamable HTTP and may fall back: in the files of other clients
 * "http" only means that the server has a url. Must not: know lifecycles.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { RequestAuth } from "../../auth/auth.ts";
import { authorizedClient } from "../../auth/authorized.ts";
import type { ResolvedHttp } from "../../config/values/values.ts";
import { isOffering, type Peer, Wire } from "../../mcp/both-eras.ts";
import { toConnection } from "../../mcp/client.ts";
import type { Connection, ConnectOptions } from "../../mcp/connection.ts";
import { evidenceOf, isTimeout, startLimitMs, startupTimeout } from "../../mcp/failures.ts";
import { initialize } from "../../mcp/legacy-peer.ts";
import { type Evidence, handshake, judgeEra, negotiate, type OtherOffer } from "../../mcp/modern/era.ts";
import { MirroredHeaders } from "../../mcp/modern/headers.ts";
import { speakModern } from "../../mcp/modern-peer.ts";
import { MustNegotiate } from "../../mcp/wire/wire.ts";
import { BoundedTransport } from "../../messages/server-requests.ts";
import { credentialsOf } from "../../secrets/find.ts";
import { createHttpClient, proxyFor } from "../../web/client.ts";
import { Cookies } from "../../web/cookies.ts";
import { answerError } from "./exchange.ts";
import {
  AnswerError,
  classifyFailure,
  describeConnect,
  explainConnect,
  explainRequest,
  type HttpAddress,
  type HttpFailure,
  losesAuth,
  NO_SESSION,
  retryDelay,
  UNSENT,
} from "./failure.ts";
import { LegacySseTransport } from "./sse.ts";
import { StatelessHttpTransport } from "./stateless.ts";
import { StreamableHttpTransport } from "./streamable.ts";
import type { HttpTransport, HttpTransportOptions } from "./transport.ts";

/** What an answer to one more request could tell about a failure. */
export interface Probe {
  url: URL;
  /** The meaning of the answer if it explains the failure, otherwise undefined. */
  read: (found: HttpFailure) => HttpFailure | undefined;
}

type Kinds = ReadonlySet<HttpFailure["kind"]>;

/** A refusal without a word may say more to a browser. */
const REFUSALS: Kinds = new Set(["rejected", "refuses-streamable", "busy", "unusable"]);
/** What a browser finds at the address that says more than the failure itself. */
const TELLING: Kinds = new Set([
  "web-page",
  "redirect",
  "certificate",
  "not-tls",
  "tls-refused",
  "not-http",
  "proxy",
]);
/** A server that closes a plain connection may want TLS. Any answer over TLS, even an error of TLS, proves that. */
const NO_TLS: Kinds = new Set(["network", "not-tls", "other", "cancelled", "proxy"]);

/** The probe that could explain the failure; undefined if the failure needs no explanation. Pure. */
export function chooseProbe(failure: HttpFailure, url: URL): Probe | undefined {
  if (failure.kind === "not-http" || (failure.kind === "network" && failure.code === "ECONNRESET")) {
    if (url.protocol !== "http:") return undefined;
    const tls: HttpFailure = { kind: "other", message: "it speaks TLS, so the url must begin with https://" };
    return {
      url: Object.assign(new URL(url), { protocol: "https:" }),
      read: ({ kind }) => (NO_TLS.has(kind) ? undefined : tls),
    };
  }
  if (!REFUSALS.has(failure.kind) || !("text" in failure) || failure.text !== "") return undefined;
  return { url, read: (found) => (TELLING.has(found.kind) ? found : undefined) };
}

/**
 * Sends one more request if the failure says too little, to learn what a browser would see at the address. The request
 * carries none of the configured headers, so it gives no secret away. Never rejects.
 */
async function explainByProbe(failure: HttpFailure, connect: HttpConnect): Promise<HttpFailure> {
  const { address, target, reader, signal } = connect;
  const bare = Object.assign(new URL(address.url), { username: "", password: "", search: "" });
  const probe = chooseProbe(failure, bare);
  if (!probe) return failure;
  const client = createHttpClient(process.env, reader, target.ca);
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMITS.probeMs)]);
    const headers = { accept: "text/html, */*" };
    const response = await client.request({ method: "GET", url: probe.url, headers, signal: limited });
    const { error } = await answerError(response, { url: probe.url });
    // For a browser a page is a page, whatever its status.
    const isPage = !error.redirect && /^text\/html\b/i.test(error.headers["content-type"] ?? "");
    const found: HttpFailure = isPage
      ? { kind: "web-page", status: error.status, text: error.text }
      : classifyFailure(error);
    return probe.read(found) ?? failure;
  } catch (error) {
    return probe.read(classifyFailure(error)) ?? failure;
  } finally {
    client.close();
  }
}

const httpEvidence = (error: unknown): Evidence =>
  error instanceof AnswerError
    ? { kind: "http", status: error.status, error: error.rpc, text: error.text }
    : evidenceOf(error);

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

/** Limit for answers to the server's requests: each answer is a POST, which takes a connection while it is sent. */
export const ANSWERS_AT_A_TIME = 10;

interface HttpConnect extends ConnectOptions {
  target: ResolvedHttp;
  address: HttpAddress;
  requestAuth: RequestAuth | undefined;
}

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
  const { lineOf } = await import("../../config/edit/setting-change.ts");
  const { file, line } = await lineOf(definition, name === undefined ? [key] : [key, name]);
  return { ...address, keyPlace: line === undefined ? file : `${file}:${line}` };
}

/** How one attempt speaks. */
interface Attempt {
  kind: ResolvedHttp["type"];
  /** Of the session, which is at one of several machines. Undefined: there is none. */
  cookies: Cookies | undefined;
  /** `isLost`: whether the failure of a request is none of its own, but shows that the server is of another era. */
  make: (
    options: HttpTransportOptions,
    isLost: (error: unknown) => boolean,
  ) => HttpTransport & { failure?: unknown };
  speak: (wire: Wire, connect: HttpConnect) => Promise<Peer>;
}

/** One attempt over one transport. Rejects with its error as it happened; then it has left nothing open. */
async function open({ kind, cookies, make, speak }: Attempt, connect: HttpConnect): Promise<Connection> {
  const { address, definition, target, requestAuth, onNote, signal } = connect;
  const server = definition.name;
  const bare = createHttpClient(process.env, connect.reader, target.ca, cookies);
  const { requestHeadersCommand: command } = target;
  const plain = command
    ? (await import("./sign-requests.ts")).signingClient(bare, { ...connect, command, url: address.url })
    : bare;
  let peer: Peer | undefined;
  let failure: ThreadsError | undefined;
  const isLost = (error: unknown): boolean => peer?.isFromMemory === true && isWrongEra(error);
  const transport = make(
    {
      server,
      url: address.url,
      headers: target.headers,
      client: requestAuth ? authorizedClient(plain, requestAuth) : plain,
      maxMessageBytes: connect.maxMessageBytes,
      onNote,
      onListChanged: connect.onListChanged,
      onSessionLost: () => {
        cookies?.clear();
        bounded.sessionLost();
      },
      onReopened: (result) => peer?.renew?.(result),
      // A failure of the connect is judged below. A later failure is explained to the caller of the request.
      explain: (error, { method, params }) => {
        if (!peer) return error;
        if (isLost(error)) return new MustNegotiate(server);
        const call = method === "tools/call" ? String(params?.name) : undefined;
        // The answers to a server's questions, and the state that it wants back, follow what it has begun.
        const hasBegun = params?.inputResponses !== undefined || params?.requestState !== undefined;
        const request = { method, call, hasBegun };
        const explained = failure ?? explainRequest(classifyFailure(error), request, address);
        // The caller gets its error before the connection ends.
        if (losesAuth(explained, method)) setImmediate(() => connect.onAuthLost?.(explained));
        return explained;
      },
    },
    isLost,
  );
  const bounded = new BoundedTransport(transport, {
    server,
    onNote,
    answersAtATime: ANSWERS_AT_A_TIME,
    end: (reason) => {
      failure = reason;
      void transport.close();
    },
  });
  const giveUp = (): void => void transport.close();
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    peer = await speak(new Wire(bounded, connect.trace), connect);
    return toConnection(peer, {
      ...connect,
      transport: kind,
      pid: undefined,
      close: () => transport.close(),
      failure: () => failure,
      whyClosed: () => {
        const why = failure ?? transport.failure;
        return why === undefined
          ? `${server} closed its connection.`
          : describeConnect(classifyFailure(why), address);
      },
    });
  } catch (error) {
    await transport.close();
    throw failure ?? error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

const streamable = (other?: OtherOffer): Attempt => ({
  kind: "http",
  cookies: new Cookies(),
  make: (options) => new StreamableHttpTransport(options),
  speak: (wire, options) => initialize(wire, options, other),
});

const sse = (other?: OtherOffer): Attempt => ({
  kind: "sse",
  cookies: new Cookies(),
  make: (options) => new LegacySseTransport(options),
  speak: (wire, options) => initialize(wire, options, other),
});

/** Failures of the fallback that say more than the refusal before it. */
const SAYS_MORE: Kinds = new Set(["needs-auth", "web-page", "redirect", "too-large", "explained"]);

async function openLegacy(connect: HttpConnect, other?: OtherOffer): Promise<Connection> {
  try {
    return await open(streamable(other), connect);
  } catch (error) {
    const refusal = classifyFailure(error);
    const isModern = judgeEra("initialize", httpEvidence(error)) === "modern";
    if (refusal.kind !== "refuses-streamable" || isModern) throw error;
    connect.onNote(`refuses Streamable HTTP (status ${refusal.status}), trying SSE`);
    return await open(sse(other), connect).catch((second: unknown) => {
      throw SAYS_MORE.has(classifyFailure(second).kind) ? second : error;
    });
  }
}

function openModern(connect: HttpConnect): Promise<Connection> {
  const headers = new MirroredHeaders();
  const { remembered } = connect;
  const more = { headers, remembered: remembered?.isTrusted ? remembered.protocol : undefined };
  return open(
    {
      kind: "http",
      cookies: undefined,
      make: (options, isLost) =>
        new StatelessHttpTransport({
          ...options,
          headersOf: (request) => headers.of(request),
          isWrongEra: isLost,
        }),
      speak: (wire, options) => speakModern(wire, options, more),
    },
    connect,
  );
}

const judging = (connect: HttpConnect) => ({
  isOffering: isOffering(connect),
  evidenceOf: httpEvidence,
  onNote: connect.onNote,
});

/** `type` of a server -> how an attempt to connect goes. To add a transport to an address: a row here. */
const ATTEMPTS: { readonly [T in ResolvedHttp["type"]]: (connect: HttpConnect) => Promise<Connection> } = {
  sse: (connect) => handshake({ legacy: (other) => open(sse(other), connect), ...judging(connect) }),
  http: (connect) => {
    const { definition, remembered } = connect;
    return negotiate(
      { definition, wasModern: remembered !== undefined },
      {
        legacy: (other) => openLegacy(connect, other),
        modern: () => openModern(connect),
        ...judging(connect),
      },
    );
  },
};

/** Tries again while the failure may pass. Rejects with the last attempt's error, or at once if the signal is aborted. */
async function openWhileTransient(connect: HttpConnect): Promise<Connection> {
  const { signal, onNote, retryMs } = connect;
  for (let retry = 0; ; retry++) {
    try {
      return await ATTEMPTS[connect.target.type](connect);
    } catch (error) {
      const failure = classifyFailure(error);
      const delayMs = retryDelay(failure, retry, retryMs);
      if (delayMs === undefined || signal.aborted) throw error;
      const reason =
        failure.kind === "busy" ? `status ${failure.status}` : "code" in failure ? failure.code : "";
      onNote(`could not be connected (${reason}), trying again in ${delayMs} ms`);
      await sleep(delayMs, undefined, { signal });
    }
  }
}

/** Throws `ThreadsError`; then it has left nothing running. */
export async function connectHttp(target: ResolvedHttp, options: ConnectOptions): Promise<Connection> {
  const address = describeAddress(target, options);
  const deadline = AbortSignal.timeout(startLimitMs(options.definition));
  const connect: HttpConnect = {
    ...options,
    target,
    address,
    requestAuth: options.auth?.(target),
    signal: AbortSignal.any([options.signal, deadline]),
    onNote: (note) => options.onNote(options.redact(note)),
  };
  try {
    return await openWhileTransient(connect);
  } catch (error) {
    if (options.signal.aborted)
      throw new ThreadsError("cancelled", `${options.definition.name}: the connect was given up.`);
    if (deadline.aborted || isTimeout(error)) throw startupTimeout(options);
    const failure = await explainByProbe(classifyFailure(error), connect);
    throw explainConnect(failure, failure.kind === "needs-auth" ? await withLine(address, options) : address);
  }
}
