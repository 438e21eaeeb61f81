/**
 * Reads an `npx` or `npm exec` command line: which packages, which binary, which arguments are the
 * server's. Pure. Whatever it does not know for certain it declines, and npx itself is run.
 */
import { type PackageSpec, parseSpec } from "./spec.ts";

export interface NpxRequest {
  /** What asks npm for packages: `npx`, or `npm exec`. */
  npm: { command: string; args: string[] };
  /** `--yes` was given. */
  yes: boolean;
  /** At least one. */
  packages: PackageSpec[];
  /** Binary by name (with `--package`); undefined: the package's own. */
  bin: string | undefined;
  /** Arguments of the server. */
  args: string[];
}

/** A command line of npm's, without a command shell around it. */
export interface NpmWords {
  /** `npx` or `npm`, as it is written. */
  command: string;
  args: readonly string[];
  /** The first argument is npm's own command, `exec` or `x`. */
  isExec: boolean;
}

export type ParsedCommand =
  | { kind: "npx"; words: NpmWords; request: NpxRequest }
  /** Not a command of npm's. */
  | { kind: "other" }
  /** A command of npm's that only npm understands for certain. */
  | { kind: "unsure"; words: NpmWords; reason: string };

type Words = { flags: string[]; rest: string[] } | { reason: string };
type Flags = { yes: boolean; packages: string[] } | { reason: string };

/** Flags without influence on what runs: how much npm says of its own. */
const QUIET = new Set(["-q", "--quiet", "-s", "--silent"]);
const YES = new Set(["-y", "--yes"]);
/** `-p` means `--package` to npx, but `--parseable` to `npm exec`. */
const PACKAGE = { npx: /^(?:-p|--package)(?:=(.*))?$/, npm: /^--package(?:=(.*))?$/ };
/** `npm exec` gives one of these to a boolean flag before it. */
const BOOLEAN_VALUE = /^(?:true|false|null)$/;

const baseName = (command: string): string => command.split(/[\\/]/).at(-1)?.toLowerCase() ?? "";

/** What the command shell of Windows reads as its own. */
const FOR_SHELL = /[&|<>^%!"()\r\n]/;

/** `cmd /c npx ...` is how many write it for Windows. A line that holds more for the shell stays the shell's. */
function withoutShell(
  command: string,
  args: readonly string[],
): { command: string; args: readonly string[] } {
  const at = args.findIndex((arg) => /^\/c$/i.test(arg));
  const isPlain = at >= 0 && args.slice(0, at).every((arg) => /^\/[dsq]$/i.test(arg));
  if (!/^cmd(?:\.exe)?$/.test(baseName(command)) || !isPlain) return { command, args };
  const rest = args.slice(at + 1);
  if (rest.some((word) => FOR_SHELL.test(word))) return { command, args };
  const [first = "", ...others] = rest.length === 1 ? (rest[0] ?? "").trim().split(/\s+/) : rest;
  return { command: first, args: others };
}

/** The words of a line that npm reads, or undefined. */
function npmWords(command: string, args: readonly string[], platform: NodeJS.Platform): NpmWords | undefined {
  const words = platform === "win32" ? withoutShell(command, args) : { command, args };
  const [first] = words.args;
  if (/^npx(?:\.cmd|\.exe)?$/.test(baseName(words.command))) return { ...words, isExec: false };
  const isNpm = /^npm(?:\.cmd|\.exe)?$/.test(baseName(words.command));
  return isNpm && (first === "exec" || first === "x") ? { ...words, isExec: true } : undefined;
}

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

  const packages: PackageSpec[] = [];
  for (const raw of named ? flags.packages : [first]) {
    const spec = parseSpec(raw);
    if (!spec) return { reason: `"${raw}" is no package of a registry` };
    packages.push(spec);
  }
  const npm = { command, args: isExec ? ["exec"] : [] };
  return { npm, yes: flags.yes, packages, bin: named ? first : undefined, args: rest };
}

/**
 * Parts the flags of npm from what is to run. npx ends its flags at the first word or at `--`; npm exec
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
