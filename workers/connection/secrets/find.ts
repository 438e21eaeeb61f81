/**
 * What of a server's definition no text may show: environment and headers, what variables and commands put in,
 * what only the server may see of its URL, and arguments whose name says so (`--token abc`). Pure.
 */
import { percentDecoded } from "../../../src/shared/text/percent.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Secrets } from "./redact.ts";

type Target = ServerDefinition["target"];

const HOLDS_VARIABLE = /\$\{|\$env:|\{env:|^!/;
/** In the name of a flag, variable, header or query parameter. Tokens that are counted are a model's. */
const SECRET_NAME =
  /secret|token(?!s|iz|[-_]?(limit|count|budget))|password|passwd|passphrase|credential|bearer|cookie|api[-_]?key|(access|private|auth)[-_]?key|(^|[-_])(key|pass|pwd|pat|auth|authorization)($|[-_])/i;
/** `--name=value`, `NAME=value` as for `docker run -e`, and `Name: value` as for `--header`. */
const NAMED_VALUE = /^-{0,2}([A-Za-z][\w.-]*)[=:]\s*(.+)$/s;
/** A part of a path that nobody would choose as a name. */
const OPAQUE = /^(?=.*\d)(?=.*[A-Za-z])[\w-]{20,}$/;

const isSecretName = (name: string): boolean => SECRET_NAME.test(name);

/** A command's output, or a variable whose name says so. */
const isSecretSource = (written: string): boolean =>
  written.startsWith("!") ||
  [...written.matchAll(/(?:\$\{|\$env:|\{env:)(\w+)/g)].some(([, name = ""]) => isSecretName(name));

/** What variables or a command put into a text: the part that differs from what was written. */
function substituted(written: string, resolved: string): string[] {
  if (!HOLDS_VARIABLE.test(written) || written === resolved) return [];
  // The command's text has nothing to do with what it printed.
  if (/^!(?!!)/.test(written)) return [resolved];
  let start = 0;
  while (start < written.length && written[start] === resolved[start]) start++;
  let end = 0;
  const most = Math.min(written.length, resolved.length) - start;
  while (end < most && written.at(-1 - end) === resolved.at(-1 - end)) end++;
  return [resolved.slice(start, resolved.length - end)];
}

/** Too short to be looked for anywhere, but no word either: in a header nobody would miss it. */
const SHORT_KEY = /^(?=.*\d)(?=.*[A-Za-z])\S{4,7}$/;

/** What a URL tells the server alone: its query and userinfo, as written and as meant, and keys in its path. */
function secretParts(url: string): string[] {
  const parsed = URL.parse(url);
  if (!parsed) return [];
  const { search, searchParams, username, password, pathname } = parsed;
  const written = [search.slice(1), username, password];
  const keys = pathname.split("/").filter((part) => OPAQUE.test(part));
  // As the Authorization header holds it, in base64.
  const pair = password === "" ? [] : [`${percentDecoded(username)}:${percentDecoded(password)}`];
  return [...written, ...written.map(percentDecoded), ...searchParams.values(), ...keys, ...pair].filter(
    (part) => part !== "",
  );
}

/** Of a URL: its password, and what its query names as secret. */
function namedInUrl(text: string): string[] {
  const parsed = /^[a-z][\w+.-]*:\/\//i.test(text) ? URL.parse(text) : null;
  if (!parsed) return [];
  const values = [...parsed.searchParams].flatMap(([name, value]) => (isSecretName(name) ? [value] : []));
  return [parsed.password, percentDecoded(parsed.password), ...values].filter((part) => part !== "");
}

/** A name without a password in the address of a server: keys are given so. */
function keyAsName(url: string): string[] {
  const { username = "", password = "" } = URL.parse(url) ?? {};
  return username === "" || password !== "" ? [] : [username, percentDecoded(username)];
}

/** What arguments name as secret, wherever it came from. */
function namedInArguments(args: readonly string[]): string[] {
  return args.flatMap((arg, i) => {
    const [, name = "", value = ""] = NAMED_VALUE.exec(arg) ?? [];
    if (isSecretName(name)) return [value];
    const next = args[i + 1];
    const isFlag = /^--?[A-Za-z][\w.-]*$/.test(arg) && isSecretName(arg.replace(/^-+/, ""));
    const behind = isFlag && next !== undefined && !next.startsWith("--") ? [next] : [];
    return [...behind, ...namedInUrl(arg), ...namedInUrl(value)];
  });
}

/** Values of a record by name: all of them, and those whose name or source says that they are secret. */
function inRecord(written: Record<string, string>, resolved: Record<string, string>): Secrets {
  const entries = Object.entries(resolved);
  const isNamed = (name: string): boolean => isSecretName(name) || isSecretSource(written[name] ?? "");
  return {
    values: entries.map(([, value]) => value),
    named: entries.filter(([name]) => isNamed(name)).map(([, value]) => value),
  };
}

/** What a definition holds that no text may show, from how it is written and what that resolved to. */
export function secretsOf(written: Target, resolved: Target): Secrets {
  if (resolved.kind === "http") {
    const before = written.kind === "http" ? written : resolved;
    const headers = inRecord(before.headers, resolved.headers);
    const url = substituted(before.url, resolved.url);
    return {
      values: [...headers.values, ...url, ...secretParts(resolved.url)],
      named: [
        ...headers.named,
        ...headers.values.filter((value) => SHORT_KEY.test(value)),
        ...(isSecretSource(before.url) ? url : []),
        ...namedInUrl(resolved.url),
        ...keyAsName(resolved.url),
      ],
    };
  }
  const before = written.kind === "stdio" ? written : resolved;
  const env = inRecord(before.env, resolved.env);
  const texts = [
    [before.command, resolved.command],
    [before.cwd ?? "", resolved.cwd ?? ""],
    ...before.args.map((arg, i) => [arg, resolved.args[i] ?? ""]),
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
