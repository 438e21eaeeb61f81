/**
 * The question: everything that would run, in the one line to which the user consents, never a part of it. Others
 * write a project's file, so no text in it can pass for another line or another part of the line, and the line says
 * where the user's variables go. The dialog shows the whole line, or nobody is asked. Pure.
 */
import type { HttpTarget, ServerDefinition, StdioTarget } from "../entry/definition.ts";
import { holdsVariable, variablesIn } from "../entry/interpolate.ts";
import { quoted, shown, shownUrl } from "../entry/shown-text.ts";
import { decidesWhatRuns, type EnvSeen, isOwn } from "../env-files/env-files.ts";

/** Settings of package managers that are secrets and decide nothing: only their names are shown. */
const SECRET_SETTING =
  /^(npm_config|pnpm_config|yarn|pip|uv|poetry|pdm|cargo|bundle|composer|nuget|docker|helm)_(?!.*(helper|command|provider|program|script)).*(auth|token|secret|passw|passphrase|_key$)/i;
/** Variables that hold URLs: a user and password in the URL are not shown. */
const HOLDS_URL =
  /(_proxy|url|urls|index|links|registry|registries|goproxy|gosumdb|mirror|endpoint|host|addr)$/i;
const USER_OF_URL = /\b([a-z][a-z\d+.-]{0,20}:\/\/)[^\s/?#\\]*@/gi;

/** Whether the value is a whole `!command`; `!!` stands for a literal `!`. */
const isCommand = (value: string): boolean => /^!(?!!)/.test(value);
const fromCommand = (value: string): string => `from running ${quoted(value.slice(1))}`;

/** Where a value comes from, without the value. */
function origin(value: string): string {
  const { names, hasText, hasDefault } = variablesIn(value);
  if (names.length === 0) return value === "" ? "empty" : `${value.length} characters`;
  const from = `${hasText ? "text with" : "from"} ${names.map((name) => `$${name}`).join(", ")}`;
  return hasDefault ? `${from}, or a default` : from;
}

const withOrigin = (what: string, value: string): string =>
  isCommand(value) ? `${what} ${fromCommand(value)}` : `${what} (${origin(value)})`;

/** A variable whose value decides what runs, with its value. */
function deciding(name: string, value: string): string {
  if (SECRET_SETTING.test(name)) return shown(name);
  return `${shown(name)}=${shown(HOLDS_URL.test(name) ? value.replace(USER_OF_URL, "$1***@") : value)}`;
}

function variable(name: string, value: string): string {
  if (isCommand(value)) return withOrigin(shown(name), value);
  if (decidesWhatRuns(name)) return deciding(name, value);
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
  if (scheme === "none" || scheme === "oauth") return undefined;
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

/**
 * The command with its arguments, or the URL; then folder, env file, env, headers, token, and every command that
 * gives a value.
 */
export function describeTarget(definition: ServerDefinition, seen?: EnvSeen): string {
  const { target, oauth } = definition;
  const token = tokenOf(definition);
  const secret = oauth ? oauth.clientSecret : undefined;
  const secrets = [
    ...(token === undefined ? [] : [withOrigin("token", token)]),
    ...(secret === undefined ? [] : [withOrigin("client secret", secret)]),
  ];
  const { line, extras } =
    target.kind === "stdio"
      ? describeStdio(target, seen)
      : {
          line: isCommand(target.url) ? `the URL ${fromCommand(target.url)}` : shownUrl(target.url),
          extras: headers(target.headers),
        };
  // A local server gets no token.
  const all = target.kind === "stdio" ? extras : [...extras, ...secrets];
  return all.length === 0 ? line : `${line} (${all.join("; ")})`;
}

/** Every text in a value, however deep. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
};

/** Variables of the user's environment that the definition uses anywhere. */
export function variablesOf(definition: ServerDefinition): string[] {
  const { target, oauth } = definition;
  const { command, envFile } = target.kind === "stdio" ? target : {};
  const values =
    target.kind === "stdio"
      ? [...target.args, ...Object.values(target.env), target.cwd ?? ""]
      : [target.url, ...Object.values(target.headers), tokenOf(definition) ?? "", ...textsIn(oauth)];
  const texts = [command ?? "", ...values.filter((value) => !isCommand(value)), envFile ?? ""];
  return [...new Set(texts.flatMap((text) => variablesIn(text).names))];
}

/** The address to which requests go, as far as the definition says it. */
function addressOf({ url }: HttpTarget): string {
  if (isCommand(url)) return "that URL";
  if (!holdsVariable(url)) return shownUrl(URL.parse(url)?.origin ?? url);
  return shownUrl(/^https?:\/\/[^/?#\\]*/i.exec(url)?.[0] ?? url);
}

function sent(definition: ServerDefinition): string[] {
  const names = variablesOf(definition).map((name) => `$${name}`);
  if (names.length === 0) return [];
  const { target } = definition;
  const all = `${names.join(", ")} of your environment`;
  return [target.kind === "stdio" ? `uses ${all}` : `sends ${all} to ${addressOf(target)}`];
}

/** Whether the server replaces one of the user's own files, directly or below another server of the project. */
const hidesOwn = ({ replaced }: ServerDefinition): boolean =>
  replaced !== undefined && (isOwn(replaced) || hidesOwn(replaced));

/**
 * A lower bound for the characters of the question. It is counted before the question is made, because a file may
 * hold a megabyte of arguments, and hundreds of servers may name one large envFile.
 */
export function leastChars({ name, target }: ServerDefinition, seen?: EnvSeen): number {
  const texts =
    target.kind === "stdio"
      ? [target.command, ...target.args, target.cwd ?? "", ...Object.keys(target.env)]
      : [target.url, ...Object.keys(target.headers)];
  const inFile = seen && "content" in seen ? seen.content.chars : 0;
  return texts.reduce((sum, text) => sum + text.length, name.length + inFile);
}

/**
 * Whether a project's server may run: its name, what runs, which variables of the user go there, and which file wants
 * it.
 */
export function consentQuestion(definition: ServerDefinition, seen?: EnvSeen): string {
  const { name, file, enabledByProject } = definition;
  const isInPlace = enabledByProject === undefined && hidesOwn(definition);
  const inPlace = isInPlace ? ["in place of your own server of this name"] : [];
  const from =
    enabledByProject === undefined
      ? `from ${shown(file)}`
      : `which ${shown(file)} switches off and ${shown(enabledByProject)} on`;
  const what = `${shown(name)}: ${describeTarget(definition, seen)}`;
  return [what, ...sent(definition), ...inPlace, from].join(", ");
}
