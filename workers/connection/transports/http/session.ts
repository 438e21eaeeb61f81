/**
 * The session that a Streamable HTTP server may give with its answer to `initialize` (MCP 2025-11-25, basic/transports,
 * session management). Owns: the headers that name the session and the protocol version, the knowledge that the
 * server has forgotten the session, and opening another one, once for all requests that wait for it. Knows nothing of
 * HTTP.
 */
import type { JSONRPCRequest } from "../../mcp/wire/wire.ts";
import { BrokenAnswer, type HttpFailure, NotSent } from "./failure.ts";

/** Requests without effect. `tools/call` must never be one of them: the call may have run. */
const READ_ONLY = new Set([
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
]);

/** Whether a request may be sent once more in a new session after the server has forgotten the old one. */
export const mayRepeat = (method: string): boolean => READ_ONLY.has(method);

/**
 * Meaning of an answer that refuses the stream of notifications. `later`: the server may offer the stream at another
 * time. 501 says that the method is not implemented, which no wait changes.
 */
export function streamRefusal(failure: HttpFailure): "session lost" | "later" | "never" {
  if (failure.kind === "session-lost") return "session lost";
  return failure.kind === "busy" && failure.status !== 501 ? "later" : "never";
}

export interface SessionOptions {
  /**
   * Sends `initialize` once more. Settles with the message of the server's error, or with undefined if the server
   * accepted. Rejects if no answer came.
   */
  initialize: (request: JSONRPCRequest) => Promise<string | undefined>;
  /** Sends `notifications/initialized`. */
  initialized: () => Promise<void>;
  /** The server has forgotten the session. */
  onLost: () => void;
  onNote: (note: string) => void;
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
    this.#id = undefined;
    const id = `reopen-${++this.#reopenings}`;
    const rejection = await this.#options.initialize({ ...request, id });
    if (rejection !== undefined) throw new NotSent(`it refused a new session: ${rejection}`);
    this.#isLost = false;
    this.#options.onNote("had lost the session; a new one is open");
    await this.#options.initialized();
  }
}
