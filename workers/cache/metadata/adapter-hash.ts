/**
 * The hash that pi-mcp-adapter 2.36.0 stores for a definition. The adapter hashes the same form as we do, but fills in
 * environment variables and the home folder before; the two hashes are equal for a definition without any of these.
 * Used only to read the adapter's entries: the hashes that we write never depend on a secret.
 */

import { homedir } from "node:os";
import { join } from "node:path";
import { isObject } from "../../../src/shared/protocol/is-object.ts";

import { FOLDER_KEY, hashDefinition, OAUTH_KEY } from "../../shared/json/definition-hash.ts";

type Environment = Record<string, string | undefined>;

const VARIABLE = [/\$\{(\w+)\}/g, /\$env:(\w+)/g, /\{env:(\w+)\}/g] as const;

/** Fills in the three spellings in turn, as the adapter does: a filled-in value may hold the next spelling. */
const interpolate = (text: string, environment: Environment): string =>
  VARIABLE.reduce((value, spelling) => value.replace(spelling, (_, name) => environment[name] ?? ""), text);

/** A text that begins with `!` is a command, which is hashed as it stands; `!!` stands for a literal `!`. */
function interpolateSecret(text: string, environment: Environment): string {
  if (text.startsWith("!!")) return interpolate(text.slice(1), environment);
  return text.startsWith("!") ? text : interpolate(text, environment);
}

function interpolatePath(text: string, environment: Environment): string {
  const path = interpolate(text, environment);
  if (path === "~") return homedir();
  return /^~[/\\]/.test(path) ? join(homedir(), path.slice(2)) : path;
}

type Interpolate = (text: string, environment: Environment) => string;

const ofText =
  (change: Interpolate) =>
  (value: unknown, environment: Environment): unknown =>
    typeof value === "string" ? change(value, environment) : value;

const ofTexts =
  (change: Interpolate) =>
  (value: unknown, environment: Environment): unknown =>
    isObject(value)
      ? Object.fromEntries(
          Object.entries(value).map(([key, text]) => [key, ofText(change)(text, environment)]),
        )
      : value;

const CHANGES: Record<string, (value: unknown, environment: Environment) => unknown> = {
  env: ofTexts(interpolateSecret),
  headers: ofTexts(interpolateSecret),
  url: ofText(interpolate),
  cwd: ofText(interpolatePath),
  socket: ofText(interpolatePath),
  bearerToken: ofText(interpolateSecret),
};

/** The adapter's hash of a definition, in hex. */
export function adapterHash(definition: Record<string, unknown>, environment: Environment): string {
  const resolved = Object.fromEntries(
    Object.entries(definition).map(([key, value]) => {
      // A key may have the name of a property that every object has.
      const change = Object.hasOwn(CHANGES, key) ? CHANGES[key] : undefined;
      return [key, change?.(value, environment) ?? value];
    }),
  );
  const { bearerTokenEnv } = definition;
  if (definition.bearerToken === undefined && typeof bearerTokenEnv === "string") {
    resolved.bearerToken = environment[bearerTokenEnv];
  }
  return hashDefinition(resolved);
}

/**
 * The hashes that an entry of this definition may have, ours first. A definition with a folder or with OAuth settings
 * has no adapter hash: the adapter hashes neither, so its entry may belong to another program of the same name in
 * another folder, or to another client of the server.
 */
export function hashesOf(
  definition: Record<string, unknown>,
  environment: Environment = process.env,
): string[] {
  const ours = hashDefinition(definition);
  if (definition[FOLDER_KEY] !== undefined || definition[OAUTH_KEY] !== undefined) return [ours];
  const theirs = adapterHash(definition, environment);
  return theirs === ours ? [ours] : [ours, theirs];
}
