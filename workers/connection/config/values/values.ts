/**
 * Owns: the values of one definition, with variables, `~/` and `!commands` resolved. They are resolved at each connect
 * and kept nowhere. An error names server, key and variable, never a value. Called by: transports, servers.
 */

import { X509Certificate } from "node:crypto";
import { basename, isAbsolute, resolve as resolvePath } from "node:path";
import { pathToFileURL } from "node:url";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { advice } from "../../../shared/commands.ts";
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import type { HttpTarget, ServerDefinition, StdioTarget } from "../entry/definition.ts";
import { type Environment, fillPath, interpolate } from "../entry/interpolate.ts";
import { type OAuthPlan, oauthFindings, scopesOf } from "../entry/oauth-keys.ts";
import { agreedEntries, areAgreed } from "../env-files/env-files.ts";
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
  /** `caFile` of the settings; absent or empty: none. */
  caFile?: string | undefined;
  /** Gets one line for the log if something was left out. */
  onNote?: (note: string) => void;
  platform?: NodeJS.Platform;
}

/** Resolves one value. `key`: its name in errors. */
export interface Resolver {
  /** Variables only. */
  text(key: string, value: string): string;
  /** Variables and a leading `~/`; `~~/` stands for a literal `~/`. */
  path(key: string, value: string): string;
  /** Variables, or a whole `!command`; `!!` stands for a literal `!`. */
  secret(key: string, value: string): Promise<string>;
  /** Variables, a leading `~/`, or a whole `!command`. */
  value(key: string, value: string): Promise<string>;
}

export const badConfig = (definition: ServerDefinition, message: string, remedy: string): ThreadsError =>
  new ThreadsError("bad_config", `${definition.name}: ${message}.`, {
    remedy,
    data: { server: definition.name, file: definition.file },
  });

function createResolver(definition: ServerDefinition, options: ResolveOptions): Resolver {
  const { env, cwd, platform = process.platform } = options;
  /** No process can get a NUL character, and Node's own error about it holds the value. */
  const withoutNul = (key: string, resolved: string): string => {
    if (!resolved.includes("\0")) return resolved;
    throw badConfig(definition, `${key} holds a NUL character`, `Remove it in ${definition.file}.`);
  };
  const filled = (key: string, { text: resolved, missing }: ReturnType<typeof interpolate>): string => {
    if (missing.length === 0) return withoutNul(key, resolved);
    throw badConfig(
      definition,
      `${key} needs ${missing.join(" and ")}, which is not set in the environment`,
      `Set it before starting Pi, or write \${${missing[0]}:-default} in ${definition.file}.`,
    );
  };
  const text = (key: string, value: string): string => filled(key, interpolate(value, env, platform));
  const path = (key: string, value: string): string => filled(key, fillPath(value, options));
  const output = async (key: string, command: string): Promise<string> => {
    if (command.trim() === "") {
      const remedy = 'Write the command behind it, or "!!" for a literal "!".';
      throw badConfig(definition, `${key} has no command behind its "!"`, remedy);
    }
    const label = `${definition.name}: ${key}`;
    const { definedByProject } = definition;
    const line = withoutNul(key, command);
    const printed = await runCommand({ ...options, command: line, label, cwd, env, definedByProject });
    return withoutNul(key, printed);
  };
  const withCommands =
    (otherwise: (key: string, value: string) => string) =>
    async (key: string, value: string): Promise<string> => {
      if (value.startsWith("!!")) return text(key, value.slice(1));
      return value.startsWith("!") ? output(key, value.slice(1)) : otherwise(key, value);
    };
  return { text, path, secret: withCommands(text), value: withCommands(path) };
}

/** Every value of a record. `under`: the key of the record. */
export async function resolveAll(
  entries: Record<string, string>,
  under: string,
  resolve: Resolver["value"],
): Promise<Record<string, string>> {
  const resolved = await Promise.all(
    Object.entries(entries).map(
      async ([key, value]): Promise<[string, string]> => [key, await resolve(`${under}.${key}`, value)],
    ),
  );
  return Object.fromEntries(resolved);
}

/**
 * Runs `work` with a resolver. After the first failure nobody needs the output of the other commands: all of them have
 * ended when this settles.
 */
export async function withResolver<T>(
  definition: ServerDefinition,
  options: ResolveOptions,
  work: (resolver: Resolver) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const running = new Set<Promise<unknown>>();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const resolver = createResolver(definition, { ...options, signal });
  const track =
    (resolve: Resolver["value"]): Resolver["value"] =>
    (key, value) => {
      const done = resolve(key, value);
      running.add(done);
      return done;
    };
  try {
    return await work({ ...resolver, secret: track(resolver.secret), value: track(resolver.value) });
  } finally {
    stop.abort();
    await Promise.allSettled(running);
  }
}

/**
 * The absolute path of a file that decides whom a server trusts or as whom the user signs in. A relative path starts in
 * the session's folder, which may decide that only for the servers that its own files define.
 */
function ownPath(
  { definition, key, path }: { definition: ServerDefinition; key: string; path: string },
  { cwd }: ResolveOptions,
): string {
  if (isAbsolute(path)) return path;
  if (definition.definedByProject) return resolvePath(cwd, path);
  throw badConfig(definition, `${key} is not an absolute path`, "Begin it with / or ~/.");
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
  if (read.kind !== "text") {
    return { reason: read.kind === "unreadable" ? `it cannot be read (${read.code})` : whyUnread(read) };
  }
  const certificates = read.text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) return { reason: "it holds no certificate in PEM form" };
  const wrong = certificates.findIndex((pem) => !isCertificate(pem));
  return wrong === -1 ? certificates : { reason: `its certificate ${wrong + 1} is broken` };
}

/** Undefined if neither the entry nor the settings name a file. */
export async function authoritiesOf(
  definition: ServerDefinition,
  { resolver, options }: { resolver: Resolver; options: ResolveOptions },
): Promise<string[] | undefined> {
  const { target } = definition;
  const own = target.kind === "http" ? target.caFile : undefined;
  const named = [
    { key: "caFile", path: own },
    { key: "settings.caFile", path: options.caFile },
  ];
  const files = named.flatMap(({ key, path }) => (path ? [{ key, path }] : []));
  if (files.length === 0) return undefined;
  const read = async ({ key, path }: (typeof files)[number]): Promise<string[]> => {
    const filled = resolver.path(key, path);
    // The settings are the user's own, also for a server of a project.
    const owner = key === "caFile" ? definition : { ...definition, definedByProject: false };
    const certificates = await readCertificates(ownPath({ definition: owner, key, path: filled }, options));
    if (Array.isArray(certificates)) return certificates;
    // The path as written, because no error may hold the value of a variable.
    const remedy = "Correct it, or put a file with PEM certificates there.";
    throw badConfig(definition, `${key} ${path} cannot be used: ${certificates.reason}`, remedy);
  };
  try {
    return (await Promise.all(files.map(read))).flat();
  } catch (error) {
    if (!(error instanceof ThreadsError)) throw error;
    const { code, message, remedy, data } = error;
    throw new ThreadsError(code, message, { remedy, data: { ...data, reason: "ca-file" } });
  }
}

/** Keys with a path, which always belong to the user. */
const FILES = ["privateKeyFile", "assertionFile"] as const satisfies readonly (keyof OAuthPlan)[];

const isFile = (key: string): boolean => (FILES as readonly string[]).includes(key);

async function resolveValue(
  [key, value]: [string, unknown],
  {
    definition,
    options,
    resolver,
  }: { definition: ServerDefinition; options: ResolveOptions; resolver: Resolver },
): Promise<[string, unknown]> {
  const path = `oauth.${key}`;
  if (typeof value === "object" && value !== null)
    return [key, await resolveAll(value as Record<string, string>, path, resolver.secret)];
  if (typeof value !== "string") return [key, value];
  if (!isFile(key)) return [key, await resolver.secret(path, value)];
  const filled = await resolver.value(path, value);
  return [key, filled === "" ? "" : ownPath({ definition, key: path, path: filled }, options)];
}

/** The value in its shortest form. A text that its variables left empty counts as absent, as an empty header does. */
function tidied([key, value]: [string, unknown]): [string, unknown][] {
  if (value === "") return [];
  if (key === "scope" && typeof value === "string") {
    const scope = scopesOf(value).join(" ");
    return scope === "" ? [] : [[key, scope]];
  }
  if (typeof value !== "object" || value === null) return [[key, value]];
  return [[key, Object.fromEntries(Object.entries(value).filter(([, text]) => text !== ""))]];
}

/**
 * Files are absolute paths in the result, and nobody has read them. Throws `bad_config`, also for a server without
 * OAuth, or `cancelled` if the signal is aborted. No command is left running.
 */
export async function resolveOAuth(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<OAuthPlan> {
  const { oauth } = definition;
  if (oauth === false) {
    const remedy = `Remove "oauth": false, or "auth", in ${definition.file}.`;
    throw badConfig(definition, "its entry allows no sign-in with OAuth", remedy);
  }
  const values = await withResolver(definition, options, (resolver) =>
    Promise.all(Object.entries(oauth).map((entry) => resolveValue(entry, { definition, options, resolver }))),
  );
  const plan = Object.fromEntries(values.flatMap(tidied)) as unknown as OAuthPlan;
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

const rootOf = (folder: string): Root => ({
  uri: pathToFileURL(folder).href,
  name: basename(folder) || folder,
});

/** Undefined: the server is told no folders. Throws `bad_config`. */
export async function rootsOf(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<readonly Root[] | undefined> {
  const { roots } = definition;
  if (roots === undefined) return undefined;
  if (roots === true) return [rootOf(resolvePath(options.cwd))];
  const folders = await withResolver(definition, options, async (resolver) =>
    roots.map((path, i) => {
      const key = `roots.${i}`;
      return ownPath({ definition, key, path: resolver.path(key, path) }, options);
    }),
  );
  return [...new Set(folders.map((folder) => resolvePath(folder)))].map(rootOf);
}

export type ResolvedHttp = Omit<HttpTarget, "caFile"> & {
  /** PEM of each further certificate authority. */
  ca?: readonly string[] | undefined;
};

export type ResolvedTarget =
  | ({ kind: "stdio" } & Omit<StdioTarget, "envFile"> & { cwd: string })
  | ({ kind: "http" } & ResolvedHttp);

const changedSince = ({ name }: ServerDefinition, what: string): ThreadsError =>
  new ThreadsError("server_not_trusted", `${name} is not started: ${what} is not what was agreed to.`, {
    remedy: `Only the user can allow it: ${advice("askForItAgain")}.`,
    data: { server: name },
  });

async function bearerToken(definition: ServerDefinition, resolver: Resolver): Promise<string | undefined> {
  const { scheme, token, tokenEnv } = definition.auth;
  if (scheme === "none" || scheme === "oauth") return undefined;
  if (token !== undefined) return resolver.secret("bearerToken", token);
  return tokenEnv === undefined ? undefined : resolver.text("bearerTokenEnv", `\${${tokenEnv}}`);
}

/** Refuses what `fetch` would refuse: the error of `fetch` would hold the value. */
function checkHeaders(definition: ServerDefinition, headers: Record<string, string>): void {
  for (const [key, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(key))
      throw badConfig(definition, `headers holds a name that HTTP does not allow`, "Correct the name.");
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw badConfig(
        definition,
        `headers.${key} holds characters that a header cannot hold`,
        "Check the variable or command it comes from.",
      );
    }
  }
}

function checkUrl(definition: ServerDefinition, text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol))
    throw badConfig(
      definition,
      "url is no http or https URL once its variables are filled in",
      "Check them.",
    );
  if (url.username === "" && url.password === "") return text;
  throw badConfig(
    definition,
    "url holds a user name or password",
    'Write them as "headers": {"Authorization": ...}.',
  );
}

async function resolveHttp(
  definition: ServerDefinition,
  target: HttpTarget,
  { resolver, options }: { resolver: Resolver; options: ResolveOptions },
): Promise<ResolvedTarget> {
  const [url, written, token, ca] = await Promise.all([
    resolver.secret("url", target.url),
    resolveAll(target.headers, "headers", resolver.secret),
    bearerToken(definition, resolver),
    authoritiesOf(definition, { resolver, options }),
  ]);
  // An empty header is not sent: its variables are all empty.
  const headers = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== ""));
  const authorized = Object.keys(headers).some((key) => key.toLowerCase() === "authorization");
  if (token && !authorized) headers.Authorization = `Bearer ${token}`;
  checkHeaders(definition, headers);
  return { kind: "http", url: checkUrl(definition, url), headers, type: target.type, ca };
}

async function fromEnvFile(
  definition: ServerDefinition,
  { envFile }: StdioTarget,
  { resolver, options }: { resolver: Resolver; options: ResolveOptions },
): Promise<Record<string, string>> {
  if (envFile === undefined) return {};
  const read = await agreedEntries(definition, resolver.path("envFile", envFile), options);
  if ("entries" in read) {
    if (read.note !== undefined) options.onNote?.(read.note);
    return read.entries;
  }
  if ("changed" in read) throw changedSince(definition, envFile);
  // The path as written, because no error may hold the value of a variable.
  throw badConfig(
    definition,
    `envFile ${envFile} cannot be used: ${read.reason}`,
    `Create it, or correct envFile in ${definition.file}.`,
  );
}

async function resolveStdio(
  definition: ServerDefinition,
  target: StdioTarget,
  { resolver, options }: { resolver: Resolver; options: ResolveOptions },
): Promise<ResolvedTarget> {
  const { cwd } = options;
  if (!(await areAgreed(definition, options)))
    throw changedSince(definition, "a file that its command names");
  const command = resolver.path("command", target.command);
  if (Object.keys(target.env).some((key) => key.includes("\0")))
    throw badConfig(definition, "env holds a name with a NUL character", "Correct the name.");
  const [args, folder, file, env] = await Promise.all([
    Promise.all(target.args.map((arg, i) => resolver.value(`args.${i}`, arg))),
    target.cwd === undefined ? cwd : resolver.value("cwd", target.cwd),
    fromEnvFile(definition, target, { resolver, options }),
    resolveAll(target.env, "env", resolver.value),
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
  if (/^!(?!!)/.test(target.url)) return undefined;
  return withResolver(definition, options, async (resolver) => ({
    url: checkUrl(definition, await resolver.secret("url", target.url)),
    ca: await authoritiesOf(definition, { resolver, options }),
  }));
}

/** Throws `bad_config`, or `cancelled` if the signal is aborted. No command is left running. */
export async function resolveTarget(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<ResolvedTarget> {
  const { target } = definition;
  return withResolver(definition, options, (resolver) =>
    target.kind === "stdio"
      ? resolveStdio(definition, target, { resolver, options })
      : resolveHttp(definition, target, { resolver, options }),
  );
}
