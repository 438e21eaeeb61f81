/** Cursor. Source: cursor.com/docs, Config interpolation. Pure. */
import { editorSyntax, editorVariables, mcpServers, withEnvFile } from "./common.ts";
import type { Dialect } from "./dialect.ts";

export const cursor: Dialect = {
  files: ({ facts: { home, cwd }, join }) => ({
    user: [join(home, ".cursor", "mcp.json")],
    project: [join(cwd, ".cursor", "mcp.json")],
  }),
  groups: mcpServers,
  convert: (entry) => withEnvFile(entry),
  syntax: (facts) => editorSyntax(editorVariables(facts)),
  foreign: /\$\{((?:input|config|command|workspaceFolder):[^}]*)\}/g,
};
