/** Variables that a server's entry needs and that are not set. Runs no `!command`: its output is not known here. Pure. */
import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { type Environment, interpolate } from "../config/entry/interpolate.ts";
import { allWell, type DoctorInput } from "./check.ts";

const isCommand = (value: string): boolean => value.startsWith("!") && !value.startsWith("!!");

const under = (key: string, values: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(values).map(([name, value]) => [`${key}.${name}`, value]);

/** Key -> value as written, for all values that are filled in at connect. */
function valuesOf({ target, auth }: Pick<ServerDefinition, "target" | "auth">): [string, string][] {
  if (target.kind === "stdio") {
    const { command, args, env, cwd, envFile } = target;
    return [
      ["command", command],
      ...args.map((arg, i): [string, string] => [`args.${i}`, arg]),
      ...under("env", env),
      ...(cwd === undefined ? [] : [["cwd", cwd] as [string, string]]),
      ...(envFile === undefined ? [] : [["envFile", envFile] as [string, string]]),
    ];
  }
  const { scheme, token, tokenEnv } = auth;
  const isSent = scheme === "auto" || scheme === "bearer";
  const bearer: [string, string][] =
    token !== undefined
      ? [["bearerToken", token]]
      : tokenEnv === undefined
        ? []
        : [["bearerTokenEnv", `\${${tokenEnv}}`]];
  return [["url", target.url], ...under("headers", target.headers), ...(isSent ? bearer : [])];
}

export interface MissingVariable {
  name: string;
  /** The keys that need it. */
  keys: string[];
}

/** In the order in which the entry names them. */
export function missingVariables(
  definition: Pick<ServerDefinition, "target" | "auth">,
  env: Environment,
  platform: NodeJS.Platform,
): MissingVariable[] {
  const found = new Map<string, string[]>();
  for (const [key, value] of valuesOf(definition)) {
    if (isCommand(value)) continue;
    for (const name of new Set(interpolate(value, env, platform).missing)) {
      found.set(name, [...(found.get(name) ?? []), key]);
    }
  }
  return [...found].map(([name, keys]) => ({ name, keys }));
}

export const judgeVariables = (
  { name: server, file }: Pick<ServerDefinition, "name" | "file">,
  missing: readonly MissingVariable[],
): Finding[] =>
  missing.map(({ name, keys }) => ({
    id: "variable",
    severity: "error",
    server,
    title: `The variable ${name} is not set, and ${keys.join(", ")} ${keys.length === 1 ? "needs" : "need"} it.`,
    remedy: `Set it in the shell before Pi starts, or write \${${name}:-default} in the file.`,
    file,
  }));

export function checkVariables({ servers, machine }: DoctorInput): Finding[] {
  const enabled = servers.map(({ definition }) => definition).filter((one) => one.enabled);
  const found = enabled.flatMap((definition) =>
    judgeVariables(definition, missingVariables(definition, machine.env, machine.platform)),
  );
  if (found.length > 0 || enabled.length === 0) return found;
  return [allWell("variable", `The variables of ${counted(enabled.length, "server")} are set.`)];
}
