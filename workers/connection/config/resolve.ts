/**
 * What is really run: variables, `~/` and `!commands` of one definition, resolved at connect and kept
 * nowhere. An error names server, key and variable, never a value.
 */
import { resolve as resolvePath } from "node:path";
import { ThreadsError } from "../../../src/protocol/errors.ts";
import type { HttpTarget, ServerDefinition, StdioTarget } from "./definition.ts";
import { type Environment, interpolate } from "./interpolate.ts";
import { expandHome } from "./paths.ts";
import { runCommand } from "./run-command.ts";

export type ResolvedTarget =
  | ({ kind: "stdio" } & StdioTarget & { cwd: string })
  | ({ kind: "http" } & HttpTarget);

export interface ResolveOptions {
  env: Environment;
  home: string;
  /** The session's folder: relative ones start here, and commands run here. */
  cwd: string;
  signal: AbortSignal;
  /** A `!command` runs, in a process group of its own. */
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  platform?: NodeJS.Platform;
}

/** Resolves one value, by its key for the errors. */
interface Resolver {
  /** Variables only. */
  text(key: string, value: string): string;
  /** Variables and a leading `~/`. */
  path(key: string, value: string): string;
  /** Variables, or a whole `!command`, or a literal `!` written `!!`. */
  secret(key: string, value: string): Promise<string>;
}

const badConfig = (definition: ServerDefinition, message: string, remedy: string): ThreadsError =>
  new ThreadsError("bad_config", `${definition.name}: ${message}.`, {
    remedy,
    data: { server: definition.name, file: definition.file },
  });

function createResolver(definition: ServerDefinition, options: ResolveOptions): Resolver {
  const { env, home, cwd, platform = process.platform } = options;
  const text = (key: string, value: string): string => {
    const { text: resolved, missing } = interpolate(value, env, platform);
    if (missing.length === 0) return resolved;
    throw badConfig(
      definition,
      `${key} needs ${missing.join(" and ")}, which is not set in the environment`,
      `Set it before starting Pi, or write \${${missing[0]}:-default} in ${definition.file}.`,
    );
  };
  return {
    text,
    // First the home folder: a variable's value that begins with ~/ means itself.
    path: (key, value) => text(key, expandHome(value, { home, platform })),
    secret: async (key, value) => {
      if (value.startsWith("!!")) return text(key, value.slice(1));
      if (!value.startsWith("!")) return text(key, value);
      const label = `${definition.name}: ${key}`;
      return runCommand({ ...options, command: value.slice(1), label, cwd, env });
    },
  };
}

async function resolveAll(
  entries: Record<string, string>,
  under: string,
  resolver: Resolver,
): Promise<Record<string, string>> {
  const resolved = await Promise.all(
    Object.entries(entries).map(
      async ([key, value]): Promise<[string, string]> => [
        key,
        await resolver.secret(`${under}.${key}`, value),
      ],
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

/** `fetch` would refuse these with an error that holds the value. */
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
    resolveAll(target.headers, "headers", resolver),
    bearerToken(definition, resolver),
  ]);
  // A header whose variables are all empty is not sent.
  const headers = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== ""));
  const authorized = Object.keys(headers).some((key) => key.toLowerCase() === "authorization");
  if (token && !authorized) headers.Authorization = `Bearer ${token}`;
  checkHeaders(definition, headers);
  return { kind: "http", url: checkUrl(definition, url), headers, sseOnly: target.sseOnly };
}

async function resolveStdio(target: StdioTarget, resolver: Resolver, cwd: string): Promise<ResolvedTarget> {
  const command = resolver.path("command", target.command);
  const args = target.args.map((arg, i) => resolver.path(`args.${i}`, arg));
  const folder = target.cwd === undefined ? cwd : resolvePath(cwd, resolver.path("cwd", target.cwd));
  return { kind: "stdio", command, args, env: await resolveAll(target.env, "env", resolver), cwd: folder };
}

/** Throws `bad_config`, or `cancelled` where the signal was aborted. No command is left running. */
export async function resolveTarget(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<ResolvedTarget> {
  const stop = new AbortController();
  const running = new Set<Promise<unknown>>();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const resolver = createResolver(definition, { ...options, signal });
  const tracked: Resolver = {
    ...resolver,
    secret: (key, value) => {
      const work = resolver.secret(key, value);
      running.add(work);
      return work;
    },
  };
  const { target } = definition;
  try {
    return target.kind === "stdio"
      ? await resolveStdio(target, tracked, options.cwd)
      : await resolveHttp(definition, target, tracked);
  } finally {
    // After the first failure the other commands are of no use.
    stop.abort();
    await Promise.allSettled(running);
  }
}

/** Variables and commands in the client secret, for a sign-in. */
export function resolveSecret(
  definition: ServerDefinition,
  key: string,
  value: string,
  options: ResolveOptions,
): Promise<string> {
  return createResolver(definition, options).secret(key, value);
}
