/**
 * Owns: the values of one definition, with variables, `~/` and `!commands` resolved. They are resolved at each connect
 * and kept nowhere. An error names server, key and variable, never a value. Called by: transports, servers.
 */

import { resolve as resolvePath } from "node:path";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { advice } from "../../../shared/commands.ts";
import type { HttpTarget, ServerDefinition, StdioTarget } from "../entry/definition.ts";
import { agreedEntries, areAgreed } from "../env-files/env-files.ts";
import { authoritiesOf } from "./authorities.ts";
import { badConfig, type ResolveOptions, type Resolver, resolveAll, withResolver } from "./resolver.ts";

export { resolveOAuth } from "./oauth.ts";
export type { ResolveOptions } from "./resolver.ts";
export { type Root, rootsOf } from "./roots.ts";

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
  return { kind: "http", url: checkUrl(definition, url), headers, sseOnly: target.sseOnly, ca };
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
