/**
 * Speaks with a server of the stateless era (MCP 2026-07-28): `server/discover` where nothing is known, requests that carry
 * everything, results that ask, tasks, and a stream of changes. The SDK has no client for that era, so this one is built on
 * its protocol of requests and answers.
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
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import { CLIENT_INFO } from "./client-info.ts";
import type { ConnectOptions, SpokenProtocol } from "./connection.ts";
import { OtherEra } from "./era-evidence.ts";
import { startLimitMs } from "./failures.ts";
import { onListChanges } from "./list-changes.ts";
import type { SendRequest } from "./list-pages.ts";
import { listTools } from "./list-tools.ts";
import { MODERN_VERSION, MustNegotiate } from "./memory/memory.ts";
import {
  capabilitiesFrom,
  changesFilter,
  EVERY_LIST,
  FRESH_LEAST_MS,
  FRESH_MOST_MS,
  followChanges,
  followTask,
  HEADER_MISMATCH,
  judgeEra,
  type MirroredHeaders,
  metaOf,
  offersOf,
  outOfOrder,
  type Party,
  quoted,
  SUBSCRIPTION,
  supportedVersions,
  throughRounds,
  UNSUPPORTED_VERSION,
} from "./modern/modern.ts";
import type { Peer, PeerCall } from "./peer.ts";
import { capabilitiesOf } from "./questions.ts";
import { isClosed, isTimeout, refusedAnswer } from "./sdk-errors.ts";
import type { Wire } from "./wire-view.ts";

type Answer = Record<string, unknown>;

export interface ModernOptions {
  /** Over HTTP: the headers of requests, which need to know the tools. */
  headers?: MirroredHeaders;
  /** What an earlier session learned. With it nothing is asked before the first request. */
  remembered?: StoredProtocol | undefined;
  /** How long `server/discover` may take. */
  discoverMs?: number;
}

/** The SDK checks nothing here: what a server can do is read loosely, and its answers may have any shape. */
class StatelessClient extends Protocol<Request, Notification, Result> {
  protected override assertCapabilityForMethod(): void {}
  protected override assertNotificationCapability(): void {}
  protected override assertRequestHandlerCapability(): void {}
  protected override assertTaskCapability(): void {}
  protected override assertTaskHandlerCapability(): void {}
}

/** Rejects with the SDK's error, with `OtherEra`, or with `ThreadsError`. Sends nothing if the server is remembered. */
export async function speakModern(
  wire: Wire,
  options: ConnectOptions,
  more: ModernOptions = {},
): Promise<Peer> {
  let isNoted = false;
  const view = wire.view(() => {
    if (!isNoted)
      options.onNote("sends requests, which its revision of MCP does not have; they get no answer");
    isNoted = true;
  });
  const client = new StatelessClient();
  // The SDK offers no other way. A late answer to the client before must not be taken for one of this client's.
  Reflect.set(client, "_requestMessageId", wire.requests);
  client.onerror = (error) => options.onNote(error.message);
  await client.connect(view);
  const peer = new ModernPeer(client, options, more);
  try {
    if (!more.remembered) await peer.discover(more.discoverMs ?? startLimitMs(options.definition));
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
  capabilities: Answer;
  instructions: string | undefined;

  readonly #client: StatelessClient;
  readonly #options: ConnectOptions;
  readonly #headers: MirroredHeaders | undefined;
  readonly #lifetime = new AbortController();
  #isFromMemory: boolean;
  #freshUntil: number;
  /** When the tools were listed over this connection. */
  #listedAt: number | undefined;
  /** Ends the open stream of changes; undefined: none is open. */
  #endListening: { id: unknown; end: () => void } | undefined;

  constructor(client: StatelessClient, options: ConnectOptions, { headers, remembered }: ModernOptions) {
    this.#client = client;
    this.#options = options;
    this.#headers = headers;
    this.#isFromMemory = remembered !== undefined;
    this.#freshUntil = remembered?.freshUntil ?? 0;
    this.capabilities = capabilitiesFrom(remembered?.offers ?? []);
    this.instructions = options.remembered?.instructions;
    if (remembered) headers?.take(options.remembered?.tools ?? [], () => undefined);
    this.#handleNotifications();
  }

  get isOpen(): boolean {
    return this.#client.transport !== undefined;
  }

  get isFromMemory(): boolean {
    return this.#isFromMemory;
  }

  /** Asks the server what it is. A server that refuses the version and then names it is asked once more. */
  async discover(timeout: number): Promise<void> {
    const { definition, signal } = this.#options;
    const ask = () => this.#request({ method: "server/discover", params: {} }, { signal, timeout });
    const result = await ask().catch((error: unknown) => {
      if (!(error instanceof McpError) || error.code !== UNSUPPORTED_VERSION) throw error;
      const versions = supportedVersions(error) ?? [];
      if (versions.includes(MODERN_VERSION)) return ask();
      throw judgeEra("modern", { kind: "error", error }) === "modern"
        ? tooNew(definition.name, versions)
        : error;
    });
    if (judgeEra("modern", { kind: "result", result }) !== "modern") throw new OtherEra(result);
    const { supportedVersions: versions, capabilities, instructions } = result;
    if (Array.isArray(versions) && !versions.includes(MODERN_VERSION))
      throw tooNew(definition.name, versions);
    this.capabilities = isObject(capabilities) ? capabilities : EVERY_LIST;
    this.instructions = typeof instructions === "string" ? instructions : undefined;
  }

  send: SendRequest = async (request, options) => {
    const sentAt = Date.now();
    const result = await this.#request(request, options);
    this.#noteFreshness(request, result, sentAt);
    return completed(result, this.#party(request.method, options.signal));
  };

  async call({ request, subject, signal, onProgress }: PeerCall): Promise<Answer> {
    const party = this.#party(subject, signal, true);
    const options = { signal, timeout: LIMITS.longestTimerMs, onprogress: onProgress };
    const send = (more: Answer): Promise<Answer> =>
      this.#request({ ...request, params: { ...request.params, ...more } }, options);
    const result = await throughRounds(
      (more) =>
        send(more).catch((error: unknown) =>
          this.#withNewHeaders(error, request.method, signal, () => send(more)),
        ),
      party,
    );
    if (result.resultType !== "task" || request.method !== "tools/call") return completed(result, party);
    return await followTask(result, {
      party,
      request: (method, params) => this.send({ method, params }, { signal, timeout: LIMITS.promptTimeoutMs }),
      cancel: (taskId) => this.#cancelTask(taskId),
      isUnanswered,
      failure: (error) => taskFailure(error, party),
      onStatus: (message) => onProgress({ message, progress: undefined }),
    });
  }

  async ping(timeout: number): Promise<void> {
    await this.#request(
      { method: "server/discover", params: {} },
      { signal: this.#lifetime.signal, timeout },
    );
  }

  takeTools(tools: CachedTool[]): CachedTool[] {
    return this.#headers?.take(tools, this.#options.onNote) ?? tools;
  }

  memory(): StoredProtocol {
    return { version: MODERN_VERSION, offers: offersOf(this.capabilities), freshUntil: this.#freshUntil };
  }

  /** The connection is closed. */
  end(): void {
    this.#lifetime.abort();
  }

  isStale(): boolean {
    const now = Date.now();
    if (this.#listedAt === undefined) return now >= this.#freshUntil;
    const isTold = this.#freshUntil > this.#listedAt;
    return isTold && now >= Math.max(this.#freshUntil, this.#listedAt + FRESH_LEAST_MS);
  }

  /** Opens the stream of changes, if the server is kept up and tells of changes. */
  listen(): void {
    const { definition, onListChanged, onNote } = this.#options;
    const notifications = changesFilter(this.capabilities);
    if (!notifications || definition.lifecycle === "lazy") return;
    void followChanges({
      signal: this.#lifetime.signal,
      onNote,
      onChanged: onListChanged,
      open: async (signal) => {
        const ended = new AbortController();
        this.#endListening = { id: undefined, end: () => ended.abort() };
        const both = AbortSignal.any([signal, ended.signal]);
        try {
          await this.#request(
            { method: "subscriptions/listen", params: { notifications } },
            { signal: both, timeout: LIMITS.longestTimerMs },
          );
        } catch (error) {
          if (error instanceof McpError && this.isOpen && !isTimeout(error)) throw error;
        }
      },
    });
  }

  #handleNotifications(): void {
    const { onListChanged, onLogMessage } = this.#options;
    const client = this.#client;
    onListChanges(client, onListChanged);
    client.setNotificationHandler(CancelledNotificationSchema, ({ params }) => {
      const listening = this.#endListening;
      if (listening?.id !== undefined && listening.id === params.requestId) listening.end();
    });
    client.fallbackNotificationHandler = async ({ method, params }) => {
      if (method === "notifications/message") onLogMessage(params);
      if (method === "notifications/subscriptions/acknowledged" && this.#endListening)
        this.#endListening.id = params?._meta?.[SUBSCRIPTION];
    };
  }

  #party(subject: string, signal: AbortSignal, isCall = false): Party {
    const { definition, asks, roots, onNote } = this.#options;
    const { name } = definition;
    return { server: name, subject: isCall ? subject : `${name}: ${subject}`, asks, roots, onNote, signal };
  }

  async #request(
    { method, params }: { method: string; params?: Answer },
    options: { signal: AbortSignal; timeout: number; onprogress?: PeerCall["onProgress"] },
  ): Promise<Answer> {
    const { definition } = this.#options;
    const logLevel = this.capabilities.logging ? (definition.debug ? "debug" : "info") : undefined;
    const _meta = metaOf({ clientInfo: CLIENT_INFO, capabilities: capabilitiesOf(this.#options), logLevel });
    try {
      const result = await this.#client.request(
        { method, params: { ...params, _meta } },
        ResultSchema,
        options,
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
    this.takeTools(await listTools(this.send, { signal, limitMs: startLimitMs(definition), onNote }));
    onListChanged();
    return await send();
  }

  #noteFreshness({ method, params }: Parameters<SendRequest>[0], { ttlMs }: Answer, sentAt: number): void {
    if (method !== "tools/list") return;
    const freshMs = typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, FRESH_MOST_MS) : 0;
    const isFirst = params?.cursor === undefined;
    this.#freshUntil = isFirst ? sentAt + freshMs : Math.min(this.#freshUntil, sentAt + freshMs);
    this.#listedAt = sentAt;
  }

  #cancelTask(taskId: string): void {
    const { onNote } = this.#options;
    const options = { signal: this.#lifetime.signal, timeout: LIMITS.healthAnswerMs };
    this.#request({ method: "tasks/cancel", params: { taskId } }, options).catch((error: unknown) => {
      if (this.isOpen) onNote(`does not take a task back: ${messageOf(error)}`);
    });
  }
}

const tooNew = (name: string, versions: readonly unknown[]): ThreadsError =>
  new ThreadsError(
    "connect_failed",
    `${name} speaks MCP ${versions.slice(0, 5).map(quoted).join(", ")}, and this client up to ${MODERN_VERSION}.`,
    { remedy: "A newer version of this extension may speak it.", data: { server: name } },
  );

/** The result, if it is the last one. A result without a type is one of an older revision. */
function completed(result: Answer, party: Party): Answer {
  const { resultType } = result;
  if (resultType === undefined || resultType === "complete") return result;
  throw outOfOrder(party, `got a result of the type ${quoted(resultType)}, which it cannot have`);
}

/** Whether a request got no answer: neither a result nor a refusal. */
const isUnanswered = (error: unknown): boolean =>
  error instanceof ThreadsError
    ? error.code === "server_died" || error.code === "connect_failed"
    : isTimeout(error) || (!(error instanceof McpError) && !isClosed(error));

function taskFailure(error: unknown, party: Party): Error {
  if (!isObject(error) || typeof error.message !== "string")
    return outOfOrder(party, "failed as a task without a reason");
  const code = typeof error.code === "number" ? error.code : 0;
  return McpError.fromError(code, error.message, error.data);
}
