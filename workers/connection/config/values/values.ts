/**
 * Owns: the values of one definition, with variables, `~/` and `!commands` filled in. That happens at each connect, and for
 * OAuth only when a sign-in or a machine's grant needs it; the values are kept nowhere. An error names server, key and
 * variable, never a value. No command outlives the work that needs it.
 */
import { X509Certificate } from "node:crypto";
import { basename, isAbsolute, resolve as resolvePath } from "node:path";
import { pathToFileURL } from "node:url";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isKeyAsVariable, variableText } from "../../../../src/shared/text/key-shape.ts";
import { advice } from "../../../shared/commands.ts";
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import { SAFE_FOR_TOKEN, UNSAFE_FOR_TOKEN } from "../entry/auth.ts";
import type { HttpTarget, ServerDefinition, SocketTarget, StdioTarget } from "../entry/definition.ts";
import { type Environment, fillPath, interpolate, isCommand } from "../entry/interpolate.ts";
import { isSafeUrl, type OAuthPlan, oauthFindings, scopesOf } from "../entry/oauth-keys.ts";
import { agreedEntries } from "../env-files/env-files.ts";
import { areAgreed } from "../env-files/scripts.ts";
import { NO_ANSWER } from "../files/sources.ts";
import { runCommand } from "./run-command.ts";

export interface ResolveOptions {
  env: Environment;
  home: string;
  /** The session's folder. Relative folders start here, and the commands in a project's file run here. */
  cwd: string;
  signal: AbortSignal;
  /** A `!command` has started, in a process group of its own. */
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** `clientMetadataUrl` of the settings, for a plan without a client of its own; absent or empty: none. */
  clientMetadataUrl?: string | undefined;
  /** `caFile` of the settings; absent or empty: none. */
  caFile?: string | undefined;
  /** Gets one line for the log if something was left out. */
  onNote?: (note: string) => void;
  platform?: NodeJS.Platform;
}

const badConfig = ({ name: server, file }: ServerDefinition, message: string, remedy: string): ThreadsError =>
  new ThreadsError("bad_config", `${server}: ${message}.`, { remedy, data: { server, file } });

/** The key as the file of the definition calls it: of the files of other programs, only Codex's can lead to this one. */
export const writtenKey = ({ origin }: Pick<ServerDefinition, "origin">, key: string): string =>
  key === "bearerTokenEnv" && origin === "import" ? "bearer_token_env_var" : key;

/** What helps if a variable is not set. Another program's file does not know our syntax, and need not be changed. */
export function unsetRemedy(
  { origin, file }: Pick<ServerDefinition, "origin" | "file">,
  name: string,
): string {
  if (isKeyAsVariable(name)) return `Write the name of the variable that holds the key in ${file}.`;
  const set = "Set it in the shell before Pi starts";
  return origin === "import" || origin === "extension"
    ? `${set}.`
    : `${set}, or write \${${name}:-default} in ${file}.`;
}

/** Fills in the values of one definition. `key`: the value's name in errors. */
class Resolver {
  readonly definition: ServerDefinition;
  readonly options: ResolveOptions;
  readonly #running = new Set<Promise<string>>();

  constructor(definition: ServerDefinition, options: ResolveOptions) {
    this.definition = definition;
    this.options = options;
  }

  /** Settles when no command runs any more. */
  ended(): Promise<unknown> {
    return Promise.allSettled(this.#running);
  }

  bad(message: string, remedy: string): ThreadsError {
    return badConfig(this.definition, message, remedy);
  }

  /** Variables only. */
  text(key: string, value: string): string {
    const { env, platform = process.platform } = this.options;
    return this.#filled(key, interpolate(value, env, platform));
  }

  /** Variables and a leading `~/`; `~~/` stands for a literal `~/`. */
  path(key: string, value: string): string {
    return this.#filled(key, fillPath(value, this.options));
  }

  /** Variables, or a whole `!command`; `!!` stands for a literal `!`. */
  async secret(key: string, value: string): Promise<string> {
    return isCommand(value) ? this.#output(key, value.slice(1)) : this.text(key, value.replace(/^!!/, "!"));
  }

  /** Variables, a leading `~/`, or a whole `!command`. */
  async value(key: string, value: string): Promise<string> {
    return value.startsWith("!") ? this.secret(key, value) : this.path(key, value);
  }

  /** Every value of a record. `under`: the key of the record. */
  async all(
    entries: Readonly<Record<string, string>>,
    under: string,
    resolve: "secret" | "value",
  ): Promise<Record<string, string>> {
    const resolved = Object.entries(entries).map(
      async ([key, value]) => [key, await this[resolve](`${under}.${key}`, value)] as const,
    );
    return Object.fromEntries(await Promise.all(resolved));
  }

  /**
   * The absolute path of a file that decides whom a server trusts or as whom the user signs in. A relative path starts in
   * the folder to which the definition belongs, which may decide that only for the servers that its own files define.
   */
  ownPath(key: string, path: string, definedByProject: boolean = this.definition.definedByProject): string {
    if (isAbsolute(path)) return path;
    if (definedByProject) return resolvePath(this.#folder, path);
    throw this.bad(`${key} is not an absolute path`, "Begin it with / or ~/.");
  }

  /** No process can get a NUL character, and Node's own error about it holds the value. */
  #withoutNul(key: string, resolved: string): string {
    if (!resolved.includes("\0")) return resolved;
    throw this.bad(`${key} holds a NUL character`, `Remove it in ${this.definition.file}.`);
  }

  #filled(key: string, { text, missing }: ReturnType<typeof interpolate>): string {
    if (missing.length === 0) return this.#withoutNul(key, text);
    throw this.bad(
      `${writtenKey(this.definition, key)} needs ${missing.map(variableText).join(" and ")}, which is not set in the environment`,
      unsetRemedy(this.definition, missing[0] ?? ""),
    );
  }

  /** The user has said yes to what a command and a relative path mean in this folder, whichever folder below it the session has. */
  get #folder(): string {
    return this.definition.base?.folder ?? this.options.cwd;
  }

  async #output(key: string, command: string): Promise<string> {
    if (command.trim() === "") {
      const remedy = 'Write the command behind it, or "!!" for a literal "!".';
      throw this.bad(`${key} has no command behind its "!"`, remedy);
    }
    const { name, definedByProject } = this.definition;
    const cwd = definedByProject ? this.#folder : this.options.cwd;
    const line = this.#withoutNul(key, command);
    const run = runCommand({
      ...this.options,
      cwd,
      command: line,
      label: `${name}: ${key}`,
      definedByProject,
    });
    this.#running.add(run);
    return this.#withoutNul(key, await run);
  }
}

/**
 * Runs `work` with a resolver. After the first failure nobody needs the output of the other commands: all of them have
 * ended when this settles.
 */
async function withResolver<T>(
  definition: ServerDefinition,
  options: ResolveOptions,
  work: (resolver: Resolver) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const resolver = new Resolver(definition, { ...options, signal });
  try {
    return await work(resolver);
  } finally {
    stop.abort();
    await resolver.ended();
  }
}

/** All certificates that a browser trusts take a quarter of this. */
const FILE_BYTES = 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
};

/** The certificates of a file, or why it cannot be used. `file`: an absolute path. Never throws. */
async function readCertificates(file: string): Promise<string[] | { reason: string }> {
  const read = await readRegularText(file, FILE_BYTES);
  if (read.kind === "unreadable") return { reason: `it cannot be read (${read.code})` };
  if (read.kind !== "text") return { reason: whyUnread(read) };
  const certificates = read.text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) return { reason: "it holds no certificate in PEM form" };
  const wrong = certificates.findIndex((pem) => !isCertificate(pem));
  return wrong === -1 ? certificates : { reason: `its certificate ${wrong + 1} is broken` };
}

/**
 * Further certificate authorities of a server: `caFile` of its entry and of the settings, which are the user's own, also for
 * a server of a project. The files are read at each connect, so that a renewed certificate counts. Undefined if neither
 * names a file.
 */
async function authoritiesOf({ caFile }: HttpTarget, resolver: Resolver): Promise<string[] | undefined> {
  const { definition, options } = resolver;
  const read = async (key: string, path: string, ofProject: boolean): Promise<string[]> => {
    const certificates = await readCertificates(resolver.ownPath(key, resolver.path(key, path), ofProject));
    if (Array.isArray(certificates)) return certificates;
    // The path as written, because no error may hold the value of a variable.
    const remedy = "Correct it, or put a file with PEM certificates there.";
    throw resolver.bad(`${key} ${path} cannot be used: ${certificates.reason}`, remedy);
  };
  if (!caFile && !options.caFile) return undefined;
  await checkAgreed(resolver, "its caFile");
  try {
    const found = await Promise.all([
      caFile ? read("caFile", caFile, definition.definedByProject) : [],
      options.caFile ? read("settings.caFile", options.caFile, false) : [],
    ]);
    return found.flat();
  } catch (error) {
    if (!(error instanceof ThreadsError)) throw error;
    const { code, message, remedy, data } = error;
    throw new ThreadsError(code, message, { remedy, data: { ...data, reason: "ca-file" } });
  }
}

async function oauthValue(resolver: Resolver, key: string, value: unknown): Promise<unknown> {
  const path = `oauth.${key}`;
  if (typeof value === "object" && value !== null)
    return resolver.all(value as Record<string, string>, path, "secret");
  if (typeof value !== "string") return value;
  // The keys with a path, which always belong to the user.
  if (key !== "privateKeyFile" && key !== "assertionFile") return resolver.secret(path, value);
  const filled = await resolver.value(path, value);
  return filled === "" ? "" : resolver.ownPath(path, filled);
}

/** The value in its shortest form. A text that its variables left empty counts as absent, as an empty header does. */
function tidied(key: string, value: unknown): unknown {
  if (key === "scope" && typeof value === "string") return scopesOf(value).join(" ");
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([, text]) => text !== ""));
}

/**
 * The plan for OAuth; what its entry could not be checked for is checked here. Files are absolute paths in the result, and
 * nobody has read them. Throws `bad_config`, also for a server without OAuth, or `cancelled` if the signal is aborted. No
 * command is left running.
 */
export async function resolveOAuth(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<OAuthPlan> {
  const { oauth, file } = definition;
  if (oauth === false) {
    const remedy = `Remove "oauth": false, or "auth", in ${file}.`;
    throw badConfig(definition, "its entry allows no sign-in with OAuth", remedy);
  }
  const values = await withResolver(definition, options, (resolver) =>
    Promise.all(
      Object.entries(oauth).map(
        async ([key, value]) => [key, tidied(key, await oauthValue(resolver, key, value))] as const,
      ),
    ),
  );
  const plan = Object.fromEntries(values.filter(([, value]) => value !== "")) as unknown as OAuthPlan;
  const { clientMetadataUrl } = options;
  // The document describes a client that asks a user.
  if (clientMetadataUrl && plan.clientId === undefined && plan.grantType === "authorization_code") {
    plan.clientMetadataUrl ??= clientMetadataUrl;
  }
  const [wrong] = oauthFindings(plan, () => true);
  if (!wrong) return plan;
  const key = ["oauth", ...wrong.path].join(".");
  throw badConfig(definition, `${key} ${wrong.message}, once its variables are filled in`, wrong.remedy);
}

/** `uri`: of the scheme `file`. */
export interface Root {
  uri: string;
  name: string;
}

/**
 * The folders that a server is told (`roots` of its entry; MCP 2025-11-25, client/roots). Only the entry of a server asks
 * for them, since server-filesystem uses them in place of the folders in its arguments. Undefined: the server is told none.
 * Throws `bad_config`.
 */
export async function rootsOf(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<readonly Root[] | undefined> {
  const { roots } = definition;
  if (roots === undefined) return undefined;
  const resolver = new Resolver(definition, options);
  const folders =
    roots === true
      ? [options.cwd]
      : roots.map((path, i) => resolver.ownPath(`roots.${i}`, resolver.path(`roots.${i}`, path)));
  return [...new Set(folders.map((folder) => resolvePath(folder)))].map((folder) => ({
    uri: pathToFileURL(folder).href,
    name: basename(folder) || folder,
  }));
}

export type ResolvedHttp = Omit<HttpTarget, "caFile"> & {
  /** PEM of each further certificate authority. */
  ca?: readonly string[] | undefined;
};

export type ResolvedTarget =
  | ({ kind: "stdio" } & Omit<StdioTarget, "envFile"> & { cwd: string })
  | ({ kind: "http" } & ResolvedHttp)
  | ({ kind: "socket" } & SocketTarget);

const changedSince = ({ name }: ServerDefinition, what: string): ThreadsError =>
  new ThreadsError("server_not_trusted", `${name} is not started: ${what} is not what was agreed to.`, {
    remedy: `Only the user can allow it: ${advice("askForItAgain")}.`,
    data: { server: name },
  });

async function checkAgreed(resolver: Resolver, what: string): Promise<void> {
  const { definition, options } = resolver;
  const agreed = await areAgreed(definition, options);
  if (agreed === undefined) throw resolver.bad(`${what} cannot be read: ${NO_ANSWER}`, "Try again later.");
  if (!agreed) throw changedSince(definition, what);
}

async function bearerToken(resolver: Resolver): Promise<string | undefined> {
  const { scheme, token, tokenEnv } = resolver.definition.auth;
  if (scheme !== "auto" && scheme !== "bearer") return undefined;
  if (token !== undefined) return resolver.secret("bearerToken", token);
  return tokenEnv === undefined ? undefined : resolver.text("bearerTokenEnv", `\${${tokenEnv}}`);
}

/** Refuses what `fetch` would refuse: the error of `fetch` would hold the value. */
function checkHeaders(resolver: Resolver, headers: Record<string, string>): void {
  for (const [key, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(key))
      throw resolver.bad("headers holds a name that HTTP does not allow", "Correct the name.");
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      const remedy = "Check the variable or command it comes from.";
      throw resolver.bad(`headers.${key} holds characters that a header cannot hold`, remedy);
    }
  }
}

function checkUrl(resolver: Resolver, text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol))
    throw resolver.bad("url is not an http or https URL once its variables are filled in", "Check them.");
  if (resolver.definition.auth.scheme === "provider" && !isSafeUrl(text))
    throw resolver.bad(`url ${UNSAFE_FOR_TOKEN}`, SAFE_FOR_TOKEN);
  if (url.username === "" && url.password === "") return text;
  const remedy = 'Write them as "headers": {"Authorization": ...}.';
  throw resolver.bad("url holds a user name or password", remedy);
}

async function headersCommandOf(
  { requestHeadersCommand: written }: HttpTarget,
  resolver: Resolver,
): Promise<Pick<HttpTarget, "requestHeadersCommand">> {
  if (written === undefined) return {};
  const key = "requestHeadersCommand";
  const [args, env] = await Promise.all([
    Promise.all(written.args.map((arg, i) => resolver.value(`${key}.args.${i}`, arg))),
    resolver.all(written.env, `${key}.env`, "value"),
  ]);
  const command = resolver.path(`${key}.command`, written.command);
  return { requestHeadersCommand: { ...written, command, args, env } };
}

async function resolveHttp(target: HttpTarget, resolver: Resolver): Promise<ResolvedTarget> {
  const [url, written, token, ca, signing] = await Promise.all([
    resolver.secret("url", target.url),
    resolver.all(target.headers, "headers", "secret"),
    bearerToken(resolver),
    authoritiesOf(target, resolver),
    headersCommandOf(target, resolver),
  ]);
  // An empty header is not sent: its variables are all empty.
  const headers = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== ""));
  const authorized = Object.keys(headers).some((key) => key.toLowerCase() === "authorization");
  if (token && !authorized) headers.Authorization = `Bearer ${token}`;
  checkHeaders(resolver, headers);
  return { kind: "http", url: checkUrl(resolver, url), headers, type: target.type, ca, ...signing };
}

async function fromEnvFile({ envFile }: StdioTarget, resolver: Resolver): Promise<Record<string, string>> {
  if (envFile === undefined) return {};
  const { definition, options } = resolver;
  const read = await agreedEntries(definition, resolver.path("envFile", envFile), options);
  if ("entries" in read) {
    if (read.note !== undefined) options.onNote?.(read.note);
    return read.entries;
  }
  if ("changed" in read) throw changedSince(definition, envFile);
  // The path as written, because no error may hold the value of a variable.
  const remedy = `Create it, or correct envFile in ${definition.file}.`;
  throw resolver.bad(`envFile ${envFile} cannot be used: ${read.reason}`, remedy);
}

async function resolveStdio(target: StdioTarget, resolver: Resolver): Promise<ResolvedTarget> {
  const { cwd } = resolver.options;
  await checkAgreed(resolver, "a file that its entry names");
  const command = resolver.path("command", target.command);
  if (Object.keys(target.env).some((key) => key.includes("\0")))
    throw resolver.bad("env holds a name with a NUL character", "Correct the name.");
  const [args, folder, file, env] = await Promise.all([
    Promise.all(target.args.map((arg, i) => resolver.value(`args.${i}`, arg))),
    target.cwd === undefined ? cwd : resolver.value("cwd", target.cwd),
    fromEnvFile(target, resolver),
    resolver.all(target.env, "env", "value"),
  ]);
  return { kind: "stdio", command, args, env: { ...file, ...env }, cwd: resolvePath(cwd, folder) };
}

/**
 * Where a remote server is and whose certificates it may have, without what is sent to it. Runs no command: undefined if
 * only a command knows the url. Throws `bad_config`.
 */
export async function resolveAddress(
  definition: ServerDefinition,
  target: HttpTarget,
  options: ResolveOptions,
): Promise<Pick<ResolvedHttp, "url" | "ca"> | undefined> {
  if (isCommand(target.url)) return undefined;
  const resolver = new Resolver(definition, options);
  const url = checkUrl(resolver, await resolver.secret("url", target.url));
  return { url, ca: await authoritiesOf(target, resolver) };
}

/** Throws `bad_config`, or `cancelled` if the signal is aborted. No command is left running. */
export const resolveTarget = (
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<ResolvedTarget> =>
  withResolver(definition, options, async (resolver) => {
    const { target } = definition;
    if (target.kind === "stdio") return resolveStdio(target, resolver);
    if (target.kind === "http") return resolveHttp(target, resolver);
    const path = resolver.path("socket", target.socket);
    return { kind: target.kind, socket: resolvePath(resolver.options.cwd, path) };
  });
