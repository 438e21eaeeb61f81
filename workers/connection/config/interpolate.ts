/**
 * Variables in a text: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `$env:VAR`, `{env:VAR}`. One pass, so
 * that a value that looks like a variable stays as it is. Pure.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** On Windows names differ in case only by accident, and a worker's copy of the environment minds it. */
export function lookUp(env: Environment, name: string, platform: NodeJS.Platform): string | undefined {
  if (Object.hasOwn(env, name)) return env[name];
  if (platform !== "win32") return undefined;
  const key = Object.keys(env).find((candidate) => candidate.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : env[key];
}

const NAME = "[A-Za-z_][A-Za-z0-9_]*";
const VARIABLE = new RegExp(
  `\\$\\{(?:env:)?(?<braced>${NAME})(?::-(?<fallback>[^}]*))?\\}|\\$env:(?<plain>${NAME})|\\{env:(?<bare>${NAME})\\}`,
  "g",
);

/** `missing`: variables that are not set and have no default. */
export function interpolate(
  text: string,
  env: Environment,
  platform: NodeJS.Platform = "linux",
): { text: string; missing: string[] } {
  const missing: string[] = [];
  const replaced = text.replace(VARIABLE, (...match) => {
    const { braced, fallback, plain, bare } = match.at(-1) as Record<string, string | undefined>;
    const name = braced ?? plain ?? bare ?? "";
    const value = lookUp(env, name, platform);
    // As in a shell, `:-` also stands in for an empty value.
    if (fallback !== undefined) return value ? value : fallback;
    if (value === undefined) missing.push(name);
    return value ?? "";
  });
  return { text: replaced, missing };
}
