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

export type ParsedCommand =
  | { kind: "npx"; request: NpxRequest }
  /** Not a command of npm's. */
  | { kind: "other" }
  /** A command of npm's that only npm understands for certain. */
  | { kind: "unsure"; reason: string };

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

export function parseNpxCommand(command: string, args: readonly string[]): ParsedCommand {
  const name = baseName(command);
  if (name === "npx" || name === "npx.cmd") return parse({ command, args: [] }, "npx", args);
  const isExec = args[0] === "exec" || args[0] === "x";
  if ((name !== "npm" && name !== "npm.cmd") || !isExec) return { kind: "other" };
  return parse({ command, args: ["exec"] }, "npm", args.slice(1));
}

function parse(npm: NpxRequest["npm"], by: "npx" | "npm", args: readonly string[]): ParsedCommand {
  const words = splitWords(args, by);
  if ("reason" in words) return { kind: "unsure", reason: words.reason };
  const flags = readFlags(words.flags, by);
  if ("reason" in flags) return { kind: "unsure", reason: flags.reason };
  const [first, ...rest] = words.rest;
  if (first === undefined || first === "") return { kind: "unsure", reason: "it names nothing to run" };
  const named = flags.packages.length > 0;
  if (named && /[\\/]/.test(first)) return { kind: "unsure", reason: `"${first}" is a path` };

  const packages: PackageSpec[] = [];
  for (const raw of named ? flags.packages : [first]) {
    const spec = parseSpec(raw);
    if (!spec) return { kind: "unsure", reason: `"${raw}" is no package of a registry` };
    packages.push(spec);
  }
  const bin = named ? first : undefined;
  return { kind: "npx", request: { npm, yes: flags.yes, packages, bin, args: rest } };
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
