/**
 * Reads an `npx` or `npm exec` command line: its packages, its binary, and the arguments of the server. A command line
 * that is not understood for certain is declined, and npx itself is run. Pure.
 */

import satisfies from "semver/functions/satisfies.js";
import valid from "semver/functions/valid.js";
import validRange from "semver/ranges/valid.js";
import { type NpmWords, npmWords } from "./npm-words.ts";

export interface NpxRequest {
  /** The command that asks npm for packages: `npx`, or `npm exec`. */
  npm: { command: string; args: string[] };
  /** `--yes` was given. */
  yes: boolean;
  /** At least one. */
  packages: PackageSpec[];
  /** Name of the binary, given with `--package`; undefined: the package's own binary. */
  bin: string | undefined;
  /** Arguments of the server. */
  args: string[];
}

export type ParsedCommand =
  | { kind: "npx"; words: NpmWords; request: NpxRequest }
  /** Not a command of npm. */
  | { kind: "other" }
  /** A command that only npm understands for certain. */
  | { kind: "unsure"; words: NpmWords; reason: string };

type Words = { flags: string[]; rest: string[] } | { reason: string };
type Flags = { yes: boolean; packages: string[] } | { reason: string };

/** Flags that only say how much npm prints. */
const QUIET = new Set(["-q", "--quiet", "-s", "--silent"]);
const YES = new Set(["-y", "--yes"]);
/** `-p` means `--package` to npx, but `--parseable` to `npm exec`. */
const PACKAGE = { npx: /^(?:-p|--package)(?:=(.*))?$/, npm: /^--package(?:=(.*))?$/ };
/** `npm exec` takes such a word as the value of a boolean flag before it. */
const BOOLEAN_VALUE = /^(?:true|false|null)$/;

export function parseNpxCommand(
  command: string,
  args: readonly string[],
  platform: NodeJS.Platform = process.platform,
): ParsedCommand {
  const words = npmWords(command, args, platform);
  if (!words) return { kind: "other" };
  const request = parse(words);
  return "reason" in request ? { kind: "unsure", words, ...request } : { kind: "npx", words, request };
}

function parse({ command, args: all, isExec }: NpmWords): NpxRequest | { reason: string } {
  const by = isExec ? "npm" : "npx";
  const words = splitWords(isExec ? all.slice(1) : all, by);
  if ("reason" in words) return words;
  const flags = readFlags(words.flags, by);
  if ("reason" in flags) return flags;
  const [first, ...rest] = words.rest;
  if (first === undefined || first === "") return { reason: "it names nothing to run" };
  const named = flags.packages.length > 0;
  if (named && /[\\/]/.test(first)) return { reason: `"${first}" is a path` };
  // Behind a `--`; npm may take it for a package, and whoever wrote it meant a flag.
  if (!named && first.startsWith("-")) return { reason: `"${first}" behind -- looks like a flag` };

  const packages: PackageSpec[] = [];
  for (const raw of named ? flags.packages : [first]) {
    const spec = parseSpec(raw);
    if (!spec) return { reason: `"${raw}" is not a package of a registry` };
    packages.push(spec);
  }
  const npm = { command, args: isExec ? ["exec"] : [] };
  return { npm, yes: flags.yes, packages, bin: named ? first : undefined, args: rest };
}

/**
 * Separates the flags of npm from the command that npm runs. npx ends its flags at the first word or at `--`; npm exec
 * ends them only at `--` and would read a later flag as its own.
 */
function splitWords(args: readonly string[], by: "npx" | "npm"): Words {
  const flags: string[] = [];
  let i = 0;
  for (; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (!arg.startsWith("-") || arg === "--") break;
    flags.push(arg);
    if (PACKAGE[by].exec(arg) && !arg.includes("=")) flags.push(args[++i] ?? "");
  }
  const rest = args.slice(args[i] === "--" ? i + 1 : i);
  if (by === "npx" || args[i] === "--") return { flags, rest };
  if (BOOLEAN_VALUE.test(rest[0] ?? "")) return { reason: `npm could read "${rest[0]}" as a flag's value` };
  const end = rest.indexOf("--");
  const own = end === -1 ? rest : rest.slice(0, end);
  if (own.some((word) => word.startsWith("-"))) {
    return { reason: "npm would read flags after the package as its own; put -- before them" };
  }
  return { flags, rest: end === -1 ? rest : [...own, ...rest.slice(end + 1)] };
}

function readFlags(flags: readonly string[], by: "npx" | "npm"): Flags {
  const packages: string[] = [];
  let yes = false;
  for (let i = 0; i < flags.length; i++) {
    const flag = flags[i] ?? "";
    const named = PACKAGE[by].exec(flag);
    if (named) {
      const value = named[1] ?? flags[++i] ?? "";
      if (value === "" || value.startsWith("-")) return { reason: `${flag} names no package` };
      packages.push(value);
    } else if (YES.has(flag)) yes = true;
    else if (!QUIET.has(flag)) return { reason: `only npm knows what ${flag.split("=", 1)[0]} does` };
  }
  return { yes, packages };
}

export interface PackageSpec {
  /** As the command line writes it: the name of npm's cache folder depends on that. */
  raw: string;
  name: string;
  kind: "version" | "range" | "tag";
  /** The part after the name; `*` if there is none. */
  wanted: string;
}

const SPEC = /^((?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*)(?:@(.+))?$/i;
/** What `encodeURIComponent` leaves as it is. That throws at half a character. npm takes what begins with a dot or `~` for a folder. */
const TAG = /^(?![.~])[\w.!~*'()-]+$/;
/** npm takes such a name for a file. */
const ARCHIVE = /\.(?:tgz|tar\.gz|tar)$/i;

/** Undefined for anything but a package of a registry. */
export function parseSpec(raw: string): PackageSpec | undefined {
  const match = SPEC.exec(raw);
  const name = match?.[1];
  if (name === undefined || ARCHIVE.test(raw)) return undefined;
  // As in npm, a name alone means any version, and yet npx asks the registry for the newest one.
  const wanted = match?.[2] ?? "*";
  if (valid(wanted, true) !== null) return { raw, name, kind: "version", wanted };
  if (validRange(wanted, true) !== null) return { raw, name, kind: "range", wanted };
  if (!TAG.test(wanted)) return undefined;
  return { raw, name, kind: "tag", wanted };
}

/** Whether the spec allows an installed version. A tag says nothing about versions. */
export function isWanted({ kind, wanted }: PackageSpec, version: string): boolean {
  if (kind === "tag" || wanted === "*") return true;
  return satisfies(version, wanted, { loose: true });
}
