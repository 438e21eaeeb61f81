/**
 * Owns: a certified authorization server (`oidc-provider`) on loopback with dynamic registration, resource indicators,
 * rotation that ends a sign-in at reuse, and client credentials. A person who agrees at once stands in for its pages.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export interface OidcOptions {
  /** How long access tokens are good. Default: an hour. */
  tokenMs?: number;
  /** Clients that somebody registered by hand, in the words of RFC 7591. */
  clients?: Record<string, unknown>[];
  /** True: a proof of a key must hold the server's nonce (RFC 9449, section 8). Proofs without need are taken anyway. */
  nonces?: boolean;
  /** It offers codes for another device (RFC 8628). */
  device?: boolean;
  /** Client metadata documents by their https addresses, which the server takes as ids of clients. */
  documents?: Record<string, unknown>;
  /** Stands before the server: true if it has answered itself. */
  before?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export interface Oidc {
  issuer: string;
  provider: Provider;
  /** `grant_type` of each token request that was answered with tokens, oldest first. */
  grants: readonly string[];
  /** `error` of each token request that was refused. */
  refusals: readonly string[];
  /** How many sign-ins the server ended, for example because a refresh token was used twice. */
  readonly revoked: number;
  /** Every token that was issued. */
  secrets: ReadonlySet<string>;
  /** The token's scopes, if it is good now for this resource. */
  check(token: string | undefined, resource: string): Promise<string[] | undefined>;
  /** Thumbprint of the key to which the token is bound. */
  boundTo(token: string): Promise<string | undefined>;
  close(): Promise<void>;
}

const SCOPES = "openid offline_access read write";
const HOUR_MS = 3_600_000;

interface TokenContext {
  oidc: { params?: { grant_type?: string } };
  body?: Record<string, unknown>;
}

interface PageContext {
  body?: unknown;
}

/** The pages of the device flow hold the form alone, which a test fills in. */
const page = (context: PageContext, form: string): void => {
  context.body = form;
};

/** The version of an experimental feature that the package must be told. */
const DOCUMENT_DRAFT = "draft-02";

const deviceFlow = (enabled: boolean): Record<string, unknown> => ({
  enabled,
  userCodeInputSource: page,
  userCodeConfirmSource: page,
  successSource: (context: PageContext) => page(context, "Signed in."),
});

const configuration = ({
  tokenMs = HOUR_MS,
  clients = [],
  nonces = false,
  device = false,
  documents,
}: OidcOptions): Record<string, unknown> => {
  const seconds = Math.max(1, Math.ceil(tokenMs / 1_000));
  return {
    clients,
    scopes: SCOPES.split(" "),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => nonces },
      deviceFlow: deviceFlow(device),
      clientIdMetadataDocument: { enabled: documents !== undefined, ack: DOCUMENT_DRAFT },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: SCOPES,
          audience: resource,
          accessTokenTTL: seconds,
          accessTokenFormat: "opaque",
        }),
      },
    },
    ttl: {
      AccessToken: seconds,
      ClientCredentials: seconds,
      RefreshToken: 86_400,
      Grant: 86_400,
      Session: 86_400,
      Interaction: 3_600,
      IdToken: 3_600,
    },
    fetch: async (url: string | URL) => Response.json(documents?.[String(url)]),
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    cookies: { keys: ["a key of the tests"] },
  };
};

/** Signs in as one person, and agrees to all that is asked. */
async function agree(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    await provider.interactionFinished(request, response, { login: { accountId: "somebody" } });
    return;
  }
  const about = { accountId: session?.accountId ?? "somebody", clientId: params.client_id };
  const grant =
    (grantId === undefined ? undefined : await provider.Grant.find(grantId)) ?? new provider.Grant(about);
  const scope = params.scope ?? "";
  grant.addOIDCScope(scope);
  for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, scope);
  const result = { consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

export async function startOidc(options: OidcOptions = {}): Promise<Oidc> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, configuration(options));
  const grants: string[] = [];
  const refusals: string[] = [];
  const secrets = new Set<string>();
  const issuedAtMs = new Map<string, number>();
  let revoked = 0;
  provider.on("grant.success", ({ oidc, body }: TokenContext) => {
    grants.push(oidc.params?.grant_type ?? "");
    for (const key of ["access_token", "refresh_token", "id_token"]) {
      const token = body?.[key];
      if (typeof token !== "string") continue;
      secrets.add(token);
      issuedAtMs.set(token, Date.now());
    }
  });
  // It names no interval, and a test would wait for five seconds each time.
  provider.on("device_authorization.success", (_context: TokenContext, body: Record<string, unknown>) => {
    body.interval = 1;
    secrets.add(String(body.device_code));
  });
  provider.on("grant.error", (_context: TokenContext, error: Error) => refusals.push(error.message));
  provider.on("grant.revoked", () => {
    revoked += 1;
  });
  const answer = provider.callback();
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (options.before?.(request, response)) return;
    const answered = request.url?.startsWith("/interaction/")
      ? agree(provider, request, response)
      : answer(request, response);
    answered.catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  const { tokenMs = HOUR_MS } = options;
  const find = async (token: string) =>
    (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
  return {
    issuer,
    provider,
    grants,
    refusals,
    get revoked() {
      return revoked;
    },
    secrets,
    check: async (token, resource) => {
      if (token === undefined) return undefined;
      const found = await find(token);
      // The server counts in seconds, and a test in milliseconds.
      if (!found?.isValid || (issuedAtMs.get(token) ?? 0) + tokenMs <= Date.now()) return undefined;
      if (![found.aud ?? []].flat().includes(resource)) return undefined;
      return (found.scope ?? "").split(" ");
    },
    boundTo: async (token) => (await find(token))?.jkt,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
