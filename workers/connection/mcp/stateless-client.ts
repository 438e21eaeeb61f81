/**
 * Sends the requests of the stateless era (MCP 2026-07-28). The SDK has no client for that era, so this one is built on its
 * protocol of requests and answers. Owns: what each request carries, and whether the server has answered one yet.
 */
import { Protocol } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  McpError,
  type Notification,
  type Request,
  type Result,
  ResultSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { during } from "../../shared/pace/abort.ts";
import { CLIENT_INFO } from "./client-info.ts";
import type { ConnectOptions } from "./connection.ts";
import { MustNegotiate } from "./memory/memory.ts";
import { metaOf } from "./modern/envelope.ts";
import { UNSUPPORTED_VERSION } from "./modern/era.ts";
import type { PeerCall } from "./peer.ts";
import { capabilitiesOf } from "./questions.ts";

export interface StatelessRequest {
  method: string;
  params?: Record<string, unknown>;
}

export interface StatelessOptions {
  signal: AbortSignal;
  timeout: number;
  onprogress?: PeerCall["onProgress"];
}

/** The SDK checks nothing here: what a server can do is read loosely, and its answers may have any shape. */
export class StatelessClient extends Protocol<Request, Notification, Result> {
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
