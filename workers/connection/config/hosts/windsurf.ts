/** Windsurf. Source: docs.windsurf.com, Config Interpolation. Pure. */
import { editorSyntax, fromCommon, mcpServers } from "./common.ts";
import type { Dialect } from "./dialect.ts";

export const windsurf: Dialect = {
  files: ({ facts: { home }, join }) => ({
    user: [join(home, ".codeium", "windsurf", "mcp_config.json")],
    project: [],
  }),
  groups: mcpServers,
  convert: (entry) => fromCommon(entry),
  syntax: () => editorSyntax({}),
  foreign: /\$\{(file:[^}]*)\}/g,
};
