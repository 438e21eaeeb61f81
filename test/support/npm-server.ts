/** Owns: the entries of mcp.json that start the real servers from npm, each from one bundled file. */
import { join } from "node:path";
import { oneFile } from "./one-file.ts";

const PACKAGES = join(import.meta.dirname, "..", "..", "node_modules", "@modelcontextprotocol");

/** `name`: the package without its scope, for example `server-everything`. */
export function npmServer(name: string, ...args: string[]) {
  const { file, env } = oneFile(name, join(PACKAGES, name, "dist", "index.js"));
  return { command: process.execPath, args: [file, ...args], env };
}
