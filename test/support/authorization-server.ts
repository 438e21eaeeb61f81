/**
 * Owns: a small authorization server on loopback that agrees to every sign-in. By default it follows the rules (RFC 6749,
 * 7009, 7591, 7636, 8414, 8707, 9207); `behaviour` makes it as odd as real ones. It keeps every request.
 */
import type { ServerResponse } from "node:http";
import {
  type Answer,
  type Recorded,
  type RecordingServer,
  sendHtml,
  sendJson,
  startRecording,
} from "./recording-server.ts";
import { type Client, type Grant, TokenBook } from "./token-book.ts";

export type Endpoint = "metadata" | "register" | "authorize" | "token" | "revoke" | "device";

/** Answers in the place of an endpoint. False leaves the request to the endpoint. */
export type OddAnswer = (request: Recorded, response: ServerResponse) => unknown;
type Change = (answer: Record<string, unknown>) => Record<string, unknown>;

/** May be changed at any time. */
export interface Behaviour {
  /** Path of the issuer, for example `/realms/test`. Default: none. */
  issuerPath?: string;
  /** Which metadata it publishes. Default: `oauth` (RFC 8414). */
  wellKnown?: "oauth" | "openid";
  /** Changes the metadata. A key that becomes undefined is left out. */
  metadata?: Change;
  answer?: Partial<Record<Endpoint, OddAnswer>>;
  /** How long access tokens live. Default: an hour. */
  tokenMs?: number;
  /** How long codes live. Default: a minute. */
  codeMs?: number;
  /** False: a refresh token is good for ever. */
  rotates?: boolean;
  /** `iss` of the authorization response; false: none. Default: the issuer. */
  iss?: string | false;
  /** Changes the answer of the token endpoint. */
  tokens?: (answer: Record<string, unknown>, grant: Grant) => Record<string, unknown>;
  /** True: the tokens are sent as a form. */
  sendsForm?: boolean;
  /** Changes the answer of the registration endpoint. */
  registered?: Change;
  registeredStatus?: number;
  /** Judges the assertion of a grant for this audience: what it says, or why it is refused (RFC 7523, section 3.1). */
  assertions?: (assertion: string, aud: string, client: Client | undefined) => object | string;
  /** Answers a token exchange (RFC 8693), or says with which `error` and why it is refused. */
  exchange?: (
    form: URLSearchParams,
    client: Client,
  ) => Record<string, unknown> | [error: string, why: string];
  /** `error` of the authorization response. */
  refuses?: string;
  /** It offers codes for another device (RFC 8628), and this changes its answer. Default: it offers none. */
  device?: Change;
}

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

class OAuthError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, description: string) {
    super(description);
    this.status = status;
    this.code = code;
  }
}

const formDecoded = (text: string): string => decodeURIComponent(text.replaceAll("+", " "));

/** RFC 6749, section 2.3.1: id and secret are form-encoded before they are joined. */
function credentialsOf({ headers, form }: Recorded): { id: string; secret: string | undefined } {
  const basic = /^Basic (.+)$/i.exec(headers.authorization ?? "")?.[1];
  if (basic === undefined) {
    return { id: form.get("client_id") ?? "", secret: form.get("client_secret") ?? undefined };
  }
  const parts = Buffer.from(basic, "base64").toString("utf8").split(":").map(formDecoded);
  return { id: parts[0] ?? "", secret: parts[1] };
}

export class AuthorizationServer {
  readonly book = new TokenBook();
  behaviour: Behaviour;
  #recording: RecordingServer | undefined;

  constructor(behaviour: Behaviour) {
    this.behaviour = behaviour;
  }

  async start(): Promise<void> {
    this.#recording = await startRecording((request, response) => this.answer(request, response));
  }

  get #started(): RecordingServer {
    if (!this.#recording) throw new Error("the authorization server was not started");
    return this.#recording;
  }

  /** `http://127.0.0.1:<port>` */
  get origin(): string {
    return this.#started.origin;
  }

  get issuer(): string {
    return `${this.origin}${this.behaviour.issuerPath ?? ""}`;
  }

  /** Oldest first. */
  get requests(): readonly Recorded[] {
    return this.#started.requests;
  }

  /** `grant_type` of each token request, oldest first. */
  get grants(): string[] {
    return this.asked("/token").map(({ form }) => form.get("grant_type") ?? "");
  }

  /** The requests for this path, oldest first. */
  asked(path: string): Recorded[] {
    return this.requests.filter((request) => request.path === path);
  }

  close(): Promise<void> {
    return this.#started.close();
  }

  /** Makes tokens without a browser, for tests that begin with a stored sign-in. */
  issue(asked: { client: string; resource?: string; scope?: string }): Record<string, unknown> {
    return this.#tokens(
      { client: asked.client, resource: asked.resource, scope: asked.scope, alive: true },
      true,
    );
  }

  /** The answer to any request, so that the server can stand in the place of another. */
  async answer(request: Recorded, response: ServerResponse): Promise<unknown> {
    const [name, usual] = this.#endpointOf(request.path);
    if (name === undefined) return sendHtml(response, 404, "There is no such page.");
    const odd = this.behaviour.answer?.[name];
    if (odd && (await odd(request, response)) !== false) return undefined;
    try {
      return usual(request, response);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return sendJson(response, error.status, { error: error.code, error_description: error.message });
    }
  }

  #endpointOf(path: string): [Endpoint, Answer] | [undefined, undefined] {
    const { wellKnown = "oauth", issuerPath = "" } = this.behaviour;
    const metadataPath =
      wellKnown === "oauth"
        ? `/.well-known/oauth-authorization-server${issuerPath}`
        : `${issuerPath}/.well-known/openid-configuration`;
    if (path === metadataPath)
      return ["metadata", (_, response) => sendJson(response, 200, this.#metadata())];
    if (path === "/register") return ["register", (...sent) => this.#register(...sent)];
    if (path === "/authorize") return ["authorize", (...sent) => this.#authorize(...sent)];
    if (path === "/token") return ["token", (...sent) => this.#token(...sent)];
    if (path === "/revoke") return ["revoke", (...sent) => this.#revoke(...sent)];
    if (path === "/device/code") return ["device", (...sent) => this.#device(...sent)];
    return [undefined, undefined];
  }

  #metadata(): Record<string, unknown> {
    const published = {
      issuer: this.issuer,
      authorization_endpoint: `${this.origin}/authorize`,
      token_endpoint: `${this.origin}/token`,
      registration_endpoint: `${this.origin}/register`,
      revocation_endpoint: `${this.origin}/revoke`,
      ...(this.behaviour.device && { device_authorization_endpoint: `${this.origin}/device/code` }),
      response_types_supported: ["code"],
      grant_types_supported: [
        ...["authorization_code", "refresh_token", "client_credentials"],
        ...(this.behaviour.device ? [DEVICE_GRANT] : []),
      ],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "client_secret_post"],
      authorization_response_iss_parameter_supported: true,
    };
    return this.behaviour.metadata?.(published) ?? published;
  }

  #register({ body }: Recorded, response: ServerResponse): void {
    const asked = JSON.parse(body) as { redirect_uris?: string[]; token_endpoint_auth_method?: string };
    const method = asked.token_endpoint_auth_method ?? "client_secret_basic";
    const client = this.book.register(asked.redirect_uris ?? [], method !== "none");
    const answer = {
      ...asked,
      client_id: client.id,
      ...(client.secret === undefined ? {} : { client_secret: client.secret, client_secret_expires_at: 0 }),
      token_endpoint_auth_method: method,
    };
    const { registered, registeredStatus = 201 } = this.behaviour;
    sendJson(response, registeredStatus, registered?.(answer) ?? answer);
  }

  #authorize({ query }: Recorded, response: ServerResponse): void {
    const client = this.book.client(query.get("client_id") ?? "");
    const redirectUri = query.get("redirect_uri") ?? "";
    const registered = client?.redirectUris?.includes(redirectUri) ?? true;
    if (!client || !registered) {
      const what = client ? "This redirect URI is not registered." : "This application is not known here.";
      sendHtml(response, 400, what);
      return;
    }
    const to = new URL(redirectUri);
    const add = (name: string, value: string | null | false): void => {
      if (value !== null && value !== false) to.searchParams.set(name, value);
    };
    add("state", query.get("state"));
    add("iss", this.behaviour.iss ?? this.issuer);
    const challenge = query.get("code_challenge") ?? "";
    const hasPkce = challenge !== "" && query.get("code_challenge_method") === "S256";
    const refused = this.behaviour.refuses ?? (hasPkce ? undefined : "invalid_request");
    if (refused !== undefined) add("error", refused);
    else {
      const scope = query.get("scope") ?? undefined;
      const resource = query.get("resource") ?? undefined;
      const grant = { client: client.id, scope, resource, alive: true };
      add("code", this.book.code({ grant, redirectUri, challenge }, this.behaviour.codeMs ?? MINUTE_MS));
    }
    response.writeHead(302, { location: to.href }).end();
  }

  #token(request: Recorded, response: ServerResponse): void {
    const { form } = request;
    if (form.get("grant_type") === JWT_BEARER) {
      this.#exchange(request, response);
      return;
    }
    const client = this.#clientOf(request);
    const resource = form.get("resource") ?? undefined;
    const kind = form.get("grant_type");
    if (kind === "authorization_code") {
      const given = {
        client: client.id,
        redirectUri: form.get("redirect_uri") ?? "",
        verifier: form.get("code_verifier") ?? "",
      };
      const grant = this.book.redeem(form.get("code") ?? "", given);
      if (!grant) throw new OAuthError(400, "invalid_grant", "The code is not valid.");
      if (grant.resource !== resource) throw new OAuthError(400, "invalid_target", "The resource differs.");
      this.#sendTokens(response, grant, true);
    } else if (kind === "refresh_token") {
      const rotates = this.behaviour.rotates ?? true;
      const grant = this.book.renew(form.get("refresh_token") ?? "", client.id, rotates);
      if (!grant) throw new OAuthError(400, "invalid_grant", "The refresh token is not valid.");
      this.#sendTokens(response, grant, rotates);
    } else if (kind === DEVICE_GRANT) {
      const grant = this.book.redeemDevice(form.get("device_code") ?? "", client.id);
      if (typeof grant === "string") throw new OAuthError(400, grant, "See RFC 8628, section 3.5.");
      this.#sendTokens(response, grant, true);
    } else if (kind === "client_credentials" && client.secret !== undefined) {
      const scope = form.get("scope") ?? undefined;
      this.#sendTokens(response, { client: client.id, scope, resource, alive: true }, false);
    } else if (kind === TOKEN_EXCHANGE && this.behaviour.exchange) {
      const answer = this.behaviour.exchange(form, client);
      if (Array.isArray(answer)) throw new OAuthError(400, answer[0], answer[1]);
      sendJson(response, 200, answer);
    } else throw new OAuthError(400, "unauthorized_client", "This client may not use this grant.");
  }

  #exchange(request: Recorded, response: ServerResponse): void {
    const { form, headers } = request;
    // Section 3.1 of RFC 7523: a client may name itself, and then it must be the one it says.
    const isNamed = form.has("client_id") || headers.authorization !== undefined;
    const client = isNamed ? this.#clientOf(request) : undefined;
    const judged = this.behaviour.assertions?.(form.get("assertion") ?? "", this.issuer, client);
    if (typeof judged !== "object")
      throw new OAuthError(400, "invalid_grant", judged ?? "No assertions here.");
    const [scope, resource] = ["scope", "resource"].map((key) => form.get(key) ?? undefined);
    this.#sendTokens(response, { client: client?.id ?? "", scope, resource, alive: true }, false);
  }

  #device(request: Recorded, response: ServerResponse): void {
    const { form } = request;
    const scope = form.get("scope") ?? undefined;
    const resource = form.get("resource") ?? undefined;
    const { id: client } = this.#clientOf(request);
    const { deviceCode, userCode } = this.book.device({ client, scope, resource, alive: true });
    const answer = {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: `${this.origin}/device`,
      verification_uri_complete: `${this.origin}/device?user_code=${userCode}`,
      expires_in: 600,
      interval: 1,
    };
    sendJson(response, 200, this.behaviour.device?.(answer) ?? answer);
  }

  #sendTokens(response: ServerResponse, grant: Grant, renewable: boolean): void {
    const answer = this.#tokens(grant, renewable);
    if (!this.behaviour.sendsForm) {
      sendJson(response, 200, answer);
      return;
    }
    const form = new URLSearchParams();
    for (const [key, value] of Object.entries(answer)) form.set(key, String(value));
    response.writeHead(200, { "content-type": "application/x-www-form-urlencoded" }).end(String(form));
  }

  #revoke({ form }: Recorded, response: ServerResponse): void {
    this.book.revoke(form.get("token") ?? "");
    response.writeHead(200).end();
  }

  #clientOf(request: Recorded): Client {
    const { id, secret } = credentialsOf(request);
    const client = this.book.client(id);
    if (client && client.secret === secret) return client;
    throw new OAuthError(401, "invalid_client", "This client is not known here.");
  }

  #tokens(grant: Grant, renewable: boolean): Record<string, unknown> {
    const tokenMs = this.behaviour.tokenMs ?? HOUR_MS;
    const answer: Record<string, unknown> = {
      access_token: this.book.accessToken(grant, tokenMs),
      token_type: "Bearer",
      expires_in: Math.ceil(tokenMs / 1_000),
      ...(grant.scope === undefined ? {} : { scope: grant.scope }),
      ...(renewable ? { refresh_token: this.book.refreshToken(grant) } : {}),
    };
    return this.behaviour.tokens?.(answer, grant) ?? answer;
  }
}

export async function startAuthorizationServer(behaviour: Behaviour = {}): Promise<AuthorizationServer> {
  const server = new AuthorizationServer(behaviour);
  await server.start();
  return server;
}
