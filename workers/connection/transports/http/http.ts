/**
 * Connects to a server over HTTP. Owns: the order Streamable HTTP, then legacy SSE if the server refuses that, and the
 * stateless transport if the server is of that era;
 * another try if the failure may pass; the explanation of a failure. Any `type` except "sse" begins with Streamable
 * HTTP and may fall back: in the files of other clients "http" only means that the server has a url.
 * Must not: know lifecycles. Called by: transports.ts, which loads this folder when it is first needed.
 */

import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { authorizedClient, type RequestAuth } from "../../auth/auth.ts";
import type { ResolvedHttp } from "../../config/values/values.ts";
import type { Connection, ConnectOptions } from "../../mcp/mcp.ts";
import {
  type Evidence,
  initialize,
  isTimeout,
  MirroredHeaders,
  MustNegotiate,
  negotiate,
  type Peer,
  speakModern,
  startupTimeout,
  toConnection,
  Wire,
} from "../../mcp/mcp.ts";
import type { JSONRPCRequest, Transport } from "../../mcp/wire/wire.ts";
import { BoundedTransport } from "../../messages/messages.ts";
import { credentialsOf } from "../../secrets/secrets.ts";
import { createHttpClient, type HttpClient, proxyFor } from "../../web/web.ts";
import { httpEvidence, isModernRefusal, isWrongEra } from "./era.ts";
import { describeConnect, explainConnect, explainRequest } from "./explain.ts";
import { classifyFailure, type HttpFailure } from "./failure.ts";
import type { HttpAddress } from "./failure-words.ts";
import { explainByProbe } from "./probe.ts";
import { retryWhileTransient } from "./retry.ts";
import { LegacySseTransport } from "./sse.ts";
import { StatelessHttpTransport } from "./stateless.ts";
import { type HttpTransportOptions, StreamableHttpTransport } from "./streamable.ts";

export { explainConnect } from "./explain.ts";
export { classifyFailure } from "./failure.ts";
export type { HttpAddress } from "./failure-words.ts";

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
  const { lineOf } = await import("../../config/edit/setting-change.ts");
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
