/**
 * What both eras of the protocol share: one server as the connection speaks to it (`Peer`, which legacy-peer.ts and
 * modern-peer.ts make), how this client names itself, the server's questions to the user (MCP 2025-11-25,
 * client/elicitation), to the model (client/sampling) and for folders (client/roots), and its word that a list changed. The
 * SDK's own handler would refuse a question whose schema is a little odd, so asks/ reads the question.
 */

import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Protocol } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  CancelledNotificationSchema,
  ErrorCode,
  McpError,
  type Notification,
  PromptListChangedNotificationSchema,
  type Request,
  type RequestId,
  ResourceListChangedNotificationSchema,
  type Result,
  SUPPORTED_PROTOCOL_VERSIONS,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import manifest from "../../../package.json" with { type: "json" };
import type { CachedTool } from "../../shared/listed.ts";
import { SKILLS_EXTENSION } from "../../shared/skills.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import { answerOf, type RequiredOutcome, type ServerAsks } from "../asks/asks.ts";
import { cancelledRequest, isRequest } from "../messages/incoming.ts";
import type { ConnectOptions, SpokenProtocol } from "./connection.ts";
import { sentData } from "./failures.ts";
import type { SendRequest } from "./lists.ts";
import type { JSONRPCMessage, JSONRPCRequest, Transport, TransportSendOptions } from "./wire/wire.ts";

export interface PeerCall {
  request: { method: string; params: Record<string, unknown> };
  /** The call in words, for example `docs/search`. */
  subject: string;
  signal: AbortSignal;
  /** Params of a progress notification. */
  onProgress: (params: { message?: unknown; progress: unknown; total?: unknown; _meta?: unknown }) => void;
}

export interface Peer {
  readonly protocol: SpokenProtocol;
  /** What the server says that it can do. */
  readonly capabilities: Record<string, unknown>;
  readonly instructions: string | undefined;
  /** False: the connection has ended. */
  readonly isOpen: boolean;
  /** Sends a request of which nobody but this client knows. */
  send: SendRequest;
  /** Sends a request of the user or the model, and answers its last result. */
  call(call: PeerCall): Promise<Record<string, unknown>>;
  /** Rejects if the server does not answer within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  /** Takes the tools of a new list and answers those that can be called. */
  takeTools?(tools: CachedTool[]): CachedTool[];
  /** What a later session may remember, so that it can call without asking first. */
  memory?(): StoredProtocol;
  /** Whether the list of tools is older than the server said that it counts. */
  isStale?(): boolean;
  /** Takes the result of a further `initialize`: the server had lost the session, and another one is open now. */
  renew?(result: Record<string, unknown>): void;
  /** Whether nothing has been sent yet: what is known of the server was remembered. */
  readonly isFromMemory?: boolean;
}

export function onListChanges(client: Protocol<Request, Notification, Result>, onChanged: () => void): void {
  client.setNotificationHandler(ToolListChangedNotificationSchema, onChanged);
  client.setNotificationHandler(ResourceListChangedNotificationSchema, onChanged);
  client.setNotificationHandler(PromptListChangedNotificationSchema, onChanged);
}

/** The revision that an answer to `initialize` names; undefined if this client does not speak it. */
export const knownRevision = (named: unknown): string | undefined =>
  SUPPORTED_PROTOCOL_VERSIONS.find((version) => version === named);

export const CLIENT_INFO = { name: manifest.name, version: manifest.version };

/**
 * One open transport that several clients may use, one after the other: the era of a server is often known only when one
 * client has failed. Closing a client closes its view; the owner of the transport closes the transport.
 */
export class Wire {
  readonly #transport: Transport;
  /** Takes each message. Absent: the server is not traced. */
  readonly trace: ConnectOptions["trace"];
  #started: Promise<void> | undefined;
  /** Requests that were sent so far: the ids of the next client begin here, so that no late answer is taken for another. */
  requests = 0;

  constructor(transport: Transport, trace?: ConnectOptions["trace"]) {
    this.#transport = transport;
    this.trace = trace;
  }

  view(as: ViewOptions = {}): WireView {
    return new WireView(this, this.#transport, as);
  }

  start(): Promise<void> {
    this.#started ??= this.#transport.start();
    return this.#started;
  }
}

/**
 * The ids of the client begin where those of the client before end, so that a late answer to that one is none to this one. The
 * SDK offers no other way.
 */
export const continueIds = (client: Protocol<Request, Notification, Result>, { requests }: Wire): boolean =>
  Reflect.set(client, "_requestMessageId", requests);

interface ViewOptions {
  /** Gets each request of the server in the client's place. */
  onRequest?: () => void;
  /** The revision that `initialize` asks for, in place of the newest one, which the SDK always names. */
  version?: string | undefined;
}

class WireView implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  /** The version that the handshake agreed on. */
  protocolVersion: string | undefined;

  readonly #wire: Wire;
  readonly #transport: Transport;
  readonly #as: ViewOptions;
  #initializeId: RequestId | undefined;
  #isClosed = false;

  constructor(wire: Wire, transport: Transport, as: ViewOptions) {
    this.#wire = wire;
    this.#transport = transport;
    this.#as = as;
  }

  async start(): Promise<void> {
    const transport = this.#transport;
    transport.onclose = () => this.#end();
    transport.onerror = (error) => this.onerror?.(error);
    const { trace } = this.#wire;
    transport.onmessage = (message, extra) => {
      trace?.("in", message);
      if (this.#as.onRequest && isRequest(message)) this.#as.onRequest();
      else this.onmessage?.(message, extra);
    };
    await this.#wire.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (this.#isClosed || this.#cancelsInitialize(message)) return;
    if (isRequest(message)) this.#wire.requests++;
    const sent = isRequest(message) && message.method === "initialize" ? this.#initialize(message) : message;
    this.#wire.trace?.("out", sent);
    await this.#transport.send(sent, options);
  }

  /** The SDK cancels every request that is given up, and the protocol forbids that for this one (basic/utilities/cancellation). */
  #cancelsInitialize(message: JSONRPCMessage): boolean {
    return this.#initializeId !== undefined && cancelledRequest(message) === this.#initializeId;
  }

  #initialize(request: JSONRPCRequest): JSONRPCRequest {
    this.#initializeId = request.id;
    const { version } = this.#as;
    return version === undefined
      ? request
      : { ...request, params: { ...request.params, protocolVersion: version } };
  }

  setProtocolVersion(version: string): void {
    this.protocolVersion = version;
    this.#transport.setProtocolVersion?.(version);
  }

  async close(): Promise<void> {
    this.#end();
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }
}

type Offering = Pick<ConnectOptions, "asks" | "roots" | "definition">;
type Capabilities = Record<string, object> & { extensions?: Record<string, object> };

const ROOTS = "roots/list";
/** The server does not answer the call before the user has opened an address (the same page, "URL mode"). */
const URL_REQUIRED = -32042;

/**
 * What the client can do. A server that can ask nobody often does without a question, and one that goes by the rule of
 * extensions (MCP 2026-07-28, basic/versioning, "Extension Negotiation") shows its skills only to a client that declares them.
 */
export const capabilitiesOf = ({ asks, roots, definition }: Offering): Capabilities => ({
  ...(definition.skillPolicy.use === false ? {} : { extensions: { [SKILLS_EXTENSION]: {} } }),
  ...(asks?.may.ask ? { elicitation: { form: {}, url: {} } } : {}),
  ...(asks?.may.sample ? { sampling: {} } : {}),
  // The folders of a connection never change: an edit of them makes another connection.
  ...(roots ? { roots: {} } : {}),
});

export const isOffering = (options: Offering): boolean => Object.keys(capabilitiesOf(options)).length > 0;

export function takeQuestions(client: Client, options: ConnectOptions): void {
  const { roots } = options;
  client.fallbackRequestHandler = async (question, { signal }) => {
    if (question.method === ROOTS && roots) return { roots };
    const answer = await answerOf(question, options, signal);
    if (answer) return answer;
    throw Object.assign(new Error("Method not found"), { code: ErrorCode.MethodNotFound });
  };
  // The SDK's own handler ignores the id 0, with which servers of the SDK begin, and it offers no other way.
  const open: Map<RequestId | undefined, AbortController> = Reflect.get(
    client,
    "_requestHandlerAbortControllers",
  );
  client.setNotificationHandler(CancelledNotificationSchema, ({ params }) =>
    open.get(params.requestId)?.abort(params.reason),
  );
}

/**
 * Asks the user to open the addresses that the error names. Undefined: it is another error. The call is not repeated,
 * because only the user knows when the page is done.
 */
export async function urlRequired(
  error: unknown,
  asks: ServerAsks | undefined,
  signal: AbortSignal,
): Promise<RequiredOutcome | undefined> {
  if (!(error instanceof McpError) || error.code !== URL_REQUIRED) return undefined;
  return asks ? asks.required(sentData(error).data, signal) : "none";
}
