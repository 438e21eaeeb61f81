/**
 * What Pi's `mcp-auth.json` says about a server, as Pi 1.5 writes the file: an object by `mcp__<name>|<url>`, in older
 * versions by the url alone, with `serverUrl`, `clientInformation`, `tokens`, `tokensExpireAt` and `discovery`. Pure.
 */
import { createHash } from "node:crypto";
import { asList, isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { ClientAuthMethod, ClientRecord, SignInRecord } from "../model/model.ts";
import { jsonOf, numberOf, optional, textOf, timeOf, tokenOf, webUrlOf } from "./fields.ts";
import { parseRecord } from "./record.ts";

export interface ConfiguredClient {
  id: string;
  hasSecret: boolean;
}

export interface PiQuery {
  server: string;
  url: string;
  /** Pi writes a configured client into no file, and goes by it whatever the file says. */
  client?: ConfiguredClient | undefined;
  nowMs: number;
}

type Json = Record<string, unknown>;

const objectOf = (value: unknown): Json => (isObject(value) ? value : {});
/** The newer key of Pi's file, then the older one; none if the url is none. */
export function piKeys({ server, url }: { server: string; url: string }): string[] {
  if (!URL.canParse(url)) return [];
  const { href } = new URL(url);
  return [`mcp__${server.replaceAll("-", "_")}|${href}`, href];
}

/** The folder that is Pi's lock while it refreshes the tokens under the key. */
export const refreshLockOf = (key: string): string =>
  `mcp-auth-refresh-${createHash("sha256").update(key).digest("hex").slice(0, 16)}.lock`;

/** Pi's choice among the methods of the token endpoint: the registered one, else Basic, POST, none by what is offered. */
function methodOf(information: Json, hasSecret: boolean, offered: readonly unknown[]): ClientAuthMethod {
  const methods: readonly ClientAuthMethod[] = ["client_secret_basic", "client_secret_post", "none"];
  const fits = (method: ClientAuthMethod): boolean => offered.length === 0 || offered.includes(method);
  const registered = methods.find((method) => method === information.token_endpoint_auth_method);
  if (registered !== undefined && fits(registered)) return registered;
  if (!hasSecret) return "none";
  return methods.find((method) => method !== "none" && fits(method)) ?? "client_secret_post";
}

/**
 * The address of the client document with which Pi signs in where it finds no registration: one for all servers if the
 * authorization server names itself in its answers (RFC 9207), otherwise one for each server.
 */
function documentIdOf(url: string, metadata: Json): string | undefined {
  const takesPublic = asList(metadata.token_endpoint_auth_methods_supported).includes("none");
  if (metadata.client_id_metadata_document_supported !== true || !takesPublic) return undefined;
  if (metadata.authorization_response_iss_parameter_supported === true)
    return "https://pi.dev/oauth/client.json";
  const server = new URL(url);
  server.hash = "";
  const id = createHash("sha256").update(server.href).digest().subarray(0, 9).toString("base64url");
  return `https://pi.dev/oauth/${id}/client.json`;
}

const inMs = (seconds: unknown): number | undefined => {
  const number = numberOf(seconds);
  return number === undefined || number === 0 ? undefined : timeOf(number * 1_000);
};

function clientOf(information: Json, metadata: Json, query: PiQuery): ClientRecord | undefined {
  const offered = asList(metadata.token_endpoint_auth_methods_supported);
  const registered = textOf(information.client_id);
  if (query.client !== undefined) {
    const { id, hasSecret } = query.client;
    return { id, method: methodOf({}, hasSecret, offered), kind: "configured" };
  }
  if (registered !== undefined) {
    const secret = textOf(information.client_secret);
    const uris = asList(information.redirect_uris);
    return {
      id: registered,
      ...optional("secret", secret),
      method: methodOf(information, secret !== undefined, offered),
      kind: "dynamic",
      ...optional("redirectUris", uris.length === 0 ? undefined : (uris as string[])),
      ...optional("secretExpiresAt", inMs(information.client_secret_expires_at)),
      ...optional("registeredAt", inMs(information.client_id_issued_at)),
    };
  }
  const document = documentIdOf(query.url, metadata);
  return document === undefined ? undefined : { id: document, method: "none", kind: "metadata-document" };
}

const withoutSlash = (text: string): string => text.replace(/\/$/, "");

/** The authorization server and its token endpoint; undefined if the two names that Pi keeps of it differ. */
function issuerOf(discovery: Json): { issuer: string; tokenEndpoint: string } | undefined {
  const metadata = objectOf(discovery.authorizationServerMetadata);
  const found = webUrlOf(discovery.authorizationServerUrl);
  if (found === undefined) return undefined;
  const issuer = webUrlOf(metadata.issuer) ?? found;
  if (withoutSlash(issuer) !== withoutSlash(found)) return undefined;
  return { issuer, tokenEndpoint: webUrlOf(metadata.token_endpoint) ?? new URL("/token", found).href };
}

/** The sign-in in one entry of Pi's file; undefined if the entry has no tokens that can be used without a question. */
function recordOf(state: unknown, query: PiQuery): SignInRecord | undefined {
  if (!isObject(state) || state.serverUrl !== new URL(query.url).href) return undefined;
  const [tokens, discovery] = [objectOf(state.tokens), objectOf(state.discovery)];
  const metadata = objectOf(discovery.authorizationServerMetadata);
  const server = issuerOf(discovery);
  const client = clientOf(objectOf(state.clientInformation), metadata, query);
  const [access, refresh] = [tokenOf(tokens.access_token), tokenOf(tokens.refresh_token)];
  const expiresAt = timeOf(state.tokensExpireAt);
  const isAlive = access !== undefined && (expiresAt ?? Number.POSITIVE_INFINITY) > query.nowMs;
  if (server === undefined || client === undefined || !(isAlive || refresh !== undefined)) return undefined;
  const record = {
    version: 1,
    server: query.server,
    url: query.url,
    ...server,
    resource: objectOf(discovery.resourceMetadata).resource,
    revocationEndpoint: metadata.revocation_endpoint,
    client,
    access_token: access,
    token_type: tokens.token_type,
    refresh_token: refresh,
    expiresAt,
    scope: tokens.scope,
  };
  // What came from another program's file is bounded like our own file.
  const parsed = parseRecord(JSON.stringify(record));
  return "value" in parsed ? parsed.value : undefined;
}

export interface PiEntry {
  record: SignInRecord;
  /** The text of Pi's file without the entry, as Pi itself writes it. */
  rest: string;
}

/** The entry for the server in the text of Pi's file. Never throws. */
export function findEntry(text: string, query: PiQuery): PiEntry | undefined {
  const states = jsonOf(text);
  if (!isObject(states)) return undefined;
  const key = piKeys(query).find((one) => Object.hasOwn(states, one));
  const record = key === undefined ? undefined : recordOf(states[key], query);
  if (record === undefined) return undefined;
  const others = Object.entries(states).filter(([other]) => other !== key);
  return { record, rest: `${JSON.stringify(Object.fromEntries(others), null, 2)}\n` };
}
