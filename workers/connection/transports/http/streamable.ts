/**
 * Streamable HTTP (MCP 2025-11-25, basic/transports): one POST for each message, the answer as JSON or as a stream of
 * events, and a session that the server may give and lose. Implements the SDK's `Transport`, with three differences
 * from the SDK's own: `send` of a request settles with the answer, so that a broken answer fails that request at once
 * and no other; messages are bounded; a lost session is opened again, once for all requests that wait for it. Also follows
 * the stream on which a server sends messages that answer no request: it is opened again whenever it ends, ever more slowly
 * while it brings nothing. The log says once that it is opened again, once that this has become rare, each time that a
 * message was refused, and that the server no longer offers it. A server may offer no such stream.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { knownRevision } from "../../mcp/both-eras.ts";
import type { RpcError } from "../../mcp/modern/era.ts";
import type { JSONRPCMessage, JSONRPCRequest } from "../../mcp/wire/wire.ts";
import { cancelledRequest, isRequest } from "../../messages/incoming.ts";
import { receive } from "../../messages/receive.ts";
import { type Noise, TooLarge } from "../../messages/too-large.ts";
import type { HttpResponse } from "../../web/client.ts";
import { readEvents, type ServerEvent } from "./events.ts";
import { Acknowledged, answerError, type Exchange } from "./exchange.ts";
import {
  AnswerError,
  BrokenAnswer,
  classifyFailure,
  type HttpFailure,
  isAboutSession,
  mediaType,
  NotSent,
} from "./failure.ts";
import { ANY_ANSWER, HttpTransport, type HttpTransportOptions, isAccepted, mayRepeat } from "./transport.ts";

/** Shortest wait until a stream that has ended is opened again. It also holds if the server names no time. */
const RESUME_MS = 1_000;
/** Longest wait, unless the server asks for a longer one: the stream is opened 12 times an hour. */
const MAX_RESUME_MS = 5 * 60 * 1_000;
/** A stream that was open for this long was worth opening: proxies and hosts end a silent stream after a while. */
const WORTHWHILE_MS = 10_000;

/** Wait in ms before a stream is opened again. `vain`: streams in a row that ended soon and brought nothing. */
export const resumeAfterMs = (retryMs: number, vain: number): number =>
  Math.max(retryMs, Math.min(Math.max(retryMs, RESUME_MS) * 2 ** Math.min(vain, 20), MAX_RESUME_MS));

/** Where the stream goes on. */
interface Place {
  lastId: string | undefined;
  /** The session has just been opened, so nothing can have been missed. */
  isFirst: boolean;
  /** The session has had a stream, so the server offers one. */
  wasOpen: boolean;
}

export interface NotificationOptions {
  /**
   * Opens the stream. Undefined: the server offers no such stream and is not asked again. Rejects if the server may offer the
   * stream later.
   */
  open: (at: Place) => Promise<HttpResponse | undefined>;
  noise: Noise;
  onEvent: (event: ServerEvent) => undefined | Promise<unknown>;
  /** The stream is open, and does not bring what the server told while it was not. */
  onUnheard: () => void;
  onNote: (note: string) => void;
  maxBytes: number;
  signal: AbortSignal;
  /** Settles after `ms` milliseconds, or rejects when the signal is aborted. */
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

const realWait = (ms: number, signal: AbortSignal): Promise<unknown> =>
  sleep(ms, undefined, { signal, ref: false });

/** Settles when the signal is aborted or the server offers no stream. Never rejects. */
export async function followNotifications(options: NotificationOptions): Promise<void> {
  const { signal, onNote, wait = realWait } = options;
  const position: Position = { isFirst: true, wasOpen: false, lastId: undefined, retryMs: RESUME_MS };
  let vain = 0;
  let isNoted = false;
  let isNotedRare = false;
  while (!signal.aborted) {
    const stream = await readStream(position, options);
    if (signal.aborted) return;
    if (stream === "not offered") {
      if (position.wasOpen) onNote("no longer offers a notification stream, and is not asked for one again");
      return;
    }
    vain = stream.isWorthwhile ? 0 : vain + 1;
    const waitMs = resumeAfterMs(position.retryMs, vain);
    if (stream.refused && !stream.refused.isNoise) {
      // Each time: with each refused message something of the server's is lost.
      const { what, remedy } = stream.refused.excess;
      onNote(`sent ${what} on its notification stream, which is opened again without it. ${remedy}`);
    } else if (!isNoted) {
      onNote("ended its notification stream; it is opened again from now on");
      isNoted = true;
    }
    if (waitMs === MAX_RESUME_MS && !isNotedRare) {
      onNote(
        `ends its notification stream at once each time; it is opened every ${waitMs / 60_000} minutes now`,
      );
      isNotedRare = true;
    }
    await wait(waitMs, signal).catch(() => undefined);
  }
}

interface Position extends Place {
  retryMs: number;
}

interface EndedStream {
  /** The stream brought something, or was open for a while. */
  isWorthwhile: boolean;
  /** This side ended the stream because of the size of a message. */
  refused: TooLarge | undefined;
}

/** It makes no difference whether the stream ended or broke: the stream is opened again. */
async function readStream(
  position: Position,
  { open, noise, onEvent, onUnheard, maxBytes }: NotificationOptions,
): Promise<EndedStream | "not offered"> {
  const at = { ...position };
  const { lastId: before, isFirst } = at;
  position.isFirst = false;
  let heard = false;
  let openedAt = Number.POSITIVE_INFINITY;
  let refused: TooLarge | undefined;
  try {
    const response = await open(at);
    if (!response) return "not offered";
    position.wasOpen = true;
    openedAt = performance.now();
    if (!isFirst && before === undefined) onUnheard();
    await readEvents(response.body, {
      maxBytes,
      noise,
      onEvent: (event) => {
        heard = true;
        return onEvent(event);
      },
      onId: (id) => {
        position.lastId = id;
      },
      onRetry: (retryMs) => {
        position.retryMs = retryMs;
      },
    });
  } catch (error) {
    // Any other error is how the stream broke, which says no more than what came before.
    if (error instanceof TooLarge) refused = error;
    // A server that was started anew does not know the event: without it the stream can be opened.
    if (error instanceof AnswerError && error.status === 400) position.lastId = undefined;
  }
  const isNew = heard || position.lastId !== before;
  const isWorthwhile = isNew || performance.now() - openedAt >= WORTHWHILE_MS;
  return { isWorthwhile: isWorthwhile && !refused?.isNoise, refused };
}

/** 405 and 501 say that the server has no such method, which no wait changes. */
const NO_METHOD = new Set([405, 501]);

/**
 * Meaning of an answer that refuses the stream of notifications. `later`: the server may offer the stream at another
 * time. With 409 it says that it holds the stream before, as until it notices that a machine slept or changed its network.
 * What refuses a stream that was open may also stand in between, as the page of a hotel's network does.
 */
export function streamRefusal(
  failure: HttpFailure,
  { wasOpen }: Pick<Place, "wasOpen">,
): "session lost" | "later" | "never" {
  if (failure.kind === "session-lost") return "session lost";
  const status = "status" in failure ? failure.status : undefined;
  if (status !== undefined && NO_METHOD.has(status)) return "never";
  return wasOpen || failure.kind === "busy" || status === 409 ? "later" : "never";
}

export interface SessionOptions {
  /**
   * Sends `initialize` once more. Settles with the result, which is empty if the server only accepted the request, or with
   * the message of the server's error. Rejects if no answer came.
   */
  initialize: (
    request: JSONRPCRequest,
  ) => Promise<{ result: Record<string, unknown> } | { rejection: string }>;
  /** Sends `notifications/initialized`. */
  initialized: () => Promise<void>;
  /** The server has forgotten the session. */
  onLost: () => void;
  /** Another session is open. `result`: of its `initialize`. */
  onReopened: (result: Record<string, unknown>) => void;
}

export class HttpSession {
  readonly #options: SessionOptions;
  #id: string | undefined;
  #protocolVersion: string | undefined;
  /** As the client sent it. */
  #initialize: JSONRPCRequest | undefined;
  #isLost = false;
  #reopening: Promise<void> | undefined;
  #reopenings = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Undefined: the server has given no session. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The server has forgotten the session, and no other one is open yet. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** The client sends `initialize`. */
  begin(request: JSONRPCRequest): void {
    this.#initialize = request;
  }

  /** The answer to `initialize` names a session. */
  accept(id: string): void {
    this.#id = id;
  }

  agree(protocolVersion: string): void {
    this.#protocolVersion = protocolVersion;
  }

  /** Whether the revision lets several messages come as one array: 2025-06-18 has taken that back. */
  get hasBatches(): boolean {
    return this.#protocolVersion === "2025-03-26";
  }

  headers(): Record<string, string> {
    return {
      ...(this.#id === undefined ? {} : { "mcp-session-id": this.#id }),
      ...(this.#protocolVersion === undefined ? {} : { "mcp-protocol-version": this.#protocolVersion }),
    };
  }

  /** The server does not know session `id`, under which a request was sent. */
  lose(id: string | undefined): void {
    // If several requests learn of the loss, the later ones may find that a new session is open already.
    if (this.#isLost || id !== this.#id) return;
    this.#isLost = true;
    this.#options.onLost();
  }

  /** Opens another session: one attempt for all callers that wait. After a failure the next call tries again. */
  reopen(): Promise<void> {
    this.#reopening ??= this.#reopenNow().finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  async #reopenNow(): Promise<void> {
    const request = this.#initialize;
    if (!request) throw new BrokenAnswer();
    // Another version of the server may answer now, which is asked as at the first time.
    this.#id = undefined;
    this.#protocolVersion = undefined;
    const id = `reopen-${++this.#reopenings}`;
    const answer = await this.#options.initialize({ ...request, id });
    if ("rejection" in answer) throw new NotSent(`it refused a new session: ${answer.rejection}`);
    const version = knownRevision(answer.result.protocolVersion);
    if (version === undefined)
      throw new NotSent("it opened a new session in a revision of MCP that is not known here");
    this.agree(version);
    await this.#options.initialized();
    this.#isLost = false;
    this.#options.onReopened(answer.result);
  }
}

/** What a server without a place for `notifications/initialized` answers: the session is open, and what it refuses later says why. */
const REFUSED = new Set<HttpFailure["kind"]>(["rejected", "refuses-streamable", "web-page"]);

const isOnlyRefused = (error: unknown): error is AnswerError =>
  error instanceof AnswerError && error.status >= 400 && REFUSED.has(classifyFailure(error).kind);

const isInitialize = (message: JSONRPCMessage): boolean =>
  isRequest(message) && message.method === "initialize";

export class StreamableHttpTransport extends HttpTransport {
  readonly #acknowledged = new Acknowledged();
  readonly #session = new HttpSession({
    initialize: (request) => this.#initializeAgain(request),
    initialized: () => this.notify({ jsonrpc: "2.0", method: "notifications/initialized" }),
    onLost: () => {
      this.#listening?.abort();
      this.open.sessionLost();
      this.options.onSessionLost();
      // A server that was restarted may have other tools, and tells the new session of no change. Asking opens that session.
      this.options.onListChanged();
    },
    onReopened: (result) => {
      this.options.onNote("had lost the session; a new one is open");
      this.options.onReopened(result);
    },
  });
  #listening: AbortController | undefined;

  constructor(options: HttpTransportOptions) {
    super(options);
    this.stream.batches = () => this.#session.hasBatches;
  }

  setProtocolVersion(version: string): void {
    this.#session.agree(version);
  }

  /** Settles when the answer has been handed to `onmessage`. */
  protected override async request(message: JSONRPCRequest): Promise<void> {
    if (isInitialize(message)) this.#session.begin(message);
    this.lifetime.signal.throwIfAborted();
    const exchange = this.open.open(message);
    try {
      if (this.#session.isLost) await this.#session.reopen();
      await this.#exchange(message, exchange);
    } catch (error) {
      if (classifyFailure(error).kind !== "session-lost") throw error;
      // Who answers the request knows the session.
      if (exchange.answered) return;
      if (error instanceof AnswerError) this.#session.lose(error.sessionId);
      if (!mayRepeat(message.method)) throw error;
      if (this.#session.isLost) await this.#session.reopen();
      await this.#exchange(message, exchange);
    } finally {
      this.open.close(message.id);
    }
  }

  /** Settles when the message is accepted. */
  protected override async notify(message: JSONRPCMessage): Promise<void> {
    const cancelled = cancelledRequest(message);
    // A session does not know what was asked in another one.
    if (cancelled !== undefined && (!this.open.cancel(cancelled) || this.#session.isLost)) return;
    this.lifetime.signal.throwIfAborted();
    const isInitialized = "method" in message && message.method === "notifications/initialized";
    try {
      await this.#acknowledged.send((signal) => this.#post(message, signal));
    } catch (error) {
      if (!isInitialized || !isOnlyRefused(error)) throw error;
      this.options.onNote(
        `refuses notifications/initialized (status ${error.status}) and is used all the same`,
      );
    }
    if (isInitialized) this.#listen();
  }

  /** One POST and its answer. Rejects with the error as it happened, not explained. */
  async #exchange(message: JSONRPCRequest, exchange: Exchange): Promise<void> {
    const { signal } = exchange.controller;
    signal.throwIfAborted();
    exchange.isLost = false;
    const response = await this.#post(message, signal);
    // The present session is the one of the request: once that is lost, nothing is resumed.
    await this.receive(response, exchange, (lastId) =>
      this.#get({ lastId, isFirst: false, wasOpen: true }, signal),
    );
  }

  /** Rejects unless the status is 2xx. */
  async #post(message: JSONRPCMessage, signal: AbortSignal): Promise<HttpResponse> {
    const { url } = this.options;
    const sessionId = this.#session.id;
    const own = { ...ANY_ANSWER, ...this.#session.headers() };
    const response = await this.postTo(url, message, own, signal);
    if (isAccepted(response)) {
      const given = response.headers["mcp-session-id"];
      if (isInitialize(message) && typeof given === "string") this.#session.accept(given);
      return response;
    }
    const { error, body } = await answerError(response, { url, sessionId });
    // Some servers send a proper answer with an error status, also with one that says of others that they know no session.
    const { kind } = classifyFailure(error);
    const isAnswer = (answered: RpcError): boolean =>
      kind === "rejected" || (kind === "session-lost" && !isAboutSession(answered, sessionId));
    await receive(body, {
      ...this.stream,
      hand: (answer) => {
        if (!isRequest(message) || !("error" in answer) || answer.id !== message.id) return;
        if (isAnswer(answer.error)) this.open.deliver(answer);
      },
      onNoise: () => undefined,
    });
    throw error;
  }

  #headers(own: Record<string, string>): Record<string, string> {
    return { ...this.options.headers, ...own, ...this.#session.headers() };
  }

  /** A stream of events from the server, or undefined if it offers none. Rejects if it may offer one later. */
  async #get(at: Place, signal: AbortSignal): Promise<HttpResponse | undefined> {
    const { lastId, isFirst } = at;
    const { client, url } = this.options;
    const sessionId = this.#session.id;
    const resume: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
    const headers = this.#headers({ accept: "text/event-stream", ...resume });
    const response = await client.request({ method: "GET", url, headers, signal });
    if (response.status === 200 && mediaType(response.headers) === "text/event-stream") return response;
    const { error } = await answerError(response, { url, sessionId });
    const refusal = streamRefusal(classifyFailure(error), at);
    // The server knows a session that it has just opened: it has no such route.
    if (refusal === "session lost" && !isFirst) this.#session.lose(sessionId);
    if (refusal === "later") throw error;
    return undefined;
  }

  #listen(): void {
    this.#listening?.abort();
    const listening = new AbortController();
    this.#listening = listening;
    const signal = AbortSignal.any([this.lifetime.signal, listening.signal]);
    void followNotifications({
      open: (at) => this.#get(at, signal),
      noise: this.stream.noise,
      onEvent: (event) => this.onEvent(event),
      onUnheard: this.options.onListChanged,
      onNote: this.options.onNote,
      maxBytes: this.options.maxMessageBytes,
      signal,
    });
  }

  /** For a new session. The client has had its answer to `initialize`: it gets none of this one. */
  async #initializeAgain(request: JSONRPCRequest): ReturnType<SessionOptions["initialize"]> {
    let outcome: Awaited<ReturnType<SessionOptions["initialize"]>> = { result: {} };
    this.lifetime.signal.throwIfAborted();
    const exchange = this.open.open(request, (answer) => {
      if ("error" in answer) outcome = { rejection: answer.error.message };
      else if ("result" in answer) outcome = { result: answer.result };
    });
    const limit = setTimeout(() => exchange.controller.abort(), LIMITS.startupTimeoutMs);
    try {
      await this.#exchange(request, exchange);
    } finally {
      clearTimeout(limit);
      this.open.close(request.id);
    }
    return outcome;
  }

  protected override giveUp(): void {
    this.open.cancelAll();
    this.#acknowledged.close();
  }

  protected override async endSession(): Promise<void> {
    const { client, url } = this.options;
    if (this.#session.id === undefined || this.#session.isLost) return;
    const signal = AbortSignal.timeout(LIMITS.sessionEndMs);
    // A server may refuse this (405) or be gone. Then there is nothing to end.
    await client.request({ method: "DELETE", url, headers: this.#headers({}), signal }).then(
      ({ body }) => body.destroy(),
      () => undefined,
    );
  }
}
