/**
 * Owns: a tiny authorization server on loopback, the neighbours of the sign-in that talk to it, a store in memory, and a
 * browser that follows redirects.
 */
import { createHash, randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import type { SignInResult } from "../../../../../../src/shared/protocol/session.ts";
import { promisesIssuer } from "../../../../../../workers/connection/auth/discovery/discovery.ts";
import type {
  GrantContext,
  PendingAuthorization,
} from "../../../../../../workers/connection/auth/grants/ask.ts";
import type { clientFor } from "../../../../../../workers/connection/auth/grants/client.ts";
import {
  type ClientRecord,
  type Discovered,
  SignInProblem,
  type SignInRecord,
} from "../../../../../../workers/connection/auth/model/model.ts";
import {
  PARTS,
  type SignInParts,
  type SignInTarget,
} from "../../../../../../workers/connection/auth/sign-in/prepare.ts";
import { SignIns } from "../../../../../../workers/connection/auth/sign-in/sign-in.ts";
import type { SignInStore } from "../../../../../../workers/connection/auth/store/store.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { serve } from "../../../../../support/http-server.ts";

export interface TinyServer {
  origin: string;
  /** One line per request, for example `GET /authorize`. */
  asked: string[];
  /** Redirect URIs that were registered. */
  registered: string[];
  /** Every code, verifier and token. */
  secrets: string[];
  /** What it does differently. */
  odd: {
    /** Hosts that it refuses in a redirect URI. */
    refusedHost?: string;
    /** It answers `iss` in its redirect. */
    iss?: string;
    /** `error` in the place of the code. */
    error?: string;
    codeRefused?: boolean;
    /** The token endpoint answers after this. */
    tokenWait?: Promise<unknown>;
  };
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("base64url");

export async function tinyServer(odd: TinyServer["odd"] = {}): Promise<TinyServer> {
  const codes = new Map<string, { challenge: string; redirectUri: string }>();
  const made: TinyServer = { origin: "", asked: [], registered: [], secrets: [], odd };
  const secret = (): string => {
    const text = randomBytes(24).toString("hex");
    made.secrets.push(text);
    return text;
  };
  const { origin } = await serve(async ({ http, path, message }, response) => {
    const { pathname, searchParams: query } = new URL(path, "http://as.test");
    made.asked.push(`${http} ${pathname}`);
    const json = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    const sent = message as Record<string, string>;
    if (pathname === "/register") {
      const redirectUri = String(sent.redirect_uri);
      if (new URL(redirectUri).hostname === odd.refusedHost)
        return json(400, { error: "invalid_redirect_uri" });
      made.registered.push(redirectUri);
      return json(201, { client_id: `client-${made.registered.length}` });
    }
    if (pathname === "/authorize") {
      const back = new URL(query.get("redirect_uri") ?? "");
      const code = secret();
      codes.set(code, { challenge: query.get("code_challenge") ?? "", redirectUri: back.href });
      if (odd.error) back.searchParams.set("error", odd.error);
      else back.searchParams.set("code", code);
      back.searchParams.set("state", query.get("state") ?? "");
      if (odd.iss) back.searchParams.set("iss", odd.iss);
      response.writeHead(302, { location: back.href }).end();
      return;
    }
    await odd.tokenWait;
    const found = codes.get(String(sent.code));
    codes.delete(String(sent.code));
    made.secrets.push(String(sent.code_verifier));
    const isRight =
      found?.challenge === sha256(String(sent.code_verifier)) && found.redirectUri === sent.redirect_uri;
    if (!isRight || odd.codeRefused) return json(400, { error: "invalid_grant" });
    json(200, { access_token: secret(), token_type: "bearer", refresh_token: secret(), expires_in: 3600 });
  });
  made.origin = origin;
  return made;
}

const post = async (
  { requests }: GrantContext,
  url: string,
  body: object,
): Promise<Record<string, string>> => {
  const response = await requests.fetch(url, { method: "POST", body: JSON.stringify(body) });
  return (await response.json()) as Record<string, string>;
};

/** Grants in a few lines: just enough of the protocol for the tiny server. */
export function partsFor(server: TinyServer): Omit<SignInParts, "limits" | "openBrowser"> {
  const client: typeof clientFor = async ({ stored, reuse, redirectUri, discovered }, context) => {
    if (stored && reuse && stored.redirectUris?.includes(redirectUri)) return stored;
    const endpoint = String(discovered.metadata.registration_endpoint);
    const { client_id: id } = await post(context, endpoint, { redirect_uri: redirectUri });
    if (id === undefined) throw new SignInProblem("redirect-refused", { url: redirectUri });
    return { id, method: "none", kind: "dynamic", redirectUris: [redirectUri] };
  };
  return {
    discover: async ({ acceptedIssuer }) => ({
      metadata: {
        issuer: server.origin,
        authorization_endpoint: `${server.origin}/authorize`,
        token_endpoint: `${server.origin}/token`,
        registration_endpoint: `${server.origin}/register`,
        ...(server.odd.iss ? { authorization_response_iss_parameter_supported: true } : {}),
      },
      foundAt: `${server.origin}/.well-known/oauth-authorization-server`,
      ...(acceptedIssuer ? { acceptedIssuer } : {}),
    }),
    promisesIssuer,
    hasBrowser: async () => true,
    clientFor: client,
    chooseScope: ({ challenged, requested }) =>
      [requested, challenged].filter(Boolean).join(" ") || undefined,
    beginAuthorization: async ({ discovered, client, redirectUri, scope }) => {
      const [state, verifier] = [randomBytes(32), randomBytes(32)].map((bytes) =>
        bytes.toString("base64url"),
      );
      if (state === undefined || verifier === undefined) throw new Error("no random bytes");
      const url = new URL(String(discovered.metadata.authorization_endpoint));
      url.search = String(
        new URLSearchParams({
          client_id: client.id,
          redirect_uri: redirectUri,
          state,
          code_challenge: sha256(verifier),
        }),
      );
      return { url: url.href, state, verifier, redirectUri, scope, client, discovered };
    },
    finishAuthorization: async ({ verifier, redirectUri, discovered }, answer, context) => {
      const parameters =
        "parameters" in answer ? answer.parameters : new URLSearchParams({ code: answer.bareCode });
      const { iss } = server.odd;
      if (iss !== undefined && iss !== server.origin) {
        const facts = { expected: server.origin, found: iss };
        throw new SignInProblem("response-issuer-wrong", facts);
      }
      if (parameters.has("error")) throw new SignInProblem("denied");
      const answered = await post(context, String(discovered.metadata.token_endpoint), {
        code: parameters.get("code"),
        code_verifier: verifier,
        redirect_uri: redirectUri,
      });
      const { access_token, refresh_token } = answered;
      if (access_token === undefined || refresh_token === undefined) throw new SignInProblem("code-refused");
      return { access_token, refresh_token, token_type: "bearer", expiresAt: 5_000_000_000_000 };
    },
  };
}

export interface MemoryStore extends SignInStore {
  record: SignInRecord | undefined;
  pi: SignInRecord | undefined;
  /** Fails the next write. */
  failure?: Error;
}

function memoryStore(record: SignInRecord | undefined, pi: SignInRecord | undefined): MemoryStore {
  const store: MemoryStore = {
    record,
    pi,
    read: async () => (store.record ? { record: store.record } : {}),
    locked: async (work) => {
      if (store.failure) throw store.failure;
      return work({
        record: store.record,
        write: async (written) => {
          store.record = written;
        },
        tryToWrite: async (written) => {
          store.record = written;
          return undefined;
        },
        forget: async () => {
          store.record = undefined;
        },
      });
    },
    check: async () => undefined,
    writeKept: async () => undefined,
    move: async () => ({ how: "there" }),
    findInPi: async () => store.pi,
    takeFromPi: async () => {
      store.record = store.pi;
      store.pi = undefined;
      return store.record;
    },
  };
  return store;
}

export interface World {
  server: TinyServer;
  signIns: SignIns;
  /** Each result with its sign-in's id, oldest first. */
  ends: { id: string; server: string; result: SignInResult }[];
  /** Everything that was written: log lines and notes. */
  written: string[];
  opened: string[];
  /** A change counts for what begins afterwards. */
  limits: SignInParts["limits"];
  target(name: string, more?: TargetParts): SignInTarget & { store: MemoryStore; secrets: string[] };
  /** Settles with the n-th end. */
  ended(nth?: number): Promise<SignInResult>;
}

export interface TargetParts extends Partial<Omit<SignInTarget, "store" | "plan">> {
  plan?: Partial<OAuthPlan>;
  record?: SignInRecord;
  pi?: SignInRecord;
}

/** A redacting function as the worker has it: secrets become marks. */
const redacting = (secrets: readonly string[]) => (text: string) =>
  secrets.reduce((shown, secret) => shown.replaceAll(secret, "[redacted]"), text);

export async function world(
  odd: TinyServer["odd"] = {},
  parts: Partial<Omit<SignInParts, "limits">> & { limits?: Partial<SignInParts["limits"]> } = {},
): Promise<World> {
  const server = await tinyServer(odd);
  const ends: World["ends"] = [];
  const written: string[] = [];
  const opened: string[] = [];
  const waiting: (() => void)[] = [];
  const limits = { ...PARTS.limits, ...parts.limits };
  const signIns = new SignIns(
    {
      onEnd: (end) => {
        ends.push(end);
        for (const look of waiting) look();
      },
      log: { info: (line) => written.push(line), warn: (line) => written.push(line) },
      env: { BROWSER: "none" },
      platform: "linux",
    },
    {
      ...partsFor(server),
      openBrowser: async (url) => {
        opened.push(url);
        return "started";
      },
      ...parts,
      limits,
    },
  );
  onTestFinished(() => signIns.close());
  return {
    server,
    signIns,
    ends,
    written,
    opened,
    limits,
    target: (name, { plan, record, pi, ...more } = {}) => {
      const secrets: string[] = [];
      return {
        server: name,
        url: new URL(`https://${name}.test/mcp`),
        plan: { grantType: "authorization_code", clientRegistration: "auto", ...plan },
        requests: { fetch: (url, init) => fetch(url, init as RequestInit) },
        onNote: (note) => written.push(note),
        challenge: undefined,
        isOwnPlan: true,
        renew: async () => false,
        onSecret: (secret) => secrets.push(secret),
        redact: redacting(secrets),
        signedIn: async () => 23,
        ...more,
        store: memoryStore(record, pi),
        secrets,
      };
    },
    ended: (nth = 1) =>
      new Promise((resolve) => {
        const look = (): void => {
          const end = ends[nth - 1];
          if (end) resolve(end.result);
        };
        waiting.push(look);
        look();
      }),
  };
}

/** Follows redirects from the address to the listener, as a browser does. Answers the last page. */
export async function browse(url: string): Promise<{ status: number; body: string }> {
  const response = await fetch(url);
  return { status: response.status, body: await response.text() };
}

/** The address to which the authorization server sends the browser, without going there. */
export async function lastAddress(url: string): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  return response.headers.get("location") ?? "";
}

export const discovered = (metadata: Partial<Discovered["metadata"]> = {}): Discovered => ({
  metadata: { issuer: "https://as.test", token_endpoint: "https://as.test/token", ...metadata },
  foundAt: "https://as.test/.well-known/oauth-authorization-server",
});

export const pendingWith = (more: Partial<PendingAuthorization> = {}): PendingAuthorization => ({
  url: "https://as.test/authorize",
  state: "s",
  verifier: "v",
  redirectUri: "http://127.0.0.1:1/callback",
  scope: undefined,
  client: { id: "c", method: "none", kind: "dynamic" },
  discovered: discovered(),
  ...more,
});

export const recordWith = (server: TinyServer, client: Partial<ClientRecord> = {}): SignInRecord => ({
  version: 1,
  server: "linear",
  url: "https://linear.test/mcp",
  issuer: server.origin,
  tokenEndpoint: `${server.origin}/token`,
  client: { id: "old-client", method: "none", kind: "dynamic", ...client },
  access_token: "old-access-token",
  token_type: "bearer",
  refresh_token: "old-refresh-token",
});
