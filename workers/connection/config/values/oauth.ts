/**
 * The plan for OAuth of one definition, with variables, `~/` and `!commands` filled in. This happens only when a sign-in
 * or a machine's grant needs it, so a command that asks for a password does not run at each connect. What the entry
 * could not be checked for is checked here.
 */
import type { ServerDefinition } from "../entry/definition.ts";
import { type OAuthPlan, oauthFindings, scopesOf } from "../entry/oauth-keys.ts";
import {
  badConfig,
  ownPath,
  type ResolveOptions,
  type Resolver,
  resolveAll,
  withResolver,
} from "./resolver.ts";

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
