/**
 * How to start a binary without npx: JavaScript by node, anything else as it is. Keeps what npx gives its
 * child: the link's path as its name and the folders of commands first on the search path.
 */
import { open } from "node:fs/promises";
import { basename, delimiter, extname } from "node:path";
import { onWindows } from "../transports/process-tree.ts";
import { type Env, findCommand, pathFolders, pathVariable } from "./environment.ts";
import type { Binary, Declined } from "./tree.ts";

export interface NpxLaunch {
  command: string;
  args: string[];
  /** The variable of the search path, to be set over the definition's environment. */
  env: Record<string, string>;
}

const JAVASCRIPT = new Set([".js", ".mjs", ".cjs"]);
const FIRST_LINE_BYTES = 256;
/** `#!/usr/bin/env node`, also with `-S` and plain flags; a path to one certain node is left to the system. */
const NODE_SHEBANG = /^#!\s*\/(?:usr\/)?bin\/env\s+(?:-S\s+)?node((?:\s+-[\w=-]+)*)\s*$/;

export type Runner = { kind: "node"; flags: string[] } | { kind: "itself" };

/** Which program runs a file, by its first line and else by its extension. Pure. */
export function runnerOf(file: string, firstLine: string): Runner {
  if (firstLine.startsWith("#!")) {
    const flags = NODE_SHEBANG.exec(firstLine)?.[1];
    if (flags === undefined) return { kind: "itself" };
    return { kind: "node", flags: flags.split(/\s+/).filter((flag) => flag !== "") };
  }
  return JAVASCRIPT.has(extname(file).toLowerCase()) ? { kind: "node", flags: [] } : { kind: "itself" };
}

async function firstLineOf(file: string): Promise<string> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(FIRST_LINE_BYTES), 0, FIRST_LINE_BYTES, 0);
    return buffer.toString("latin1", 0, bytesRead).split(/\r?\n/, 1)[0] ?? "";
  } finally {
    await handle.close();
  }
}

/** The host is not always node: Pi may be a Bun build. */
const isNode = (file: string): boolean => /^node(?:\.exe)?$/i.test(basename(file));

/** The node that a command finds in these folders, else the one that runs us. */
export async function findNode(folders: readonly string[], cwd: string): Promise<string | undefined> {
  const found = await findCommand("node", { folders, cwd });
  return found ?? (isNode(process.execPath) ? process.execPath : undefined);
}

export async function launchOf(
  binary: Binary,
  { env, cwd, binFolders, args }: { env: Env; cwd: string; binFolders: readonly string[]; args: string[] },
): Promise<NpxLaunch | Declined> {
  const first = [...new Set([binary.binFolder, ...binFolders])];
  const path = pathVariable(env);
  const own = { [path.name]: [...first, path.value].join(delimiter) };
  const runner = runnerOf(binary.file, await firstLineOf(binary.file));
  if (runner.kind === "itself") {
    if (onWindows) return { reason: `${binary.file} is no JavaScript` };
    return { command: binary.path, args, env: own };
  }
  const node = await findNode([...first, ...pathFolders(env)], cwd);
  if (node === undefined) return { reason: "there is no node to run it" };
  return { command: node, args: [...runner.flags, binary.path, ...args], env: own };
}
