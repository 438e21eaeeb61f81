/**
 * Owns: the values of one definition, with variables, `~/` and `!commands` resolved. They are resolved at each connect
 * and kept nowhere. An error names server, key and variable, never a value. Called by: transports.
 */
import { resolve as resolvePath } from "node:path";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { HttpTarget, ServerDefinition, StdioTarget } from "../entry/definition.ts";
import { fillPath } from "../entry/fill-path.ts";
import { type Environment, interpolate } from "../entry/interpolate.ts";
import { agreedEntries } from "../env-files/env-files.ts";
import { runCommand } from "./run-command.ts";

export type ResolvedTarget =
  | ({ kind: "stdio" } & Omit<StdioTarget, "envFile"> & { cwd: string })
  | ({ kind: "http" } & HttpTarget);

export interface ResolveOptions {
  env: Environment;
  home: string;
  /** The session's folder. Relative folders start here, and the commands in a project's file run here. */
  cwd: string;
  signal: AbortSignal;
  /** A `!command` has started, in a process group of its own. */
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** Gets one line for the log if something was left out. */
  onNote?: (note: string) => void;
  platform?: NodeJS.Platform;
}

/** Resolves one value. `key`: its name in errors. */
interface Resolver {
  /** Variables only. */
  text(key: string, value: string): string;
  /** Variables and a leading `~/`; `~~/` stands for a literal `~/`. */
  path(key: string, value: string): string;
  /** Variables, or a whole `!command`; `!!` stands for a literal `!`. */
  secret(key: string, value: string): Promise<string>;
  /** Variables, a leading `~/`, or a whole `!command`. */
  value(key: string, value: string): Promise<string>;
}

const badConfig = (definition: ServerDefinition, message: string, remedy: string): ThreadsError =>
  new ThreadsError("bad_config", `${definition.name}: ${message}.`, {
    remedy,
    data: { server: definition.name, file: definition.file },
  });

const envFileChanged = ({ name }: ServerDefinition, envFile: string): ThreadsError =>
  new ThreadsError("server_not_trusted", `${name} is not started: ${envFile} is not what was agreed to.`, {
    remedy: "Only the user can allow it: /mcp trust asks for it again.",
    data: { server: name },
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

async function resolveAll(
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
  resolver: Resolver,
): Promise<ResolvedTarget> {
  const [url, written, token] = await Promise.all([
    resolver.secret("url", target.url),
    resolveAll(target.headers, "headers", resolver.secret),
    bearerToken(definition, resolver),
  ]);
  // An empty header is not sent: its variables are all empty.
  const headers = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== ""));
  const authorized = Object.keys(headers).some((key) => key.toLowerCase() === "authorization");
  if (token && !authorized) headers.Authorization = `Bearer ${token}`;
  checkHeaders(definition, headers);
  return { kind: "http", url: checkUrl(definition, url), headers, sseOnly: target.sseOnly };
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
  if ("changed" in read) throw envFileChanged(definition, envFile);
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

/** Throws `bad_config`, or `cancelled` if the signal is aborted. No command is left running. */
export async function resolveTarget(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<ResolvedTarget> {
  const stop = new AbortController();
  const running = new Set<Promise<unknown>>();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const resolver = createResolver(definition, { ...options, signal });
  const track =
    (resolve: Resolver["value"]): Resolver["value"] =>
    (key, value) => {
      const work = resolve(key, value);
      running.add(work);
      return work;
    };
  const tracked = { ...resolver, secret: track(resolver.secret), value: track(resolver.value) };
  const { target } = definition;
  try {
    return target.kind === "stdio"
      ? await resolveStdio(definition, target, { resolver: tracked, options })
      : await resolveHttp(definition, target, tracked);
  } finally {
    // After the first failure nobody needs the output of the other commands.
    stop.abort();
    await Promise.allSettled(running);
  }
}
