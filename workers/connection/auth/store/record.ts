/**
 * The text of a stored sign-in, and of `tokens.json`, which a person or another program wrote. Reading is tolerant: unknown
 * keys are left out, and a value of the wrong type, length or characters counts as absent. Pure.
 */
import { createPrivateKey } from "node:crypto";
import { asList, isObject } from "../../../../src/shared/protocol/values.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { known } from "../../../shared/json.ts";
import type { ClientAuthMethod, ClientRecord, DpopKey, GivenTokens, SignInRecord } from "../model/model.ts";
import type { Item } from "./system/system.ts";

const TOKEN_CHARS = 16 * 1024;
const TEXT_CHARS = 8 * 1024;
/** The latest time that a Date can hold, in milliseconds. */
const LATEST_MS = 8.64e15;
/** A smaller number counts seconds: as milliseconds it would be a time before March 1973. */
const LEAST_MS = 1e11;

/** The value of a JSON text, also behind a byte-order mark; undefined if the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(withoutBom(text));
  } catch {
    // The message of the error quotes the text, which holds secrets.
    return undefined;
  }
}

/** Printable ASCII without spaces, which every token of RFC 6750, section 2.1, is. */
export const tokenOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.length <= TOKEN_CHARS && /^[!-~]+$/.test(value) ? value : undefined;

/** Printable ASCII, which every refresh token of RFC 6749, appendix A.17, is. */
export const refreshTokenOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.length <= TOKEN_CHARS && /^[ -~]+$/.test(value) ? value : undefined;

/** A text in one line, with at least one character. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.length <= TEXT_CHARS && /^\P{Cc}+$/u.test(value) ? value : undefined;

/** An http or https URL as it is written. */
export function webUrlOf(value: unknown): string | undefined {
  const text = textOf(value);
  return text !== undefined && /^https?:\/\/\S+$/i.test(text) && URL.canParse(text) ? text : undefined;
}

/** Milliseconds since the epoch. */
export const timeOf = (value: unknown): number | undefined =>
  typeof value === "number" && value >= 0 && value <= LATEST_MS ? value : undefined;

/** A number, or a text with one, as some programs write it. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{1,16}(\.\d+)?$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** Milliseconds since the epoch, of a time in seconds or in milliseconds. */
function instantOf(value: unknown): number | undefined {
  const number = numberOf(value);
  return timeOf(number !== undefined && number < LEAST_MS ? number * 1_000 : number);
}

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
    ...known({ secret }),
    // RFC 7591, section 2: the default for a client with a secret.
    method: oneOf(METHODS, value.method) ?? (secret === undefined ? "none" : "client_secret_basic"),
    kind: oneOf(KINDS, value.kind) ?? "dynamic",
    ...known({
      redirectUris: urisOf(value.redirectUris),
      secretExpiresAt: timeOf(value.secretExpiresAt),
      registeredAt: timeOf(value.registeredAt),
    }),
  };
}

function refreshingOf(value: unknown): { at: number; pid: number } | undefined {
  if (!isObject(value)) return undefined;
  const [at, pid] = [timeOf(value.at), timeOf(value.pid)];
  return at === undefined || pid === undefined ? undefined : { at, pid };
}

/** As `randomUUID` writes it. */
const idOf = (value: unknown): string | undefined =>
  typeof value === "string" && /^[0-9a-f-]{36}$/.test(value) ? value : undefined;

/** 32 octets, which each part of a key of P-256 has (RFC 7518, sections 6.2.1 and 6.2.2). */
const keyPartOf = (value: unknown): string | undefined =>
  typeof value === "string" && /^[\w-]{43}$/.test(value) ? value : undefined;

/** Undefined for all that is no key. */
function dpopKeyOf(value: unknown): DpopKey | undefined {
  if (!isObject(value)) return undefined;
  const [x, y, d] = [value.x, value.y, value.d].map(keyPartOf);
  if (x === undefined || y === undefined || d === undefined) return undefined;
  const key: DpopKey = { kty: "EC", crv: "P-256", x, y, d };
  try {
    createPrivateKey({ key: { ...key }, format: "jwk" });
    return key;
  } catch {
    return undefined;
  }
}

/** Never throws. The answer may be the sign-in of another server: the caller compares. */
export function parseRecord(text: string): Parsed<SignInRecord> {
  const raw = jsonOf(text);
  if (!isObject(raw)) return { what: "it is not a JSON object" };
  const { version } = raw;
  if (version !== 1 && version !== 2) return { what: "its version is unknown" };
  const dpopKey = version === 2 ? dpopKeyOf(raw.dpopKey) : undefined;
  if (version === 2 && dpopKey === undefined) return { what: "it has no key to which its tokens are bound" };
  const { server, url } = raw;
  const [issuer, tokenEndpoint] = [webUrlOf(raw.issuer), webUrlOf(raw.tokenEndpoint)];
  const client = clientOf(raw.client);
  if (typeof server !== "string" || typeof url !== "string")
    return { what: "it does not say which server it is for" };
  if (issuer === undefined || tokenEndpoint === undefined)
    return { what: "it does not name its authorization server" };
  if (client === undefined) return { what: "it does not name its client" };
  const value: SignInRecord = {
    version,
    ...known({ id: idOf(raw.id) }),
    server,
    url,
    issuer,
    ...known({
      acceptedIssuer: webUrlOf(raw.acceptedIssuer),
      resource: textOf(raw.resource),
    }),
    tokenEndpoint,
    ...known({ revocationEndpoint: webUrlOf(raw.revocationEndpoint) }),
    client,
    ...known({
      access_token: tokenOf(raw.access_token),
      token_type: tokenOf(raw.token_type),
      refresh_token: refreshTokenOf(raw.refresh_token),
      expiresAt: timeOf(raw.expiresAt),
      requestedScope: textOf(raw.requestedScope),
      scope: textOf(raw.scope),
      obtainedAt: timeOf(raw.obtainedAt),
      refreshing: refreshingOf(raw.refreshing),
      dpopKey,
    }),
  };
  return { value };
}

export const formatRecord = (record: SignInRecord): string => `${JSON.stringify(record, null, 2)}\n`;

/** What the file of a sign-in says: the sign-in itself, or where it is in the system's store. */
export interface Stored {
  record?: SignInRecord;
  item?: Item;
  /** Items that were replaced, or that were announced before they were written: nobody needs them. */
  remove: readonly Item[];
}

/** The version of a file that only says where the sign-in is. */
const ELSEWHERE = 3;
/** A sign-in of 64 KiB has 35 parts where a part is shortest. */
const PARTS = 64;
/** A store that removes nothing keeps what is beyond. */
const REMOVED_LATER = 20;

function itemOf(value: unknown): Item | undefined {
  if (!isObject(value)) return undefined;
  const { item, parts } = value;
  // The name becomes an argument of a program.
  if (typeof item !== "string" || !/^[0-9a-f]{32}$/.test(item)) return undefined;
  return typeof parts === "number" && Number.isInteger(parts) && parts >= 1 && parts <= PARTS
    ? { item, parts }
    : undefined;
}

/** Never throws. `owner`: the server and its url, which the text must name. */
export function parseStored(text: string, owner: Pick<SignInRecord, "server" | "url">): Parsed<Stored> {
  const raw = jsonOf(text);
  const remove = isObject(raw) ? asList(raw.remove).slice(0, REMOVED_LATER) : [];
  const shared = { remove: remove.map(itemOf).filter((item) => item !== undefined) };
  const isPointer = isObject(raw) && raw.version === ELSEWHERE && raw.store === "system";
  if (isPointer && raw.server === owner.server && raw.url === owner.url)
    return { value: { ...shared, ...known({ item: itemOf(raw) }) } };
  const parsed = isPointer ? { what: OTHERS } : parseOwn(text, owner);
  return "what" in parsed ? parsed : { value: { ...shared, record: parsed.value } };
}

const OTHERS = "it is the sign-in of another server or url";

/** As `parseRecord`, for one server and url. */
export function parseOwn(text: string, owner: Pick<SignInRecord, "server" | "url">): Parsed<SignInRecord> {
  const parsed = parseRecord(text);
  const isOurs = "what" in parsed || (parsed.value.server === owner.server && parsed.value.url === owner.url);
  return isOurs ? parsed : { what: OTHERS };
}

export function formatStored(
  { record, item, remove }: Stored,
  { server, url }: Pick<SignInRecord, "server" | "url">,
): string {
  const later = remove.length === 0 ? {} : { remove: remove.slice(-REMOVED_LATER) };
  const content = record ?? { version: ELSEWHERE, server, url, store: "system", ...item };
  return `${JSON.stringify({ ...content, ...later }, null, 2)}\n`;
}

export const hasTokens = ({ access_token, refresh_token }: SignInRecord): boolean =>
  access_token !== undefined || refresh_token !== undefined;

/** RFC 6750, section 1.2. */
const USUAL_TYPE = "Bearer";

/** The end of the token's life: as a time, else relative to the file's own time. */
function endOf(raw: Record<string, unknown>, modifiedMs: number): number | undefined {
  const at = instantOf(raw.expiresAt) ?? instantOf(raw.expires_at);
  if (at !== undefined) return at;
  const seconds = numberOf(raw.expires_in);
  return seconds === undefined ? undefined : timeOf(modifiedMs + Math.max(0, seconds) * 1_000);
}

/**
 * Never throws. `modifiedMs`: when the file was changed, in milliseconds since the epoch. A file may name the `url` that
 * its tokens are for; then they are for no other.
 */
export function parseGiven(
  text: string,
  { modifiedMs, url }: { modifiedMs: number; url: string },
): Parsed<GivenTokens> {
  const raw = jsonOf(text);
  if (!isObject(raw)) return { what: "it is not a JSON object" };
  if (typeof raw.url === "string" && raw.url !== url) return { what: "its url is not that of the server" };
  const type = tokenOf(raw.token_type) ?? USUAL_TYPE;
  if (type.toLowerCase() === "dpop")
    return { what: "its token is bound to a key, which the file does not hold" };
  const access = tokenOf(raw.access_token);
  if (access === undefined) return { what: "it has no access_token that a header can hold" };
  const value: GivenTokens = {
    access_token: access,
    token_type: type,
    ...known({
      refresh_token: refreshTokenOf(raw.refresh_token),
      expiresAt: endOf(raw, modifiedMs),
    }),
  };
  return { value };
}

/** `path`: of the file that does not take the sign-in, or `SYSTEM_STORE`. */
export interface Unwritten {
  path: string;
  what: string;
}

/** The sign-in while this process holds its lock. */
export interface HeldSignIn {
  /** As it is stored now. */
  readonly record: SignInRecord | undefined;
  /**
   * Writes the record before it settles. If the disk takes nothing, the record is kept in memory for this process and
   * one warning is given: a rotated token must not be lost.
   */
  write(record: SignInRecord): Promise<void>;
  /** Answers why it cannot be stored; then nothing has changed. */
  tryToWrite(record: SignInRecord): Promise<Unwritten | undefined>;
  /**
   * Removes the sign-in, its file, and the server's folder if it is empty then. Throws `SignInProblem` "system-store" if the
   * system's store does not remove it; then nothing has changed.
   */
  forget(): Promise<void>;
}
