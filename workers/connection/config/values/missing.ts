/** Which variables a definition needs that are not set. No `!command` runs for that. Pure. */
import type { ServerDefinition } from "../entry/definition.ts";
import { type Environment, interpolate, isCommand } from "../entry/interpolate.ts";

const under = (
  key: string,
  values: Readonly<Record<string, string>> | readonly string[],
): [string, string][] => Object.entries(values).map(([name, value]) => [`${key}.${name}`, value]);

/** Key -> value as written, for all values that are filled in at connect. */
function valuesOf({ target, auth }: Pick<ServerDefinition, "target" | "auth">) {
  if (target.kind === "stdio") {
    const { command, args, env, cwd, envFile } = target;
    return [
      ["command", command],
      ...under("args", args),
      ...under("env", env),
      ["cwd", cwd],
      ["envFile", envFile],
    ];
  }
  if (target.kind === "socket") return [["socket", target.socket]];
  const { scheme, token, tokenEnv } = auth;
  const isSent = scheme === "auto" || scheme === "bearer";
  const named = token === undefined && tokenEnv !== undefined ? `\${${tokenEnv}}` : undefined;
  const bearer = isSent
    ? [
        ["bearerToken", token],
        ["bearerTokenEnv", named],
      ]
    : [];
  const { command, args = [], env = {} } = target.requestHeadersCommand ?? {};
  const key = "requestHeadersCommand";
  return [
    ["url", target.url],
    ...under("headers", target.headers),
    ...bearer,
    [`${key}.command`, command],
    ...under(`${key}.args`, args),
    ...under(`${key}.env`, env),
  ];
}

/** Variable -> the keys that need it, in the order in which the entry names them. No `!command` runs for that. */
export function missingVariables(
  definition: Pick<ServerDefinition, "target" | "auth">,
  { env, platform }: { env: Environment; platform: NodeJS.Platform },
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [key = "", value = ""] of valuesOf(definition)) {
    if (isCommand(value)) continue;
    for (const name of new Set(interpolate(value, env, platform).missing))
      found.set(name, [...(found.get(name) ?? []), key]);
  }
  return found;
}
