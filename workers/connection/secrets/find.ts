/**
 * Finds the values of a server's definition that no text may show: environment and headers, values of variables and
 * commands, the parts of the URL that only the server may see, and arguments whose name says so (`--token abc`);
 * those of its plan for OAuth, and those of the environment that its program inherits. Pure.
 */
import { isKey } from "../../../src/shared/text/key-shape.ts";
import { percentDecoded } from "../../../src/shared/text/reading.ts";
import type { Env } from "../../shared/programs/find-program.ts";
import type { HttpTarget, ServerDefinition, StdioTarget } from "../config/entry/definition.ts";
import { isCommand } from "../config/entry/interpolate.ts";
import type { OAuthPlan } from "../config/entry/oauth-keys.ts";
import type { Secrets } from "./redact.ts";

type Target = ServerDefinition["target"];

const HOLDS_VARIABLE = /\$\{|\$env:|\{env:|^!/;
/** Names of flags, variables, headers and query parameters with a secret. Tokens that are counted belong to a model. */
const SECRET_NAME =
  /secret|token(?!s|iz|[-_]?(limit|count|budget))|password|passwd|passphrase|credential|bearer|cookie|api[-_]?key|(access|private|auth)[-_]?key|(^|[-_])(key|pass|pwd|pat|auth|authorization)($|[-_])/i;
/** `--name=value`, `NAME=value` as for `docker run -e`, and `Name: value` as for `--header`. */
const NAMED_VALUE = /^-{0,2}([A-Za-z][\w.-]*)[=:]\s*(.+)$/s;
/** The key of the program that signs the requests. */
export const SIGNING_KEY = "requestHeadersCommand";

/**
 * Paths below an entry of a remote server whose values sign its requests, for example `headers.X-API-Key`. `sent`: names of
 * the headers that its requests have; a header whose variables are empty is not sent.
 */
export function credentialsOf(
  { headers, url, requestHeadersCommand }: HttpTarget,
  sent: readonly string[],
): string[] {
  const written = Object.entries(headers).filter(
    ([name, value]) => sent.includes(name) && (isSecretName(name) || isSecretSource(value)),
  );
  const parsed = URL.parse(url);
  const isInUrl = parsed !== null && [...parsed.searchParams.keys()].some(isSecretName);
  return [
    ...(requestHeadersCommand ? [SIGNING_KEY] : []),
    ...written.map(([name]) => `headers.${name}`),
    ...(isInUrl ? ["url"] : []),
  ];
}

const isSecretName = (name: string): boolean => SECRET_NAME.test(name);

/** Whether a written value comes from a command, or from a variable whose name says that it is secret. */
const isSecretSource = (written: string): boolean =>
  written.startsWith("!") ||
  [...written.matchAll(/(?:\$\{|\$env:|\{env:)(\w+)/g)].some(([, name = ""]) => isSecretName(name));

/** Values that variables or a command put into a text: the part that differs from the written text. */
function substituted(written: string, resolved: string): string[] {
  if (!HOLDS_VARIABLE.test(written) || written === resolved) return [];
  // The text of a command has nothing in common with its output.
  if (isCommand(written)) return [resolved];
  let start = 0;
  while (start < written.length && written[start] === resolved[start]) start++;
  let end = 0;
  const most = Math.min(written.length, resolved.length) - start;
  while (end < most && written.at(-1 - end) === resolved.at(-1 - end)) end++;
  return [resolved.slice(start, resolved.length - end)];
}

/** A header's value that is short but not a word. Other values of this length are not looked for. */
const SHORT_KEY = /^(?=.*\d)(?=.*[A-Za-z])\S{4,7}$/;

/** Parts of a path that look like a key, as written and decoded. */
const keysInPath = ({ pathname }: URL): string[] =>
  pathname.split("/").flatMap((part) => {
    const decoded = percentDecoded(part);
    return isKey(decoded) ? [...new Set([part, decoded])] : [];
  });

/** Parts of a URL for the server alone: query and credentials, as written and decoded, and keys in the path. */
function secretParts(url: string): string[] {
  const parsed = URL.parse(url);
  if (!parsed) return [];
  const { search, searchParams, username, password, hash } = parsed;
  const written = [search.slice(1), hash.slice(1), username, password];
  const keys = keysInPath(parsed);
  // The Authorization header holds this pair in base64.
  const pair = password === "" ? [] : [`${percentDecoded(username)}:${percentDecoded(password)}`];
  return [...written, ...written.map(percentDecoded), ...searchParams.values(), ...keys, ...pair].filter(
    (part) => part !== "",
  );
}

const ADDRESS = /^(?:[a-z][\w+.-]*:)+\/\//i;
/** The user part ends at the last @ before a path; that of a password with a raw `#` or `/` in it at the last @ of all. */
const PASSWORDS = [/^[^/]*\/\/[^/?#\s:]*:([^/?#]+)@/, /^[^/]*\/\/[^/?#\s:]*:(.+)@/s];
const PAIR = /[?&;]([\w.-]+)=([^?&;#\s]+)/g;

/** What `namedInUrl` finds, of an address that only its own program reads: with several hosts or none, or behind `jdbc:`. */
function namedInAddress(text: string): string[] {
  const passwords = PASSWORDS.flatMap((pattern) => pattern.exec(text)?.[1] ?? []);
  const values = [...text.matchAll(PAIR)].flatMap(([, name = "", value = ""]) =>
    isSecretName(name) ? [value] : [],
  );
  return [...new Set([...passwords, ...values].flatMap((part) => [part, percentDecoded(part)]))];
}

/** The password of a URL, and the values that its query names as secret. */
function namedInUrl(text: string): string[] {
  if (!ADDRESS.test(text)) return [];
  const parsed = /^[a-z][\w+.-]*:\/\//i.test(text) ? URL.parse(text) : null;
  // In `postgres://app:12#b@db/x` a URL ends behind what it takes for a port; the program reads a password.
  const isOther = parsed !== null && !/^(?:http|ws)s?:$/.test(parsed.protocol) && parsed.hash.includes("@");
  if (!parsed || isOther) return namedInAddress(text);
  const values = [...parsed.searchParams].flatMap(([name, value]) => (isSecretName(name) ? [value] : []));
  return [parsed.password, percentDecoded(parsed.password), ...values].filter((part) => part !== "");
}

/** A user name without a password in the address of a server: some servers take a key there. */
function keyAsName(url: string): string[] {
  const { username = "", password = "" } = URL.parse(url) ?? {};
  return username === "" || password !== "" ? [] : [username, percentDecoded(username)];
}

/** The same, and keys in the path: a program such as mcp-remote gets the address of a server as an argument. */
function namedInArgument(text: string): string[] {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  return [...namedInUrl(text), ...(url ? keysInPath(url) : [])];
}

/** Values that arguments name as secret, whatever their source. */
function namedInArguments(args: readonly string[]): string[] {
  return args.flatMap((arg, i) => {
    const [, name = "", value = ""] = NAMED_VALUE.exec(arg) ?? [];
    if (isSecretName(name)) return [value];
    const next = args[i + 1];
    const isFlag = /^--?[A-Za-z][\w.-]*$/.test(arg) && isSecretName(arg.replace(/^-+/, ""));
    const behind = isFlag && next !== undefined && !next.startsWith("--") ? [next] : [];
    return [...behind, ...namedInArgument(arg), ...namedInArgument(value)];
  });
}

/**
 * All values of a record; `named` holds those whose name or source says that they are secret, and what an address among them names so:
 * a driver prints the password alone, or the address in its own form.
 */
function inRecord(written: Record<string, string>, resolved: Record<string, string>): Secrets {
  const entries = Object.entries(resolved);
  const isNamed = (name: string): boolean => isSecretName(name) || isSecretSource(written[name] ?? "");
  return {
    values: entries.map(([, value]) => value),
    named: entries.flatMap(([name, value]) => [...(isNamed(name) ? [value] : []), ...namedInUrl(value)]),
  };
}

type Program = Pick<StdioTarget, "command" | "args" | "env"> & { cwd?: string | undefined };

/** Secrets of a program's command, folder, arguments and variables. */
function ofProgram(written: Program, resolved: Program): Secrets {
  const env = inRecord(written.env, resolved.env);
  const texts = [
    [written.command, resolved.command],
    [written.cwd ?? "", resolved.cwd ?? ""],
    ...written.args.map((arg, i) => [arg, resolved.args[i] ?? ""]),
  ];
  const changed = texts.flatMap(([from = "", to = ""]) =>
    substituted(from, to).map((value) => ({ value, isNamed: isSecretSource(from) })),
  );
  return {
    values: [...env.values, ...changed.map(({ value }) => value)],
    named: [
      ...env.named,
      ...changed.filter(({ isNamed }) => isNamed).map(({ value }) => value),
      ...namedInArguments(resolved.args),
    ],
  };
}

/**
 * Names whose values are places (of a socket, a folder, a file or a service; the password of an address is found in it) or
 * words for a kind, such as `AUTH_METHOD=password`: an error without them would not say what to do.
 */
const NO_SECRET_NAME =
  /^pwd$|^google_application_credentials$|(sock|dir|file|path|home|ur[il]|host|type|mode|method|scheme|store|helper|provider|backend)$/i;

/**
 * Secrets of the environment that a server inherits, by the names of its variables: tokens of other servers, and the keys of
 * models. What a program prints when it fails may hold all of them.
 */
export const inheritedSecrets = (env: Env): string[] =>
  Object.entries(env).flatMap(([name, value = ""]) => [
    ...(isSecretName(name) && !NO_SECRET_NAME.test(name) ? [value] : []),
    ...namedInUrl(value),
  ]);

type Kind = Target["kind"];
type OfKind<K extends Kind> = Extract<Target, { kind: K }>;

/** Kind of target -> its secrets, from the target as it is written and as it was resolved. */
const SECRETS: { readonly [K in Kind]: (written: OfKind<K>, resolved: OfKind<K>) => Secrets } = {
  socket: () => ({ values: [], named: [] }),
  http: (written, resolved) => {
    const headers = inRecord(written.headers, resolved.headers);
    const signing = resolved.requestHeadersCommand;
    const program = signing
      ? ofProgram(written.requestHeadersCommand ?? signing, signing)
      : { values: [], named: [] };
    const url = substituted(written.url, resolved.url);
    return {
      values: [...headers.values, ...program.values, ...url, ...secretParts(resolved.url)],
      named: [
        ...headers.named,
        ...program.named,
        ...headers.values.filter((value) => SHORT_KEY.test(value)),
        ...(isSecretSource(written.url) ? url : []),
        ...namedInUrl(resolved.url),
        ...keyAsName(resolved.url),
      ],
    };
  },
  stdio: ofProgram,
};

/** Secrets of a definition, from the target as it is written and as it was resolved. */
export const secretsOf = (written: Target, resolved: Target): Secrets =>
  SECRETS[resolved.kind]((written.kind === resolved.kind ? written : resolved) as never, resolved as never);

/** Keys of a plan whose values are secret. The path of a file is not. */
const OAUTH_SECRETS = [
  "clientSecret",
  "privateKey",
  "assertion",
] as const satisfies readonly (keyof OAuthPlan)[];

/** Secrets of a plan for OAuth, from the plan as it is written and as it was resolved. */
export function oauthSecrets(written: OAuthPlan | false, resolved: OAuthPlan): Secrets {
  const before: Partial<OAuthPlan> = written === false ? {} : written;
  const params = inRecord(before.authorizationParams ?? {}, resolved.authorizationParams ?? {});
  const texts = Object.entries(resolved).flatMap(([key, value]) => {
    const from = before[key as keyof OAuthPlan];
    if (typeof from !== "string" || typeof value !== "string") return [];
    return substituted(from, value).map((text) => ({ text, isNamed: isSecretSource(from) }));
  });
  return {
    values: [...params.values, ...texts.map(({ text }) => text)],
    named: [
      ...OAUTH_SECRETS.flatMap((key) => resolved[key] ?? []),
      ...params.named,
      ...texts.filter(({ isNamed }) => isNamed).map(({ text }) => text),
    ],
  };
}
