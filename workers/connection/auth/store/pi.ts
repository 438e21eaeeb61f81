/**
 * Pi's own sign-ins, as Pi 1.5 writes them. Owns: finding one in `<agentDir>/mcp-auth.json`, and moving it out under Pi's
 * locks. It is moved and never copied: two programs that renew with one refresh token make the authorization server end the
 * sign-in.
 */
import { createHash } from "node:crypto";
import { lstat, mkdir, realpath, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { asList, isObject } from "../../../../src/shared/protocol/values.ts";
import { type FileSystem, reasonOf, writeFileAtomic } from "../../../shared/files/file-system.ts";
import { codeOf, PRIVATE_FOLDER, readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import { known } from "../../../shared/json.ts";
import {
  type ClientAuthMethod,
  type ClientRecord,
  SignInProblem,
  type SignInRecord,
} from "../model/model.ts";
import { type ConfiguredClient, ownId, refusal, type StoreOptions } from "./file.ts";
import {
  type HeldSignIn,
  jsonOf,
  numberOf,
  parseRecord,
  textOf,
  timeOf,
  tokenOf,
  webUrlOf,
} from "./record.ts";

export interface PiQuery extends Pick<StoreOptions, "server" | "url"> {
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
      ...known({ secret }),
      method: methodOf(information, secret !== undefined, offered),
      kind: "dynamic",
      ...known({
        redirectUris: uris.length === 0 ? undefined : (uris as string[]),
        secretExpiresAt: inMs(information.client_secret_expires_at),
        registeredAt: inMs(information.client_id_issued_at),
      }),
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

interface PiEntry {
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

interface PiLockTimes {
  /** A holder that has not touched its folder for so long is dead. Pi decides this time. */
  staleMs: number;
  waitMs: number;
}

const RETRY_MS = 20;
/** Windows answers EPERM for a folder that is being removed. */
const HELD = process.platform === "win32" ? ["EEXIST", "EPERM"] : ["EEXIST"];

/** Identifies the folder of one holder at one time; undefined if there is none. */
async function holderOf(lock: string): Promise<{ id: string; touchedMs: number } | undefined> {
  try {
    const { dev, ino, mtimeMs } = await stat(lock);
    return { id: `${dev}:${ino}:${mtimeMs}`, touchedMs: mtimeMs };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes the folder. False if there is one. */
async function make(lock: string): Promise<boolean> {
  try {
    await mkdir(lock, { mode: PRIVATE_FOLDER });
    return true;
  } catch (error) {
    if (HELD.includes(codeOf(error) ?? "")) return false;
    throw error;
  }
}

async function remove(lock: string): Promise<void> {
  await rmdir(lock).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}

async function tryTake(lock: string, staleMs: number): Promise<boolean> {
  if (await make(lock)) return true;
  const holder = await holderOf(lock);
  if (holder !== undefined && holder.touchedMs >= Date.now() - staleMs) return false;
  if (holder !== undefined) await remove(lock);
  return make(lock);
}

/**
 * Runs `task` while this process has the lock. Throws `SignInProblem` "lock-busy", "cancelled" or "store-unwritable", and
 * what `task` throws. `holds`: whether nobody has taken the lock over.
 */
async function withPiLock<T>(
  lock: string,
  { staleMs, waitMs, signal }: PiLockTimes & { signal: AbortSignal },
  task: (holds: () => Promise<boolean>) => Promise<T>,
): Promise<T> {
  const untilMs = performance.now() + waitMs;
  const attempt = async (): Promise<boolean> => {
    if (signal.aborted) throw new SignInProblem("cancelled");
    return tryTake(lock, staleMs).catch((error: unknown) => {
      throw new SignInProblem("store-unwritable", { path: lock, what: reasonOf(error) }, error);
    });
  };
  while (!(await attempt())) {
    if (performance.now() > untilMs) throw new SignInProblem("lock-busy", { path: lock });
    await sleep(RETRY_MS);
  }
  const mine = await holderOf(lock);
  const holds = async (): Promise<boolean> => mine !== undefined && (await holderOf(lock))?.id === mine.id;
  try {
    return await task(holds);
  } finally {
    if (await holds()) await remove(lock);
  }
}

/** Pi keeps what discovery found with each sign-in, some 10 KB. */
const FILE_BYTES = 4 * 1024 * 1024;

/** The first number of each pair is Pi's. */
export const PI_TIMES = {
  /** Of the whole file. Pi holds this lock for moments. */
  file: { staleMs: 10_000, waitMs: 12_000 },
  /** Of one sign-in, while Pi renews it. */
  refresh: { staleMs: 20_000, waitMs: 25_000 },
};

export function createPiFile({
  agentDir,
  server,
  url,
  client,
  files,
  piTimes,
  onNote,
}: StoreOptions & { files: FileSystem; piTimes: typeof PI_TIMES }) {
  const path = join(agentDir, "mcp-auth.json");
  const [key] = piKeys({ server, url });

  /** A link is followed as Pi follows it: the folder is the user's own. Undefined: there is no file, or no entry. */
  const load = async (): Promise<(PiEntry & { file: string }) | undefined> => {
    try {
      const file = await realpath(path);
      const refused = refusal(await lstat(file, { bigint: true }), "file", ownId());
      const read = refused === undefined ? await readRegularText(file, FILE_BYTES) : undefined;
      if (read?.kind !== "text") throw new Error(refused ?? (read && whyUnread(read)));
      const entry = findEntry(read.text, { server, url, client: await client?.(), nowMs: Date.now() });
      return entry && { ...entry, file };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") onNote(`${path} is not used: ${reasonOf(error)}.`);
      return undefined;
    }
  };

  const move = async (held: HeldSignIn, holds: () => Promise<boolean>): Promise<SignInRecord | undefined> => {
    const entry = await load();
    if (entry === undefined) return undefined;
    const before = held.record;
    const why = await held.tryToWrite(entry.record);
    if (why !== undefined) throw new SignInProblem("store-unwritable", { ...why });
    try {
      await writeFileAtomic(entry.file, entry.rest, {
        files,
        beforeReplace: async () => {
          if (!(await holds())) throw new Error("Pi has it now");
        },
      });
    } catch (error) {
      await (before === undefined ? held.forget() : held.write(before));
      throw new SignInProblem("store-unwritable", { path, what: reasonOf(error) }, error);
    }
    return held.record;
  };

  return {
    find: async () => (await load())?.record,
    /** Moves the sign-in to `held`. Undefined: it is gone. Throws `SignInProblem`; then it is still where it was. */
    moveTo: async (held: HeldSignIn, signal: AbortSignal): Promise<SignInRecord | undefined> => {
      const found = await load();
      if (found === undefined || key === undefined) return undefined;
      const refreshLock = join(agentDir, refreshLockOf(key));
      return withPiLock(refreshLock, { ...piTimes.refresh, signal }, (holdsSignIn) =>
        withPiLock(`${found.file}.lock`, { ...piTimes.file, signal }, (holdsFile) =>
          move(held, async () => (await holdsSignIn()) && (await holdsFile())),
        ),
      );
    },
  };
}
