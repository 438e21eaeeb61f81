/**
 * The command `pi-mcp-threads`: the MCP servers of Pi without Pi, on the same worker. Owns: the check that Node is new
 * enough, in a syntax that an old Node reads, before anything else is loaded. Must not: import anything, for the same
 * reason. Started by: the shell (`bin` in package.json).
 * Layers, each knows only those behind it: main | commands | session | state, arguments, words, place, console.
 * To add a command: a row in words/table.ts, a file in commands and its line in commands.ts, a row in docs/command-line.md.
 */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

/** The same as `engines` in package.json. */
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `pi-mcp-threads needs Node 22.19 or later. This is Node ${process.versions.node} (${process.execPath}).\n`,
  );
  process.exitCode = 7;
} else {
  // Before the import, so that its code comes from the cache: the same folder as Pi's.
  process.getBuiltinModule("node:module").enableCompileCache();
  import("./main.ts").then(({ main }) => main());
}

export {};
