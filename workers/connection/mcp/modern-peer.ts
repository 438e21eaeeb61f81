/**
 * Speaks with a server of the stateless era (MCP 2026-07-28): `server/discover` where nothing is known, requests that carry
 * everything, results that ask, tasks, and a stream of changes. The rules are in modern/. The SDK has no client for that
 * era, so this one is built on its protocol of requests and answers.
 */

import { Protocol } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  CancelledNotificationSchema,
  McpError,
  type Notification,
  type Request,
  type Result,
  ResultSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../shared/listed.ts";
import { during } from "../../shared/pace/abort.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import {
  CLIENT_INFO,
  capabilitiesOf,
  continueIds,
  onListChanges,
  type Peer,
  type PeerCall,
  type Wire,
} from "./both-eras.ts";
import type { ConnectOptions, SpokenProtocol } from "./connection.ts";
import {
  begunFailure,
  evidenceOf,
  isTimeout,
  isUnanswered,
  OtherEra,
  refusedAnswer,
  sentData,
  startLimitMs,
  taskFailure,
} from "./failures.ts";
import { listTools, type SendRequest } from "./lists.ts";
import { ChangeStream, changesFilter } from "./modern/changes.ts";
import { HEADER_MISMATCH, judgeEra, supportedVersions, UNSUPPORTED_VERSION } from "./modern/era.ts";
import type { MirroredHeaders } from "./modern/headers.ts";
import { followTask, lastResult, type Party, throughRounds } from "./modern/rounds.ts";
import {
  afterPage,
  capabilitiesFrom,
  type Discovered,
  type Freshness,
  isStale,
  metaOf,
  offersOf,
  readDiscovered,
  SUBSCRIPTION,
  tooNew,
} from "./modern/server.ts";
import { MODERN_VERSION, MustNegotiate } from "./wire/wire.ts";

interface StatelessRequest {
  method: string;
  params?: Record<string, unknown>;
}

interface StatelessOptions {
  signal: AbortSignal;
  timeout: number;
  onprogress?: PeerCall["onProgress"];
}

/** The SDK checks nothing here: what a server can do is read loosely, and its answers may have any shape. */
class StatelessClient extends Protocol<Request, Notification, Result> {
  readonly #asker: Pick<ConnectOptions, "definition" | "asks" | "roots">;
  #isFromMemory: boolean;
  /** Whether the server sends log messages to a client that wants them. */
  logs = false;

  /** `isFromMemory`: the server is one that an earlier session spoke with. */
  constructor(asker: Pick<ConnectOptions, "definition" | "asks" | "roots">, isFromMemory: boolean) {
    super();
    this.#asker = asker;
    this.#isFromMemory = isFromMemory;
  }

  /** Whether the server is remembered and has answered nothing yet. */
  get isFromMemory(): boolean {
    return this.#isFromMemory;
  }

  /** Rejects with the SDK's error, or with `MustNegotiate` if a remembered server refuses the version. */
  async ask(
    { method, params }: StatelessRequest,
    options: StatelessOptions,
  ): Promise<Record<string, unknown>> {
    const { definition } = this.#asker;
    const logLevel = this.logs ? (definition.debug ? "debug" : "info") : undefined;
    const _meta = metaOf({ clientInfo: CLIENT_INFO, capabilities: capabilitiesOf(this.#asker), logLevel });
    try {
      const request = { method, params: { ...params, _meta } };
      const result = await during(options.signal, (signal) =>
        this.request(request, ResultSchema, { ...options, signal }),
      );
      this.#isFromMemory = false;
      return result;
    } catch (error) {
      // The server refused the version before it looked at the request.
      if (this.#isFromMemory && error instanceof McpError && error.code === UNSUPPORTED_VERSION)
        throw new MustNegotiate(definition.name);
      throw error;
    }
  }

  protected override assertCapabilityForMethod(): void {}
  protected override assertNotificationCapability(): void {}
  protected override assertRequestHandlerCapability(): void {}
  protected override assertTaskCapability(): void {}
  protected override assertTaskHandlerCapability(): void {}
}

type Answer = Record<string, unknown>;

interface ModernOptions {
  /** Over HTTP: the headers of requests, which need to know the tools. */
  headers?: MirroredHeaders;
  /** What an earlier session learned. With it nothing is asked before the first request. */
  remembered?: StoredProtocol | undefined;
  /** How long `server/discover` may take, if that is less than a start may. */
  discoverMs?: number;
}

/** Rejects with the SDK's error, with `OtherEra`, or with `ThreadsError`. Sends nothing if the server is remembered. */
export async function speakModern(
  wire: Wire,
  options: ConnectOptions,
  more: ModernOptions = {},
): Promise<Peer> {
  let isNoted = false;
  const view = wire.view({
    onRequest: () => {
      if (!isNoted)
        options.onNote("sends requests, which its revision of MCP does not have; they get no answer");
      isNoted = true;
    },
  });
  const client = new StatelessClient(options, more.remembered !== undefined);
  continueIds(client, wire);
  client.onerror = (error) => options.onNote(error.message);
  await client.connect(view);
  const peer = new ModernPeer(client, options, more);
  try {
    const limitMs = startLimitMs(options.definition);
    if (!more.remembered) await peer.discover(Math.min(more.discoverMs ?? limitMs, limitMs));
  } catch (error) {
    await view.close();
    throw refusedAnswer(error) ?? error;
  }
  client.onclose = () => {
    peer.end();
    options.onClosed();
  };
  peer.listen();
  return peer;
}

class ModernPeer implements Peer {
  readonly protocol: SpokenProtocol = { era: "modern", version: MODERN_VERSION };
  readonly #client: StatelessClient;
  readonly #options: ConnectOptions;
  readonly #headers: MirroredHeaders | undefined;
  readonly #lifetime = new AbortController();
  readonly #changes = new ChangeStream();
  #known: Discovered;
  #freshness: Freshness;

  constructor(client: StatelessClient, options: ConnectOptions, { headers, remembered }: ModernOptions) {
    this.#client = client;
    this.#options = options;
    this.#headers = headers;
    this.#freshness = { until: remembered?.freshUntil ?? 0, listedAt: undefined, isPublic: true };
    const instructions = options.remembered?.instructions;
    this.#known = this.#take({ capabilities: capabilitiesFrom(remembered?.offers ?? []), instructions });
    // Also where the server is asked first: it may be too busy to list its tools, and those that are known are called then.
    headers?.take(options.remembered?.tools ?? [], () => undefined);
    this.#handleNotifications();
  }

  get capabilities(): Answer {
    return this.#known.capabilities;
  }

  get instructions(): string | undefined {
    return this.#known.instructions;
  }

  get isOpen(): boolean {
    return this.#client.transport !== undefined;
  }

  get isFromMemory(): boolean {
    return this.#client.isFromMemory;
  }

  /** Asks the server what it is. A server that refuses the version and then names it is asked once more. */
  async discover(timeout: number): Promise<void> {
    const { definition, signal } = this.#options;
    const ask = () => this.#client.ask({ method: "server/discover", params: {} }, { signal, timeout });
    const result = await ask().catch((error: unknown) => {
      if (!(error instanceof McpError) || error.code !== UNSUPPORTED_VERSION) throw error;
      const versions = supportedVersions(sentData(error)) ?? [];
      if (versions.includes(MODERN_VERSION)) return ask();
      throw judgeEra("modern", evidenceOf(error)) === "modern" ? tooNew(definition.name, versions) : error;
    });
    if (judgeEra("modern", { kind: "result", result }) !== "modern") throw new OtherEra(result);
    this.#known = this.#take(readDiscovered(definition.name, result));
  }

  send: SendRequest = async (request, options) => {
    const sentAt = Date.now();
    const result = await this.#client.ask(request, options);
    if (request.method === "tools/list") {
      const { ttlMs, cacheScope } = result;
      const page = { isFirst: request.params?.cursor === undefined, ttlMs, cacheScope, sentAt };
      this.#freshness = afterPage(this.#freshness, page);
    }
    return lastResult(result, this.#party(request.method, options.signal));
  };

  async call({ request, subject, signal, onProgress }: PeerCall): Promise<Answer> {
    const party = this.#party(subject, signal, true);
    const options = { signal, timeout: LIMITS.longestTimerMs, onprogress: onProgress };
    let hasBegun = false;
    const send = async (more: Answer): Promise<Answer> => {
      const result = await this.#client.ask({ ...request, params: { ...request.params, ...more } }, options);
      hasBegun = true;
      return result;
    };
    try {
      const result = await throughRounds(
        (more) =>
          send(more).catch((error: unknown) =>
            this.#withNewHeaders(error, request.method, signal, () => send(more)),
          ),
        party,
      );
      if (result.resultType !== "task" || request.method !== "tools/call") return lastResult(result, party);
      return await followTask(result, {
        party,
        request: (method, params) =>
          this.send({ method, params }, { signal, timeout: LIMITS.promptTimeoutMs }),
        cancel: (taskId) => this.#cancelTask(taskId),
        isUnanswered,
        failure: (error) => taskFailure(error, party),
        onStatus: (message) => onProgress({ message, progress: undefined }),
      });
    } catch (error) {
      throw hasBegun ? begunFailure(error) : error;
    }
  }

  async ping(timeout: number): Promise<void> {
    const options = { signal: this.#lifetime.signal, timeout };
    await this.#client.ask({ method: "server/discover", params: {} }, options);
  }

  takeTools(tools: CachedTool[]): CachedTool[] {
    return this.#headers?.take(tools, this.#options.onNote) ?? tools;
  }

  memory(): StoredProtocol {
    const { until, isPublic } = this.#freshness;
    // A later session may have other credentials, whose list is another one (server/utilities/caching, "Cache Scope").
    const freshUntil = isPublic ? until : 0;
    return { version: MODERN_VERSION, offers: offersOf(this.capabilities), freshUntil };
  }

  /** The connection is closed. */
  end(): void {
    this.#lifetime.abort();
  }

  isStale(): boolean {
    const tells = changesFilter(this.capabilities)?.toolsListChanged === true;
    return isStale(this.#freshness, Date.now(), tells && !this.#changes.isFollowed);
  }

  /** Opens the stream of changes, if the server is kept up and tells of changes. */
  listen(): void {
    const { definition, onListChanged, onNote } = this.#options;
    const notifications = changesFilter(this.capabilities);
    if (!notifications || definition.lifecycle === "lazy") return;
    const request = { method: "subscriptions/listen", params: { notifications } };
    void this.#changes.follow({
      signal: this.#lifetime.signal,
      onNote,
      onChanged: onListChanged,
      request: (signal) => this.#client.ask(request, { signal, timeout: LIMITS.longestTimerMs }),
      isRefusal: (error) => error instanceof McpError && this.isOpen && !isTimeout(error),
    });
  }

  #take(known: Discovered): Discovered {
    this.#client.logs = Boolean(known.capabilities.logging);
    return known;
  }

  #handleNotifications(): void {
    const { onListChanged, onLogMessage } = this.#options;
    const client = this.#client;
    onListChanges(client, onListChanged);
    client.setNotificationHandler(CancelledNotificationSchema, ({ params }) =>
      this.#changes.cancelled(params.requestId),
    );
    client.fallbackNotificationHandler = async ({ method, params }) => {
      if (method === "notifications/message") onLogMessage(params);
      if (method === "notifications/subscriptions/acknowledged")
        this.#changes.acknowledged(params?._meta?.[SUBSCRIPTION]);
    };
  }

  #party(subject: string, signal: AbortSignal, isCall = false): Party {
    const { definition, asks, roots, onNote } = this.#options;
    const { name } = definition;
    return { server: name, subject: isCall ? subject : `${name}: ${subject}`, asks, roots, onNote, signal };
  }

  /** The tools of the server changed, and with them the headers: lists them and sends the request once more. */
  async #withNewHeaders(
    error: unknown,
    method: string,
    signal: AbortSignal,
    send: () => Promise<Answer>,
  ): Promise<Answer> {
    const isMismatch = error instanceof McpError && error.code === HEADER_MISMATCH;
    if (!isMismatch || !this.#headers || method !== "tools/call") throw error;
    const { definition, onNote, onListChanged } = this.#options;
    const listing = { signal, limitMs: startLimitMs(definition), onNote, era: this.protocol.era };
    this.takeTools(await listTools(this.send, listing));
    onListChanged();
    return await send();
  }

  #cancelTask(taskId: string): void {
    const { onNote } = this.#options;
    const options = { signal: this.#lifetime.signal, timeout: LIMITS.healthAnswerMs };
    this.#client.ask({ method: "tasks/cancel", params: { taskId } }, options).catch((error: unknown) => {
      if (this.isOpen) onNote(`does not take a task back: ${messageOf(error)}`);
    });
  }
}
