/**
 * What would run, as the one line that the user consents to. A project's file is written by others: nothing in it
 * passes for another line or another part of this one, and what it could hide behind is told or counted. Pure.
 */
import type { ServerDefinition } from "./definition.ts";

/** Of one text, and of all that would run: the start and the end are shown, so that nothing hides behind a long one. */
const TEXT_CHARS = 400;
const LINE_CHARS = 4_000;
const SHOWN_NAMES = 50;

/** Controls, marks that turn or hide letters, line ends, blanks that are none: all but visible signs and the space. */
const UNFIT = /\u034f|[\p{C}\p{Zl}\p{Zp}\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]|(?! )\p{Zs}/gu;

/** Variables whose value decides what a program loads or runs, on any platform. */
const DECIDES =
  /^(PATH|PATHEXT|COMSPEC|SHELL|ENV|BASH_ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS|PROMPT_COMMAND|PS4|IFS|ZDOTDIR|HOME|USERPROFILE|APPDATA|LD_.*|DYLD_.*|GCONV_PATH|NODE_.*|BUN_OPTIONS|BUN_INSPECT.*|DENO_.*|ELECTRON_RUN_AS_NODE|PYTHON.*|PERL5.*|PERLLIB|RUBYOPT|RUBYLIB|GEM_.*|BUNDLE_.*|LUA_.*|PHPRC|PHP_INI_SCAN_DIR|CLASSPATH|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|JAVA_HOME|DOTNET_STARTUP_HOOKS|CORECLR_.*|COR_.*|GIT_(SSH|SSH_COMMAND|ASKPASS|EDITOR|PAGER|EXEC_PATH|CONFIG.*|EXTERNAL_DIFF|PROXY_COMMAND|TEMPLATE_DIR)|SSH_ASKPASS|EDITOR|VISUAL|PAGER|BROWSER|OPENSSL_CONF|SSL_CERT_.*|(HTTPS?|ALL)_PROXY|(npm_config|uv|pip|cargo|rustc|docker)_.*)$/i;
/** Not shown all the same. */
const SECRET = /auth|token|secret|passw|key|_proxy$|index_url|extra_index/i;

const middle = (text: string, most: number): string => {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half)}… ${text.length - 2 * half} more characters …${text.slice(-half)}`.toWellFormed();
};

const escaped = (text: string): string =>
  text.replace(UNFIT, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);

const quoted = (text: string): string => escaped(JSON.stringify(middle(text, TEXT_CHARS)));

const shown = (text: string): string =>
  /^[\w@%+=:./~${}-]+$/.test(text) && text.length <= TEXT_CHARS ? text : quoted(text);

const shownUrl = (text: string): string =>
  /^https?:[\w@%+=:,./~${}?&#-]+$/.test(text) && text.length <= TEXT_CHARS ? text : quoted(text);

const isCommand = (value: string): boolean => /^!(?!!)/.test(value);
const fromCommand = (value: string): string => `from running ${quoted(value.slice(1))}`;

/** A name; and where its value runs something or decides what runs, that value. */
function entry(key: string, value: string, decides: boolean): string {
  if (isCommand(value)) return `${shown(key)} ${fromCommand(value)}`;
  return decides && DECIDES.test(key) && !SECRET.test(key) ? `${shown(key)}=${shown(value)}` : shown(key);
}

function names(what: string, entries: Record<string, string>, decides: boolean): string[] {
  // What is told with its value comes first: it is not to be crowded out.
  const texts = Object.entries(entries)
    .map(([key, value]) => ({
      text: entry(key, value, decides),
      isPlain: shown(key) === entry(key, value, decides),
    }))
    .sort((a, b) => Number(a.isPlain) - Number(b.isPlain))
    .map(({ text }) => text);
  if (texts.length === 0) return [];
  const more = texts.length > SHOWN_NAMES ? [`${texts.length - SHOWN_NAMES} more`] : [];
  return [`${what} ${[...texts.slice(0, SHOWN_NAMES), ...more].join(", ")}`];
}

const secretText = (what: string, value: string | undefined): string[] =>
  value !== undefined && isCommand(value) ? [`${what} ${fromCommand(value)}`] : [];

/** Command with arguments, or URL; then the folder, env file, env and headers, and every command that would give a value. */
export function describeTarget({ target, auth, oauth }: ServerDefinition): string {
  const secrets = [
    ...secretText("token", auth.token),
    ...(oauth ? secretText("client secret", oauth.clientSecret) : []),
  ];
  const withExtras = (line: string, extras: string[]): string =>
    extras.length === 0
      ? middle(line, LINE_CHARS)
      : `${middle(line, LINE_CHARS)} (${middle(extras.join("; "), LINE_CHARS)})`;
  if (target.kind === "stdio") {
    const line = [target.command, ...target.args].map(shown).join(" ");
    const where = target.cwd === undefined ? [] : [`in ${shown(target.cwd)}`];
    const envFile = target.envFile === undefined ? [] : [`env from ${shown(target.envFile)}`];
    return withExtras(line, [...where, ...envFile, ...names("env", target.env, true), ...secrets]);
  }
  const url = isCommand(target.url) ? `the URL ${fromCommand(target.url)}` : shownUrl(target.url);
  const token = auth.tokenEnv === undefined ? [] : [`token ${auth.tokenEnv}`];
  return withExtras(url, [...names("headers", target.headers, false), ...token, ...secrets]);
}

/** The question whether a project's server may run: who, what, and which file wants it. */
export function consentQuestion(definition: ServerDefinition): string {
  const { name, file, switchedOnBy } = definition;
  // A project has a say in neither path, but where it lies its folders are named by others.
  const from =
    switchedOnBy === undefined
      ? `from ${escaped(file)}`
      : `which ${escaped(file)} switches off and ${escaped(switchedOnBy)} on`;
  return `${shown(name)}: ${describeTarget(definition)}, ${from}`;
}
