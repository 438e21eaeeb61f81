/**
 * The command `pi-mcp-threads`: the MCP servers of Pi without Pi, on the same worker. Owns: the check that Node is new
 * enough, in a syntax that an old Node reads, before anything else is loaded. Must not: import what loads a module, for the same
 * reason. Started by: the shell (`bin` in package.json).
 * Layers, each knows only those behind it: main | commands | session | arguments, words, place, console.
 * To add a command: a row in words/table.ts, a file in commands and its line in commands.ts, a row in docs/command-line.md.
 */
import { agentFolder } from "../shared/process/agent-folder.ts";
import { codeFolder } from "../shared/process/code-folder.ts";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

/** Before the import, so that its code comes from the cache. A folder that NODE_COMPILE_CACHE names is the user's choice. */
function useCompiledCode(): void {
  const builtin = process.getBuiltinModule;
  if (process.env.NODE_COMPILE_CACHE !== undefined) return;
  const path = builtin("node:path");
  const { homedir } = builtin("node:os");
  const { fileURLToPath } = builtin("node:url");
  try {
    const agentDir = agentFolder(process, { homedir, join: path.join, fileURLToPath });
    const folder = codeFolder(agentDir, { fs: builtin("node:fs"), path, uid: process.getuid?.() });
    if (folder !== undefined) builtin("node:module").enableCompileCache(folder);
  } catch {
    // place.ts says what is wrong with the variable.
  }
}

/** The same as `engines` in package.json. */
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `pi-mcp-threads needs Node 22.19 or later. This is Node ${process.versions.node} (${process.execPath}).\n`,
  );
  process.exitCode = 7;
} else {
  useCompiledCode();
  import("./main.ts").then(({ main }) => main());
}
