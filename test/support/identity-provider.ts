/**
 * Owns: a company on loopback: two servers, and the identity provider that their authorization servers trust: an OpenID provider whose ID tokens it exchanges for assertions for
 * other authorization servers (ID-JAG; Enterprise-Managed Authorization of MCP, section 4). `policy` makes it refuse or err.
 */
import { type AssertionIssuer, assertionIssuer, type Claims } from "./assertions.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./authorization-server.ts";
import { onCleanup } from "./cleanup.ts";
import { type ProtectedServer, startProtectedServer } from "./protected-server.ts";

const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const JAG_TYPE = "oauth-id-jag+jwt";
const USER = "user-7";

/** May be changed at any time. */
export interface Policy {
  /** Why an exchange is refused. */
  refuses?: (form: URLSearchParams) => [error: string, why: string] | undefined;
  /** Changes the claims of an ID-JAG. */
  jag?: Claims;
  /** `typ` of an ID-JAG. */
  jagType?: string;
  /** Changes the answer to an exchange. */
  answer?: Record<string, unknown>;
  /** Changes the claims of an ID token; false: none is sent. */
  identity?: Claims | false;
}

class IdentityProvider {
  readonly server: AuthorizationServer;
  readonly issues: AssertionIssuer;
  policy: Policy = {};
  /** Issuer of an authorization server -> the id that the client has there. */
  readonly clients = new Map<string, string>();

  constructor(server: AuthorizationServer, clientId: string) {
    this.server = server;
    this.issues = assertionIssuer(server.issuer);
    server.book.addClient({ id: clientId });
    server.behaviour = {
      ...server.behaviour,
      wellKnown: "openid",
      tokens: (answer, { scope }) => {
        const { identity } = this.policy;
        const isWanted = identity !== false && scope?.split(" ").includes("openid");
        if (!isWanted) return answer;
        return { ...answer, id_token: this.issues.issue(clientId, { sub: USER, ...identity }) };
      },
      exchange: (form) => this.#exchange(form, clientId),
    };
  }

  /** Every secret that was issued or sent. */
  get secrets(): string[] {
    return [...this.server.book.secrets, ...this.issues.secrets];
  }

  /** What an authorization server checks of an ID-JAG (section 5.1); a text says why it is refused. */
  check(jag: string, aud: string, clientId: string | undefined): Claims | string {
    const claims = this.issues.check(jag, aud, JAG_TYPE);
    if (typeof claims === "string") return claims;
    return claims.client_id === clientId ? claims : "The client is another one.";
  }

  #exchange(form: URLSearchParams, clientId: string): Record<string, unknown> | [string, string] {
    const wanted = [form.get("requested_token_type"), form.get("subject_token_type")].join();
    if (wanted !== [ID_JAG, ID_TOKEN].join()) return ["invalid_request", "The types are wrong."];
    const identity = this.issues.check(form.get("subject_token") ?? "", clientId);
    if (typeof identity === "string") return ["invalid_grant", identity];
    const refused = this.policy.refuses?.(form);
    if (refused) return refused;
    const [audience = "", resource] = ["audience", "resource"].map((key) => form.get(key) ?? undefined);
    const client = this.clients.get(audience);
    if (client === undefined || resource === undefined)
      return ["invalid_target", "Nobody knows that server."];
    const scope = form.get("scope") ?? undefined;
    const claims = {
      sub: identity.sub,
      resource,
      client_id: client,
      ...(scope && { scope }),
      ...this.policy.jag,
    };
    const access_token = this.issues.issue(audience, claims, this.policy.jagType ?? JAG_TYPE);
    return { access_token, issued_token_type: ID_JAG, token_type: "N_A", ...this.policy.answer };
  }
}

/** The servers of the company, by name. */
export const COMPANY_SERVERS = ["docs", "wiki"] as const;
type Name = (typeof COMPANY_SERVERS)[number];

/** An MCP server, and its authorization server, which trusts the identity provider. */
interface CompanyServer {
  trusted: AuthorizationServer;
  guarded: ProtectedServer;
}

export interface Company {
  idp: IdentityProvider;
  servers: Record<Name, CompanyServer>;
  /** What the user writes into mcp.json. */
  mcpServers: Record<Name, { url: string; oauth: Record<string, string> }>;
  settings: { identityProvider: Record<string, unknown> };
  /** Every token and assertion so far. The secrets of the clients, which stand in mcp.json, are not among them. */
  secrets(): string[];
}

const clientOf = (name: Name): string => `pi-at-${name}`;
const secretOf = (name: Name): string => `5ecret-7f3a-${name.length}`;

async function startServer(idp: IdentityProvider, name: Name): Promise<CompanyServer> {
  const id = clientOf(name);
  const trusted = await startAuthorizationServer({
    assertions: (jag, aud, client) => idp.check(jag, aud, client?.id),
  });
  onCleanup(() => trusted.close());
  trusted.book.addClient({ id, secret: secretOf(name) });
  idp.clients.set(trusted.issuer, id);
  const guarded = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
  });
  onCleanup(() => guarded.close());
  return { trusted, guarded };
}

/** They end with the test. */
export async function startCompany(): Promise<Company> {
  const clientId = "pi-at-the-company";
  const idp = new IdentityProvider(await startAuthorizationServer(), clientId);
  onCleanup(() => idp.server.close());
  const servers = { docs: await startServer(idp, "docs"), wiki: await startServer(idp, "wiki") };
  const entryOf = (name: Name) => ({
    url: servers[name].guarded.url,
    oauth: { grantType: "identity_provider", clientId: clientOf(name), clientSecret: secretOf(name) },
  });
  const written = COMPANY_SERVERS.map(secretOf);
  return {
    idp,
    servers,
    mcpServers: { docs: entryOf("docs"), wiki: entryOf("wiki") },
    settings: { identityProvider: { issuer: idp.server.issuer, clientId } },
    secrets: () =>
      [idp, ...COMPANY_SERVERS.map((name) => servers[name].trusted.book)]
        .flatMap((one) => [...one.secrets])
        .filter((secret) => !written.includes(secret)),
  };
}
