/**
 * Receives the answer to one POST of Streamable HTTP (MCP 2025-11-25, basic/transports, sending messages): JSON, or
 * events, which are resumed if they end too early (the same page, resumability and redelivery). Owns: which message answers
 * which request; an answer that is not the expected one, as an `AnswerError` with the server's own words in one line; and
 * messages that a server only acknowledges, with their bounds: a server that asks without end or acknowledges nothing holds
 * a limited number of connections for a limited time.
 */

import type { Readable } from "node:stream";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { createReader, readInTurn } from "../../../shared/pace/turns.ts";
import type { RpcError } from "../../mcp/modern/era.ts";
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "../../mcp/wire/wire.ts";
import { isAnswer } from "../../messages/incoming.ts";
import { LongBytes, Pieces, type Received } from "../../messages/pieces.ts";
import { type MessageStream, receive } from "../../messages/receive.ts";
import { TooLarge } from "../../messages/too-large.ts";
import { type HttpResponse, redirectTarget } from "../../web/client.ts";
import { handEvent, readBody, readEvents } from "./events.ts";
import { AnswerError, BrokenAnswer, mediaType, NotSent, SessionLost } from "./failure.ts";

/** Enough of a body to find a message or a title. */
const HEAD_BYTES = 16 * 1024;
/** Limit for reading the body of a refusal, which may never end. */
const HEAD_MS = 2_000;

async function head({ body }: HttpResponse): Promise<Buffer> {
  const pieces = new Pieces(2 * HEAD_BYTES);
  const timer = setTimeout(() => body.destroy(), HEAD_MS);
  // If the body breaks, the part before that may still say something.
  await readInTurn(body, body.reader ?? createReader(), (piece) => {
    pieces.push(piece.subarray(0, HEAD_BYTES));
    if (pieces.bytes >= HEAD_BYTES) body.destroy();
    return undefined;
  }).catch(() => undefined);
  clearTimeout(timer);
  const received = pieces.take();
  return (received instanceof LongBytes ? received.head : received).subarray(0, HEAD_BYTES);
}

/**
 * Reads an answer that nobody needs to its end, so that its connection can be used again. Settles when the body has
 * ended or is too long. Never rejects. The sender of the request limits the time.
 */
export async function discard(body: Readable): Promise<void> {
  await readBody(body, HEAD_BYTES).catch(() => undefined);
}

const oneLine = (text: string): string =>
  (text.trim().split(/[\r\n]/, 1)[0] ?? "").replace(/\s+/g, " ").trim();

const textIn = (value: unknown): string | undefined => {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  const { message, error_description, error, detail, title } = value as Record<string, unknown>;
  return [message, error_description, error, detail, title].map(textIn).find((text) => text !== undefined);
};

/** The title, or the first heading if the title says nothing (Express: `<title>Error</title>`). */
function htmlTitle(html: string): string {
  const title = /<title[^>]*>([^<]*)/i.exec(html)?.[1]?.trim() ?? "";
  if (title !== "" && !/^error$/i.test(title)) return title;
  return /<(?:pre|h1)[^>]*>([^<]*)/i.exec(html)?.[1] ?? title;
}

/** The first text for people in JSON that is cut: of a long body only the start is read. */
function startOfText(json: string): string {
  const text =
    /"(?:message|error_description|error|detail|title)"\s*:\s*"((?:[^"\\]|\\[^u]|\\u[\da-f]{4})*)/i.exec(
      json,
    )?.[1];
  try {
    return text === undefined ? "" : String(JSON.parse(`"${text}"`));
  } catch {
    // The server writes no JSON.
    return "";
  }
}

/** The message for people in the start of a body, in one line; empty if the body is not for people. */
export function textOfAnswer(type: string | undefined, body: string): string {
  if (type === "text/html" || /^\s*<(!doctype|html)/i.test(body)) return oneLine(htmlTitle(body));
  if (type === "application/json" || type === "application/problem+json" || /^\s*\{/.test(body)) {
    try {
      return oneLine(textIn(JSON.parse(body)) ?? "");
    } catch {
      return oneLine(startOfText(body));
    }
  }
  return type === undefined || type.startsWith("text/plain") ? oneLine(body) : "";
}

/** The JSON-RPC error that a body holds. A refusal often has no id, or null, because the request was not understood. */
function rpcErrorIn(body: string): RpcError | undefined {
  if (!/^\s*\{/.test(body)) return undefined;
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    if (!isObject(error) || !Number.isSafeInteger(error.code)) return undefined;
    const { code, message, data } = error;
    return { code: Number(code), message: typeof message === "string" ? message : "", data };
  } catch {
    return undefined;
  }
}

/** Reads at most the start of the body and ends the body. `body`: that start, which may be a JSON-RPC message. */
export async function answerError(
  response: HttpResponse,
  asked: { url: URL; sessionId?: string | undefined },
): Promise<{ error: AnswerError; body: Buffer }> {
  const { status, headers } = response;
  const stream = mediaType(headers) === "text/event-stream";
  if (stream) response.body.destroy();
  const body = stream ? Buffer.alloc(0) : await head(response);
  const said = body.toString("utf8");
  const error = new AnswerError({
    status,
    headers,
    text: textOfAnswer(mediaType(headers), said),
    redirect: redirectTarget(response, asked.url),
    sessionId: asked.sessionId,
    rpc: rpcErrorIn(said),
  });
  return { error, body };
}

/** The wait if the server names none. */
const RESUME_MS = 1_000;
/** The shortest wait that a server may name. */
const MIN_RESUME_MS = 100;
/** Limit for attempts in a row that the server refuses. */
const REFUSED_ATTEMPTS = 2;
/** How long the server may be out of reach: a machine that wakes up, or changes its network, needs some seconds. */
const AWAY_MS = 15_000;
/** Limit for streams in a row without a message. Their waits grow, so this takes more than an hour. */
const VAIN_ATTEMPTS = 200;
/** The next wait as a share of the silence so far: an answer is late by this share at most. */
const SHARE_OF_SILENCE = 0.1;

/**
 * How an attempt to open a stream ended. `put-off`: the server holds the broken stream until it notices that nobody reads it.
 * `away`: the server, or what stands before it, was not reached.
 */
type Attempt = "opened" | "put-off" | "refused" | "away";

/** `error`: undefined if the server has no such stream. */
function attemptOf(error: unknown): Attempt {
  if (!(error instanceof AnswerError)) return error === undefined ? "refused" : "away";
  if (error.status === 409) return "put-off";
  const isServers = error.status >= 400 && error.status < 500 && error.status !== 429;
  return isServers ? "refused" : "away";
}

/** When a stream that ended before its answer is resumed. A server may end it on purpose and let the client poll. */
export class Resume {
  readonly #now: () => number;
  /** The last event's id; undefined if the server names none, so that nothing can be resumed. */
  lastId: string | undefined;
  retryMs = RESUME_MS;
  #refused = 0;
  #awaySince: number | undefined;
  #vain = 0;
  #heardAt: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#heardAt = now();
  }

  /** The stream has brought a message. */
  onMessage(): void {
    this.#vain = 0;
    this.#heardAt = this.#now();
  }

  onAttempt(attempt: Attempt): void {
    this.#refused = attempt === "refused" ? this.#refused + 1 : 0;
    this.#awaySince = attempt === "away" ? (this.#awaySince ?? this.#now()) : undefined;
    this.#vain++;
  }

  /** Wait in ms before the next attempt; undefined: there is no other attempt. */
  nextMs(): number | undefined {
    const isAway = this.#now() - (this.#awaySince ?? this.#now()) >= AWAY_MS;
    const isRefused = this.#refused >= REFUSED_ATTEMPTS;
    if (this.lastId === undefined || isRefused || isAway || this.#vain >= VAIN_ATTEMPTS) return undefined;
    const silentMs = this.#now() - this.#heardAt;
    const ownMs = Math.min(silentMs * SHARE_OF_SILENCE, LIMITS.startupTimeoutMs);
    // What the server asks for holds, however long: the request has a limit of its own.
    return Math.max(this.retryMs, MIN_RESUME_MS, ownMs);
  }
}

/** One open request. */
export interface Exchange {
  /** The answer has been handed on. */
  answered: boolean;
  /** Aborted when the client cancels the request, and when the transport closes. */
  readonly controller: AbortController;
  /** Called after the answer has been handed on. The reader of the answer's stream replaces it. */
  onAnswered: () => void;
  /** The server has forgotten the session in which the request was sent. */
  isLost: boolean;
  /** Called after the session was lost. Who waits for the answer without a stream of its own replaces it. */
  onLost: () => void;
}

/** Which message answers which of our requests, by whatever stream the message comes; and giving requests up. */
export class OpenExchanges {
  readonly #onMessage: (message: JSONRPCMessage) => void;
  readonly #open = new Map<
    RequestId,
    Exchange & { method: string; handOn: (answer: JSONRPCMessage) => void }
  >();

  /** `onMessage` gets every message that no request of ours takes for itself. */
  constructor(onMessage: (message: JSONRPCMessage) => void) {
    this.#onMessage = onMessage;
  }

  /** `handOn` gets the answer; without it the answer goes where all messages go. */
  open({ id, method }: JSONRPCRequest, handOn = this.#onMessage): Exchange {
    const controller = new AbortController();
    const exchange = {
      method,
      answered: false,
      controller,
      handOn,
      onAnswered: () => undefined,
      isLost: false,
      onLost: () => undefined,
    };
    this.#open.set(id, exchange);
    return exchange;
  }

  /** The open requests: ids as texts, and their methods. */
  asked(): ReadonlyMap<string, string> {
    return new Map([...this.#open].map(([id, { method }]) => [String(id), method]));
  }

  /** The request is over. A late answer is a message like any other. */
  close(id: RequestId): void {
    this.#open.delete(id);
  }

  /** The client no longer wants the answer. False: the server has forgotten the request. */
  cancel(id: RequestId): boolean {
    const exchange = this.#open.get(id);
    exchange?.controller.abort();
    return !exchange?.isLost;
  }

  /** The server has forgotten the session of the open requests. A stream that is still open may bring its answer all the same. */
  sessionLost(): void {
    for (const exchange of this.#open.values()) {
      exchange.isLost = true;
      exchange.onLost();
    }
  }

  /** Hands on a message of the server, an answer to the request that it belongs to. */
  deliver(message: JSONRPCMessage): void {
    const exchange = isAnswer(message) && message.id !== undefined ? this.#open.get(message.id) : undefined;
    if (!exchange) {
      this.#onMessage(message);
      return;
    }
    exchange.answered = true;
    exchange.handOn(message);
    exchange.onAnswered();
  }

  /** One by one: Node 22 never quite forgets a signal that is derived from a signal with a long life. */
  cancelAll(): void {
    for (const { controller } of this.#open.values()) controller.abort();
  }
}

interface ReceiveOptions {
  url: URL;
  maxBytes: number;
  /** What the messages go to. */
  stream: MessageStream;
  /**
   * Asks for the events after `lastId`. Undefined or rejected: not available now. Absent: the answer comes in this response
   * or not at all.
   */
  resume?: (lastId: string) => Promise<HttpResponse | undefined>;
  signal: AbortSignal;
}

/** A server should end its response after the answer. After this time the response is ended here. */
export const AFTER_ANSWER_MS = 1_000;

export async function receiveAnswer(
  response: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions,
): Promise<void> {
  const type = mediaType(response.headers);
  if (type === "text/event-stream") await receiveEvents(response, exchange, options);
  else if (type === "application/json") await receiveJson(response, exchange, options);
  // The answer comes on the stream of notifications. The specification does not allow this, but some servers do it.
  else if (response.status === 202 && options.resume) await receiveElsewhere(response, exchange, options);
  else throw (await answerError(response, { url: options.url })).error;
}

async function receiveJson(
  response: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions,
): Promise<void> {
  const { status, headers } = response;
  let isRead = false;
  const take = (body: Received): undefined | Promise<unknown> => {
    isRead = true;
    return receive(body, {
      ...options.stream,
      onNoise: () => {
        throw new AnswerError({ status, headers, text: "this is not a JSON-RPC message" });
      },
    });
  };
  await readBody(response.body, options.maxBytes, take).catch((error: unknown) => {
    throw isRead || error instanceof TooLarge || options.signal.aborted ? error : new BrokenAnswer(error);
  });
  if (!exchange.answered)
    throw new AnswerError({ status, headers, text: "this does not answer the request" });
}

/**
 * Settles when the answer has come on another stream, and after `ms` at the latest. Rejects when the request is given up, and
 * when its session is lost.
 */
async function answeredElsewhere(exchange: Exchange, signal: AbortSignal, ms?: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const giveUp = (): void => reject(signal.reason);
  const lose = (): void => reject(new SessionLost());
  exchange.onAnswered = resolve;
  exchange.onLost = lose;
  if (exchange.answered) resolve();
  if (signal.aborted) giveUp();
  if (exchange.isLost) lose();
  signal.addEventListener("abort", giveUp, { once: true });
  const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
  }
}

/** The body stays open until the answer has come: some servers end a request together with its connection. */
async function receiveElsewhere(
  { body }: HttpResponse,
  exchange: Exchange,
  { signal }: ReceiveOptions,
): Promise<void> {
  const ended = discard(body);
  try {
    await answeredElsewhere(exchange, signal);
  } finally {
    const late = setTimeout(() => body.destroy(), AFTER_ANSWER_MS);
    void ended.then(() => clearTimeout(late));
  }
}

/**
 * A stream that ends before the answer is resumed if the server gave its events ids (MCP 2025-11-25, resumability and
 * redelivery). Resuming repeats no call. It ends with the session: a new session does not know the event, and a stream that
 * it opens all the same stays silent.
 */
async function receiveEvents(
  first: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions,
): Promise<void> {
  const { signal, resume } = options;
  const position = new Resume(() => performance.now());
  let response: HttpResponse | undefined = first;
  let cause: unknown;
  while (true) {
    if (response) cause = await readUntilAnswered(response, exchange, { ...options, position });
    if (exchange.answered) return;
    signal.throwIfAborted();
    if (exchange.isLost) throw new SessionLost();
    const { lastId } = position;
    const waitMs = position.nextMs();
    if (!resume || lastId === undefined || waitMs === undefined) throw new BrokenAnswer(cause);
    await answeredElsewhere(exchange, signal, waitMs);
    if (exchange.answered) return;
    let failure: unknown;
    response = await resume(lastId).catch((error: unknown) => {
      failure = error;
      return undefined;
    });
    position.onAttempt(response ? "opened" : attemptOf(failure));
  }
}

/** Settles with the error if the stream broke, else with undefined. Rejects with `TooLarge`. */
async function readUntilAnswered(
  { body }: HttpResponse,
  exchange: Exchange,
  options: ReceiveOptions & { position: Resume },
): Promise<unknown> {
  const { position, maxBytes, stream } = options;
  let late: NodeJS.Timeout | undefined;
  exchange.onAnswered = () => {
    late ??= setTimeout(() => body.destroy(), AFTER_ANSWER_MS);
  };
  // While this stream was being opened, the answer may have come on another one.
  if (exchange.answered) exchange.onAnswered();
  try {
    await readEvents(body, {
      maxBytes,
      noise: stream.noise,
      onEvent: (event) => {
        if (event.data.length > 0) position.onMessage();
        return handEvent(event, stream);
      },
      onId: (id) => {
        position.lastId = id;
      },
      onRetry: (retryMs) => {
        position.retryMs = retryMs;
      },
    });
    return undefined;
  } catch (error) {
    if (error instanceof TooLarge) throw error;
    return error;
  } finally {
    clearTimeout(late);
  }
}

/** Limit from the first byte of the request to the last byte of the answer. */
const ACKNOWLEDGED_MS = 10_000;
/** A script that is cancelled may cancel a hundred calls or more at once. */
const MOST_UNACKNOWLEDGED = 256;

export class Acknowledged {
  readonly #open = new Set<AbortController>();

  /** Settles when the server has accepted the message. Rejects as `post` does, and with `NotSent` if too many wait. */
  async send(post: (signal: AbortSignal) => Promise<HttpResponse>): Promise<void> {
    if (this.#open.size >= MOST_UNACKNOWLEDGED) {
      throw new NotSent(`${MOST_UNACKNOWLEDGED} messages to it are not acknowledged yet`);
    }
    const controller = new AbortController();
    this.#open.add(controller);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, ACKNOWLEDGED_MS);
    const end = (): void => {
      clearTimeout(timer);
      this.#open.delete(controller);
    };
    try {
      const { body } = await post(controller.signal);
      void discard(body).then(end);
    } catch (error) {
      end();
      throw isLate
        ? Object.assign(new Error("it was not acknowledged in time"), { code: "ETIMEDOUT" })
        : error;
    }
  }

  /** Gives up all messages that are not acknowledged. */
  close(): void {
    for (const controller of this.#open) controller.abort();
  }
}
