/**
 * How to start a binary without npx: JavaScript by node, any other file directly. The server gets the same things that
 * npx would give it: the path of the link as its name, and the folders of commands first on the search path.
 */
import { basename, delimiter, extname } from "node:path";
import { findHere } from "../../shared/programs/find-program.ts";
import { firstLineOf } from "../../shared/programs/launch.ts";
import { onWindows } from "../../shared/programs/processes.ts";
import { pathVariable } from "./environment.ts";
import type { Binary, Declined } from "./tree.ts";

export interface NpxLaunch {
  /** An absolute path. */
  command: string;
  args: string[];
  /** The whole environment. */
  env: Record<string, string>;
  cwd: string;
}

const JAVASCRIPT = new Set([".js", ".mjs", ".cjs"]);
/** `#!/usr/bin/env node`, also with `-S` and plain flags. A path to one certain node is left to the system. */
const NODE_SHEBANG = /^#!\s*\/(?:usr\/)?bin\/env\s+(?:-S\s+)?node((?:\s+-[\w=-]+)*)\s*$/;

export type Runner = { kind: "node"; flags: string[] } | { kind: "itself" };

/** The program that runs a file: its first line decides, otherwise its extension. Pure. */
export function runnerOf(file: string, firstLine: string): Runner {
  if (firstLine.startsWith("#!")) {
    const flags = NODE_SHEBANG.exec(firstLine)?.[1];
    if (flags === undefined) return { kind: "itself" };
    return { kind: "node", flags: flags.split(/\s+/).filter((flag) => flag !== "") };
  }
  return JAVASCRIPT.has(extname(file).toLowerCase()) ? { kind: "node", flags: [] } : { kind: "itself" };
}

/** The host is not always node: Pi may be a Bun build. */
const isNode = (file: string): boolean => /^node(?:\.exe)?$/i.test(basename(file));

/** The node that a command finds in this environment, otherwise the node that runs this process. */
export async function findNode(env: Record<string, string>, cwd: string): Promise<string | undefined> {
  return (await findHere("node", { env, cwd })) ?? (isNode(process.execPath) ? process.execPath : undefined);
}

export interface LaunchOptions {
  env: Record<string, string>;
  cwd: string;
  /** Folders of commands that come before PATH. */
  binFolders: readonly string[];
  args: string[];
  /** The node that runs the binary. Absent: the node that npx would find. */
  node?: string;
}

export async function launchOf(binary: Binary, options: LaunchOptions): Promise<NpxLaunch | Declined> {
  const { cwd, binFolders, args } = options;
  const path = pathVariable(options.env);
  const folders = [...new Set([binary.binFolder, ...binFolders]), path.value];
  const env = { ...options.env, [path.name]: folders.join(delimiter) };
  const runner = runnerOf(binary.file, await firstLineOf(binary.file));
  if (runner.kind === "itself") {
    if (onWindows) return { reason: `${binary.file} is not JavaScript` };
    return { command: binary.path, args, env, cwd };
  }
  const node = options.node ?? (await findNode(env, cwd));
  if (node === undefined) return { reason: "there is no node to run it" };
  return { command: node, args: [...runner.flags, binary.path, ...args], env, cwd };
}
