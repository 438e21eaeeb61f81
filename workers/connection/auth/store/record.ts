/**
 * The text of a stored sign-in. Reading is tolerant: unknown keys are left out, and a value of the wrong shape counts as
 * absent. Without server, url, issuer, token endpoint and the client's id nothing in the text can be used. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { ClientAuthMethod, ClientRecord, SignInRecord } from "../model/model.ts";
import { jsonOf, optional, refreshTokenOf, textOf, timeOf, tokenOf, webUrlOf } from "./fields.ts";

const VERSION = 1;
const REDIRECT_URIS = 20;
const METHODS: readonly ClientAuthMethod[] = [
  "none",
  "client_secret_post",
  "client_secret_basic",
  "private_key_jwt",
];
const KINDS: readonly ClientRecord["kind"][] = ["configured", "metadata-document", "dynamic"];

/** `what`: why the text cannot be used, in words without anything of the text. */
export type Parsed<T> = { value: T } | { what: string };

const oneOf = <T extends string>(values: readonly T[], value: unknown): T | undefined =>
  values.find((one) => one === value);

/** Redirect URIs may have a scheme of their own (RFC 8252, section 7.1). */
function urisOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const uris = value.slice(0, REDIRECT_URIS).flatMap((uri: unknown) => textOf(uri) ?? []);
  return uris.length === 0 ? undefined : uris;
}

function clientOf(value: unknown): ClientRecord | undefined {
  if (!isObject(value)) return undefined;
  const id = textOf(value.id);
  if (id === undefined) return undefined;
  const secret = textOf(value.secret);
  return {
    id,
    ...optional("secret", secret),
    // RFC 7591, section 2: the default for a client with a secret.
    method: oneOf(METHODS, value.method) ?? (secret === undefined ? "none" : "client_secret_basic"),
    kind: oneOf(KINDS, value.kind) ?? "dynamic",
    ...optional("redirectUris", urisOf(value.redirectUris)),
    ...optional("secretExpiresAt", timeOf(value.secretExpiresAt)),
    ...optional("registeredAt", timeOf(value.registeredAt)),
  };
}

function refreshingOf(value: unknown): { at: number; pid: number } | undefined {
  if (!isObject(value)) return undefined;
  const [at, pid] = [timeOf(value.at), timeOf(value.pid)];
  return at === undefined || pid === undefined ? undefined : { at, pid };
}

/** Never throws. The answer may be the sign-in of another server: the caller compares. */
export function parseRecord(text: string): Parsed<SignInRecord> {
  const raw = jsonOf(text);
  if (!isObject(raw)) return { what: "it is not a JSON object" };
  if (raw.version !== VERSION) return { what: "its version is unknown" };
  const { server, url } = raw;
  const [issuer, tokenEndpoint] = [webUrlOf(raw.issuer), webUrlOf(raw.tokenEndpoint)];
  const client = clientOf(raw.client);
  if (typeof server !== "string" || typeof url !== "string")
    return { what: "it does not say which server it is for" };
  if (issuer === undefined || tokenEndpoint === undefined)
    return { what: "it does not name its authorization server" };
  if (client === undefined) return { what: "it does not name its client" };
  const value: SignInRecord = {
    version: VERSION,
    server,
    url,
    issuer,
    ...optional("acceptedIssuer", webUrlOf(raw.acceptedIssuer)),
    ...optional("resource", textOf(raw.resource)),
    tokenEndpoint,
    ...optional("revocationEndpoint", webUrlOf(raw.revocationEndpoint)),
    client,
    ...optional("access_token", tokenOf(raw.access_token)),
    ...optional("token_type", tokenOf(raw.token_type)),
    ...optional("refresh_token", refreshTokenOf(raw.refresh_token)),
    ...optional("expiresAt", timeOf(raw.expiresAt)),
    ...optional("requestedScope", textOf(raw.requestedScope)),
    ...optional("scope", textOf(raw.scope)),
    ...optional("obtainedAt", timeOf(raw.obtainedAt)),
    ...optional("refreshing", refreshingOf(raw.refreshing)),
  };
  return { value };
}

export const formatRecord = (record: SignInRecord): string => `${JSON.stringify(record, null, 2)}\n`;

export const hasTokens = ({ access_token, refresh_token }: SignInRecord): boolean =>
  access_token !== undefined || refresh_token !== undefined;
