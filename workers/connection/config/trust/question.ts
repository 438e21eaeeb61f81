/**
 * The question: everything that would run, in the one line to which the user consents, never a part of it. Others
 * write a project's file, so no text in it can pass for another line or another part of the line, and the line says
 * where the user's variables go. The dialog shows the whole line, or nobody is asked. Pure.
 */

import { type HttpTarget, isUsersOwn, type ServerDefinition, type StdioTarget } from "../entry/definition.ts";
import { holdsVariable, isCommand, variablesIn } from "../entry/interpolate.ts";
import { leastOAuthChars, oauthWords } from "../entry/oauth-keys.ts";
import { consentedKeys } from "../entry/server-keys.ts";
import { fromCommand, shown, shownUrl, textsIn, withOrigin } from "../entry/shown-text.ts";
import { decidesWhatRuns, holdsAddress } from "../env-files/deciding-variables.ts";
import type { EnvSeen } from "../env-files/env-files.ts";

/** Settings of package managers that are secrets and decide nothing: only their names are shown. */
const SECRET_SETTING =
  /^(npm_config|pnpm_config|yarn|pip|uv|poetry|pdm|cargo|bundle|composer|nuget|docker|helm)_(?!.*(helper|command|provider|program|script)).*(auth|token|secret|passw|passphrase|_key$)/i;
const USER_OF_URL = /\b([a-z][a-z\d+.-]{0,20}:\/\/)[^\s/?#\\]*@|^[^\s/?#\\@:]*:[^\s/?#\\]*@/gi;

/** A variable whose value decides what runs, or where it connects, with its value. A user and password in a URL are not shown. */
function deciding(name: string, value: string): string {
  if (SECRET_SETTING.test(name)) return shown(name);
  return `${shown(name)}=${shown(holdsAddress(name, value) ? value.replace(USER_OF_URL, "$1***@") : value)}`;
}

function variable(name: string, value: string): string {
  if (isCommand(value)) return withOrigin(shown(name), value);
  if (decidesWhatRuns(name) || holdsAddress(name, value)) return deciding(name, value);
  return holdsVariable(value) ? withOrigin(shown(name), value) : shown(name);
}

/** A list with commas between. Texts that say more than a name come first. */
function list(what: string, texts: readonly { text: string; isPlain: boolean }[]): string[] {
  const sorted = [...texts].sort((a, b) => Number(a.isPlain) - Number(b.isPlain));
  return sorted.length === 0 ? [] : [`${what} ${sorted.map(({ text }) => text).join(", ")}`];
}

const variables = (entries: Record<string, string>): { text: string; isPlain: boolean }[] =>
  Object.entries(entries)
    .map(([name, value]) => ({ name, text: variable(name, value) }))
    .map(({ name, text }) => ({ text, isPlain: text === shown(name) }));

function fromEnvFile({ envFile }: StdioTarget, seen: EnvSeen | undefined): string[] {
  if (envFile === undefined) return [];
  const file = `env from ${shown(envFile)}`;
  if (!seen) return [file];
  if ("reason" in seen) return [`${file}, which cannot be used now: ${seen.reason}`];
  const { names, deciding: values } = seen.content;
  const texts = names.map((name) => ({
    text: Object.hasOwn(values, name) ? deciding(name, values[name] ?? "") : shown(name),
    isPlain: !Object.hasOwn(values, name),
  }));
  return texts.length === 0 ? [`${file}, which sets nothing`] : list(`${file}, which sets`, texts);
}

const argument = (value: string): string => (isCommand(value) ? `(${fromCommand(value)})` : shown(value));

function describeStdio(target: StdioTarget, seen: EnvSeen | undefined): { line: string; extras: string[] } {
  const { command, args, cwd, env } = target;
  const folder =
    cwd === undefined ? [] : [isCommand(cwd) ? `in the folder ${fromCommand(cwd)}` : `in ${shown(cwd)}`];
  return {
    line: [shown(command), ...args.map(argument)].join(" "),
    extras: [...folder, ...fromEnvFile(target, seen), ...list("env", variables(env))],
  };
}

/** The token that is sent, as written; undefined if none is sent. */
function tokenOf({ auth: { scheme, token, tokenEnv } }: ServerDefinition): string | undefined {
  if (scheme !== "auto" && scheme !== "bearer") return undefined;
  return token ?? (tokenEnv === undefined ? undefined : `\${${tokenEnv}}`);
}

const headers = (entries: Record<string, string>): string[] =>
  list(
    "headers",
    Object.entries(entries).map(([name, value]) => ({
      text: withOrigin(shown(name), value),
      isPlain: !isCommand(value) && !holdsVariable(value),
    })),
  );

/** The texts of the keys that have words of their own. */
const textsOfKeys = (definition: ServerDefinition): string[] =>
  consentedKeys(definition).flatMap(({ value }) => textsIn(value));

/** Empty for a server without a sign-in, and for one whose entry says nothing about it. */
const signInTexts = ({ auth, oauth }: ServerDefinition): string[] =>
  oauth === false ? [] : [...(auth.scheme === "oauth" ? ["signs in with OAuth"] : []), ...oauthWords(oauth)];

/**
 * The command with its arguments, or the URL; then folder, env file, env, headers, token, sign-in, certificate
 * authorities, folders that the server is told, and every command that gives a value.
 */
export function describeTarget(definition: ServerDefinition, seen?: EnvSeen): string {
  const { target } = definition;
  const { line, extras } =
    target.kind === "stdio"
      ? describeStdio(target, seen)
      : target.kind === "http"
        ? describeHttp(definition, target)
        : { line: `what listens at the socket ${shown(target.socket)}`, extras: [] };
  const all = [...extras, ...consentedKeys(definition).flatMap(({ words }) => words)];
  return all.length === 0 ? line : `${line} (${all.join("; ")})`;
}

function signing({ requestHeadersCommand: written }: HttpTarget): string[] {
  if (written === undefined) return [];
  const line = [shown(written.command), ...written.args.map(argument)].join(" ");
  return [`signs each request by running ${line}`, ...list("env of that program", variables(written.env))];
}

function describeHttp(definition: ServerDefinition, target: HttpTarget): { line: string; extras: string[] } {
  const token = tokenOf(definition);
  const { url, headers: entries, caFile } = target;
  const { auth } = definition;
  return {
    line: isCommand(url) ? `the URL ${fromCommand(url)}` : shownUrl(url),
    extras: [
      ...headers(entries),
      ...signing(target),
      ...(token === undefined ? [] : [withOrigin("token", token)]),
      ...(auth.provider === undefined ? [] : [`the token of Pi's provider ${shown(auth.provider)}`]),
      ...signInTexts(definition),
      ...(caFile === undefined ? [] : [`certificate authorities of ${shown(caFile)}`]),
    ],
  };
}

/** The variables that these texts read, each once. */
const variablesInAll = (texts: readonly string[]): string[] => [
  ...new Set(texts.flatMap((text) => variablesIn(text).names)),
];

/** A command is shown as a whole, so the variables in it do not count. */
const notCommands = (values: readonly string[]): string[] => values.filter((value) => !isCommand(value));

/** Variables that the program gets, or that requests to the server hold. */
function variablesOfTarget(definition: ServerDefinition): string[] {
  const { target } = definition;
  const told = textsOfKeys(definition);
  if (target.kind === "http")
    return variablesInAll([
      ...notCommands([target.url, ...Object.values(target.headers), tokenOf(definition) ?? ""]),
      ...told,
    ]);
  if (target.kind === "socket") return variablesInAll([target.socket, ...told]);
  const { command, args, env, cwd = "", envFile = "" } = target;
  return variablesInAll([command, ...notCommands([...args, ...Object.values(env), cwd]), envFile, ...told]);
}

/** Variables that the sign-in uses. */
const variablesOfSignIn = ({ target, oauth }: ServerDefinition): string[] =>
  target.kind === "http" ? variablesInAll(notCommands(textsIn(oauth))) : [];

/** Variables of the user's environment that the definition uses anywhere. */
export const variablesOf = (definition: ServerDefinition): string[] => [
  ...new Set([...variablesOfTarget(definition), ...variablesOfSignIn(definition)]),
];

/** The address to which requests go, as far as the definition says it. */
function addressOf({ url }: HttpTarget): string {
  if (isCommand(url)) return "that URL";
  if (!holdsVariable(url)) return shownUrl(URL.parse(url)?.origin ?? url);
  return shownUrl(/^https?:\/\/[^/?#\\]*/i.exec(url)?.[0] ?? url);
}

const listOf = (names: readonly string[]): string =>
  `${names.map((name) => `$${name}`).join(", ")} of your environment`;

function sent(definition: ServerDefinition): string[] {
  const { target } = definition;
  const names = variablesOfTarget(definition);
  const others = variablesOfSignIn(definition);
  const signIn = others.length === 0 ? [] : [`sends ${listOf(others)} to its authorization server`];
  if (names.length === 0) return signIn;
  if (target.kind !== "http") return [`uses ${listOf(names)}`];
  return [`sends ${listOf(names)} to ${addressOf(target)}`, ...signIn];
}

/** Whether the server replaces one of the user's own files, directly or below another server of the project. */
const hidesOwn = ({ replaced }: ServerDefinition): boolean =>
  replaced !== undefined && (isUsersOwn(replaced) || hidesOwn(replaced));

/** Whether another server than the user's own would run under the name of the user's own. */
export const isInPlace = (definition: ServerDefinition): boolean =>
  definition.enabledByProject === undefined && hidesOwn(definition);

/**
 * A lower bound for the characters of the question. It is counted before the question is made, because a file may
 * hold a megabyte of arguments, and hundreds of servers may name one large envFile.
 */
export function leastChars(definition: ServerDefinition, seen?: EnvSeen): number {
  const { name, target, oauth } = definition;
  const texts =
    target.kind === "stdio"
      ? [target.command, ...target.args, target.cwd ?? "", ...Object.keys(target.env)]
      : target.kind === "http"
        ? [target.url, ...Object.keys(target.headers), target.caFile ?? ""]
        : [target.socket];
  const inFile = seen && "content" in seen ? seen.content.chars : 0;
  const signIn = target.kind === "http" && oauth ? leastOAuthChars(oauth) : 0;
  return [...texts, ...textsOfKeys(definition)].reduce(
    (sum, text) => sum + text.length,
    name.length + inFile + signIn,
  );
}

/**
 * Whether a project's server may run: its name, what runs, which variables of the user go there, and which file wants
 * it. `isAgain`: the same entry was allowed here, with other files or by a version that bound fewer of them.
 */
export function consentQuestion(
  definition: ServerDefinition,
  seen?: EnvSeen,
  scripts: readonly string[] = [],
  isAgain = false,
): string {
  const { name, file, enabledByProject } = definition;
  const inPlace = isInPlace(definition) ? ["in place of your own server of this name"] : [];
  const from =
    enabledByProject === undefined
      ? `from ${shown(file)}`
      : `which ${shown(file)} switches off and ${shown(enabledByProject)} on`;
  const what = `${shown(name)}: ${describeTarget(definition, seen)}`;
  const bound = scripts.length === 0 ? [] : [`with ${scripts.map(shown).join(" and ")} as it is now`];
  const again = isAgain ? ["which you allowed when its files were others or did not count"] : [];
  return [what, ...bound, ...sent(definition), ...inPlace, ...again, from].join(", ");
}
