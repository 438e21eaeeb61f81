/**
 * Which servers the rules of a policy fit. A rule that denies fits widely and one that allows fits narrowly, so that another
 * spelling of the same server escapes neither. What is known only at connect (variables, commands) is judged then. Pure.
 */

import { parseSpec } from "../../npx/command.ts";
import type { PolicyRule, PolicyRules } from "../entry/definition.ts";
import { isLate } from "../entry/interpolate.ts";
import { matchesPattern } from "../entry/patterns.ts";
import { decidesWhatRuns } from "../env-files/deciding-variables.ts";

export interface Judged {
  name: string;
  target:
    | {
        kind: "stdio";
        command: string;
        args: readonly string[];
        env: Readonly<Record<string, string>>;
        envFile?: string | undefined;
      }
    | { kind: "http"; url: string }
    /** Judged by its name alone: nobody knows what answers behind it. */
    | { kind: "socket"; socket: string };
  /** The values are those that the connection uses. */
  isResolved: boolean;
}

/** Undefined: not known yet. */
type Fit = boolean | undefined;

const plain = (text: string): string => text.normalize("NFKC").toLowerCase();
const plainName = (text: string): string => plain(text).replace(/[\s\p{Cf}._-]/gu, "");

const both = (a: Fit, b: Fit): Fit =>
  a === false || b === false ? false : a === undefined || b === undefined ? undefined : true;

const baseOf = (program: string): string => program.replace(/^.*[\\/]/s, "");

/** `--package=` of `--package=@acme/x`. */
const OPTION = /^--?[\w-]+=/;

/**
 * The spellings of a word by which a rule that denies knows it: a path, an extension, a version, an option before it, the
 * package behind an alias (`x@npm:@acme/x`).
 */
function spellings(word: string): string[] {
  const value = word.replace(OPTION, "");
  const all = [word, ...[value, value.replace(/^.*?npm:\/?/is, "")].flatMap(spellingsOfValue)];
  return all.map(plain);
}

function spellingsOfValue(value: string): string[] {
  const base = baseOf(value);
  return [
    value,
    base,
    base.replace(/\.(?:exe|cmd|bat|com|ps1|[cm]?[jt]s)$/i, ""),
    value.replace(/(.)@[^@/]*$/s, "$1"),
  ];
}

const fitsWord = (pattern: string, word: string): boolean =>
  spellings(word).some((spelling) => matchesPattern(plain(pattern), spelling));

/** Whether what runs is known only when the server is connected. */
export const isKnownLate = (target: Judged["target"]): boolean => {
  if (target.kind === "socket") return false;
  return target.kind === "http"
    ? isLate(target.url)
    : target.envFile !== undefined ||
        [target.command, ...target.args].some((word) => isLate(word) || word.startsWith("~"));
};

const listOf = (command: string | string[]): string[] => (Array.isArray(command) ? command : [command, "**"]);

function commandFits(rule: string | string[], { target, isResolved }: Judged, isWide: boolean): Fit {
  if (target.kind !== "stdio") return false;
  const words = [target.command, ...target.args];
  if (!isResolved && isKnownLate(target)) return undefined;
  const patterns = listOf(rule);
  const isOpen = patterns.at(-1) === "**";
  const wanted = isOpen ? patterns.slice(0, -1) : patterns;
  if (isWide) {
    let at = 0;
    for (const pattern of wanted) {
      // The program itself may be run by another one (env, sh, cmd): it is looked for in every word.
      while (at < words.length && !fitsWord(pattern, words[at] ?? "")) at++;
      if (at === words.length) return false;
      at++;
    }
    return true;
  }
  // Such a variable makes another program of the same words.
  if (Object.keys(target.env).some(decidesWhatRuns)) return false;
  if (isOpen ? words.length < wanted.length : words.length !== wanted.length) return false;
  return wanted.every((pattern, i) => isAllowed(pattern, words[i] ?? ""));
}

/** A folder above, also in a file URL. */
const CLIMBS = /(?:^|[\\/])(?:\.|%2e){2}(?:[\\/]|$)/i;

/** The name of a package, and the version that is asked for. */
const partsOf = (spec: string): string[] => spec.split(/(?<=.)@/s);

/**
 * Whether a rule that allows fits a word. A `*` that something confines covers nothing that leads elsewhere: no folder
 * above, no other host of a URL, and, in what could be the name of a package, no other source and no version.
 */
function isAllowed(pattern: string, word: string): boolean {
  if (pattern === word || /^\*+$/.test(pattern)) return true;
  const option = OPTION.exec(pattern)?.[0];
  if (option !== undefined)
    return word.startsWith(option) && isAllowed(pattern.slice(option.length), word.slice(option.length));
  if (CLIMBS.test(word)) return false;
  if (patternOf(pattern)) {
    // Programs read these signs in several ways.
    if (/[\\\s@]/.test(word)) return false;
    return (
      urlFits(pattern, { name: "", target: { kind: "http", url: word }, isResolved: true }, false) === true
    );
  }
  if (pattern.startsWith("-") || !parseSpec(pattern.replaceAll("*", "0")))
    return matchesPattern(pattern, word);
  const wanted = partsOf(pattern);
  const parts = partsOf(word);
  if (!parseSpec(word) || parts.length !== wanted.length) return false;
  return wanted.every((part, i) => matchesPattern(part, parts[i] ?? ""));
}

interface Address {
  scheme: string;
  host: string;
  /** Empty: not given. */
  port: string;
  path: string;
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

const ADDRESS = /^(https?|\*):\/\/([^/?#@\\\s]+?)(?::(\d{1,5}|\*))?(\/[^?#\\\s]*)?$/i;

function patternOf(text: string): Address | undefined {
  const [, scheme = "", host = "", port = "", path = ""] = ADDRESS.exec(text) ?? [];
  const parsed = URL.parse(`https://${host}/`);
  if (host === "" || !parsed || parsed.hostname === "") return undefined;
  return {
    scheme: scheme === "*" ? "*" : `${scheme.toLowerCase()}:`,
    host: withoutDot(parsed.hostname),
    port,
    path: path === "" ? "*" : path,
  };
}

export const patternProblem = (url: string): string | undefined =>
  patternOf(url)
    ? undefined
    : "has a url that is no pattern: write for example https://*.example.com/mcp/*, without a user or a query";

const withoutDot = (host: string): string => host.replace(/\.+$/, "");

/** One spelling: what is percent-encoded, doubled slashes and case do not matter. */
function plainPath(path: string): string {
  let text = path;
  for (let i = 0; i < 4; i++) {
    const decoded = text.replace(/%[0-9a-f]{2}/gi, (code) =>
      String.fromCharCode(Number.parseInt(code.slice(1), 16)),
    );
    if (decoded === text) break;
    text = decoded;
  }
  const { pathname } = new URL(text.replace(/[\\/]+/g, "/").replace(/[?#]/g, ""), "http://x");
  return plain(pathname.replace(/\/+/g, "/"));
}

function urlFits(rule: string, { target, isResolved }: Judged, isWide: boolean): Fit {
  if (target.kind !== "http") return false;
  if (!isResolved && isKnownLate(target)) return undefined;
  const pattern = patternOf(rule);
  const url = URL.parse(target.url);
  // What cannot be read is allowed by no rule and escapes none.
  if (!pattern || !url) return isWide;
  const port = url.port || DEFAULT_PORTS[url.protocol] || "";
  if (!matchesPattern(pattern.host, withoutDot(url.hostname))) return false;
  if (isWide) {
    const isPort = pattern.port === "" || pattern.port === "*" || pattern.port === port;
    return isPort && matchesPattern(plain(pattern.path), plainPath(url.pathname));
  }
  if (pattern.scheme !== "*" && pattern.scheme !== url.protocol) return false;
  const wanted = pattern.port === "" ? DEFAULT_PORTS[url.protocol] : pattern.port;
  if (wanted !== "*" && wanted !== port) return false;
  const isOdd = pattern.path !== "*" && /%|\/\//.test(url.pathname);
  return !isOdd && matchesPattern(pattern.path, url.pathname);
}

function fits({ name, command, url }: PolicyRule, judged: Judged, isWide: boolean): Fit {
  const isNamed =
    name === undefined ||
    (isWide ? matchesPattern(plainName(name), plainName(judged.name)) : matchesPattern(name, judged.name));
  const target: Fit =
    command !== undefined
      ? commandFits(command, judged, isWide)
      : url !== undefined
        ? urlFits(url, judged, isWide)
        : true;
  return both(isNamed, target);
}

/** Why a server may not run, worded to follow a colon; undefined: it may, or that is known only when it is connected. */
export function reasonOf({ file, allow, deny }: PolicyRules, judged: Judged): string | undefined {
  const denies = deny.find((rule) => fits(rule, judged, true) === true);
  if (denies) return `the policy of this machine denies it (${file}:${denies.line})`;
  if (!allow || allow.some((rule) => fits(rule, judged, false) !== false)) return undefined;
  return `the policy of this machine does not allow it (${file})`;
}
