/**
 * Fills in one value of a definition: its variables, a leading `~/`, or a whole `!command`. An error names server, key
 * and variable, never a value. No command outlives the work that needs it.
 */
import { isAbsolute, resolve as resolvePath } from "node:path";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type Environment, fillPath, interpolate } from "../entry/interpolate.ts";
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
export function ownPath(
  { definition, key, path }: { definition: ServerDefinition; key: string; path: string },
  { cwd }: ResolveOptions,
): string {
  if (isAbsolute(path)) return path;
  if (definition.definedByProject) return resolvePath(cwd, path);
  throw badConfig(definition, `${key} is not an absolute path`, "Begin it with / or ~/.");
}
