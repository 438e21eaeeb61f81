/**
 * Owns: an MCP server on loopback that takes only valid tokens, with its metadata (RFC 9728) and its challenges. Its
 * tools echo their arguments; a tool may need scopes. Who judges the tokens may change while it runs.
 */
import type { ServerResponse } from "node:http";
import { checkProof } from "./dpop.ts";
import { type Message, resultOf } from "./mcp-answers.ts";
import {
  type Answer,
  type Recorded,
  type RecordingServer,
  sendJson,
  startRecording,
} from "./recording-server.ts";

/** How a server takes tokens that are bound to a key, and no others (RFC 9449, section 7). */
export interface Binding {
  /** Thumbprint of the key to which the token is bound. */
  boundTo(token: string): Promise<string | undefined>;
  /** A proof must hold a nonce of the server, and each nonce is good for so many of them. Absent: none is asked for. */
  nonceUses?: number;
}

/** May be changed at any time. */
export interface Protection {
  binding?: Binding;
  /** Issuers that the metadata name. */
  issuers: string[];
  /** The token's scopes, if it is valid now. */
  check(token: string | undefined, resource: string): string[] | undefined | Promise<string[] | undefined>;
  /** Scopes that a tool needs, by its name. Each name is offered as a tool beside `echo`. */
  needs?: Record<string, string[]>;
  /** `scopes_supported` of the metadata. */
  scopes?: string[];
  /** `scope` of the first challenge. */
  challengeScope?: string;
  /** `resource` of the metadata. Default: the address of the server. */
  resource?: string;
  /** Where the metadata are. Default: below the well-known path; `none`: nowhere, and no challenge names them. */
  metadata?: "path" | "root" | "none";
  /** Answers in the place of the metadata. */
  answerMetadata?: Answer;
  /** Answers requests with a valid token in the place of the server's own tools. */
  answerMcp?: Answer;
  /** Answers paths that are not the server's own: an authorization server of the same origin. */
  otherwise?: Answer;
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

export class ProtectedServer {
  protection: Protection;
  /** `jti` of each proof so far: none counts twice. */
  readonly proofs = new Set<string>();
  /** Nonces, and for how many proofs each is still good. */
  readonly nonces = new Map<string, number>();
  #recording: RecordingServer | undefined;

  constructor(protection: Protection) {
    this.protection = protection;
  }

  async start(): Promise<void> {
    this.#recording = await startRecording((request, response) => this.#answer(request, response));
  }

  get #started(): RecordingServer {
    if (!this.#recording) throw new Error("the server was not started");
    return this.#recording;
  }

  get origin(): string {
    return this.#started.origin;
  }

  /** The MCP endpoint. */
  get url(): string {
    return `${this.origin}/mcp`;
  }

  /** Oldest first. */
  get requests(): readonly Recorded[] {
    return this.#started.requests;
  }

  /** `tools/call` of a valid token: each call that was run. */
  readonly ran: string[] = [];

  close(): Promise<void> {
    return this.#started.close();
  }

  get #metadataPath(): string {
    return (this.protection.metadata ?? "path") === "path" ? `${WELL_KNOWN}/mcp` : WELL_KNOWN;
  }

  #answer(request: Recorded, response: ServerResponse): unknown {
    const { metadata, answerMetadata, otherwise } = this.protection;
    if (request.path === "/mcp") return this.#answerMcp(request, response);
    if (request.path === this.#metadataPath && metadata !== "none") {
      return (answerMetadata ?? ((...sent) => this.#sendMetadata(...sent)))(request, response);
    }
    if (otherwise) return otherwise(request, response);
    return response.writeHead(404).end();
  }

  #sendMetadata(_request: Recorded, response: ServerResponse): void {
    const { issuers, resource, scopes } = this.protection;
    sendJson(response, 200, {
      resource: resource ?? this.url,
      authorization_servers: issuers,
      ...(scopes ? { scopes_supported: scopes } : {}),
      ...(this.protection.binding ? { dpop_bound_access_tokens_required: true } : {}),
    });
  }

  #challenge(response: ServerResponse, status: number, words: Record<string, string | undefined>): void {
    const named = (this.protection.metadata ?? "path") !== "none";
    const all = { ...words, resource_metadata: named ? `${this.origin}${this.#metadataPath}` : undefined };
    const parts = Object.entries(all).filter(([, value]) => value !== undefined);
    response
      .writeHead(status, {
        "www-authenticate": `${this.protection.binding ? "DPoP" : "Bearer"} ${parts.map(([name, value]) => `${name}="${value}"`).join(", ")}`,
      })
      .end();
  }

  /** `error` of the challenge for a token that is bound to a key; undefined: the proof is right. */
  async #proofProblem({ method, headers }: Recorded, token: string, response: ServerResponse) {
    const { binding } = this.protection;
    if (!binding) return undefined;
    try {
      const { jkt, claims } = checkProof({ method, url: this.url, headers, token });
      if (binding.nonceUses !== undefined) {
        const left = this.nonces.get(claims.nonce ?? "") ?? 0;
        const nonce = left > 0 ? String(claims.nonce) : `nonce-${this.nonces.size}`;
        this.nonces.set(nonce, left > 0 ? left - 1 : binding.nonceUses);
        if (left === 0) {
          response.setHeader("dpop-nonce", nonce);
          return "use_dpop_nonce";
        }
      }
      if (this.proofs.has(claims.jti)) return "invalid_dpop_proof";
      this.proofs.add(claims.jti);
      return jkt === (await binding.boundTo(token)) ? undefined : "invalid_token";
    } catch {
      return "invalid_dpop_proof";
    }
  }

  async #answerMcp(request: Recorded, response: ServerResponse): Promise<unknown> {
    const scheme = this.protection.binding ? /^DPoP (.+)$/i : /^Bearer (.+)$/i;
    const token = scheme.exec(request.headers.authorization ?? "")?.[1];
    const problem = token === undefined ? undefined : await this.#proofProblem(request, token, response);
    if (problem !== undefined) return this.#challenge(response, 401, { error: problem });
    const scopes = await this.protection.check(token, this.url);
    if (!scopes) {
      const error = token === undefined ? undefined : "invalid_token";
      return this.#challenge(response, 401, { error, scope: this.protection.challengeScope });
    }
    if (this.protection.answerMcp) return this.protection.answerMcp(request, response);
    if (request.method === "DELETE") return response.writeHead(200).end();
    if (request.method !== "POST") return response.writeHead(405).end();
    const message = JSON.parse(request.body) as Message;
    if (message.id === undefined) return response.writeHead(202).end();
    const tool = message.method === "tools/call" ? String(message.params?.name) : undefined;
    const needed = tool === undefined ? [] : (this.protection.needs?.[tool] ?? []);
    if (!needed.every((scope) => scopes.includes(scope))) {
      return this.#challenge(response, 403, { error: "insufficient_scope", scope: needed.join(" ") });
    }
    if (tool !== undefined) this.ran.push(tool);
    return response
      .writeHead(200, { "content-type": "application/json" })
      .end(message.method === "tools/list" ? this.#tools(message) : resultOf(message));
  }

  #tools({ id }: Message): string {
    const names = ["echo", ...Object.keys(this.protection.needs ?? {})];
    const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }));
    return JSON.stringify({ jsonrpc: "2.0", id, result: { tools } });
  }
}

export async function startProtectedServer(protection: Protection): Promise<ProtectedServer> {
  const server = new ProtectedServer(protection);
  await server.start();
  return server;
}
