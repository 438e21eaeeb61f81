/**
 * Claude Code and Claude Desktop. Source: code.claude.com/docs/en/mcp, Environment variable expansion. Claude Desktop
 * fills in nothing. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { escapeVariables } from "../entry/interpolate.ts";
import type { ConfigFacts } from "../files/files.ts";
import { fromCommon, mcpServers } from "./common.ts";
import { type Data, type Dialect, given, type Syntax } from "./dialect.ts";
import { claudeOauth } from "./oauth.ts";

/** Claude Code writes a folder on Windows with either slash, and the drive letter in either case. */
function sameFolder(a: string, b: string, { platform }: ConfigFacts): boolean {
  if (platform !== "win32") return a === b;
  const plain = (path: string): string => path.replaceAll("/", "\\").replace(/\\+$/, "").toLowerCase();
  return plain(a) === plain(b);
}

/** The entries of the working folder. Windows may have several; the one that is spelt as Pi spells it comes last. */
function localEntries(root: Data, facts: ConfigFacts): [folder: string, entry: Data][] {
  const { cwd } = facts;
  return Object.entries(isObject(root.projects) ? root.projects : {})
    .filter((entry): entry is [string, Data] => isObject(entry[1]) && sameFolder(entry[0], cwd, facts))
    .sort(([a], [b]) => Number(a === cwd) - Number(b === cwd));
}

/** `${X}` and `${X:-default}`, in one pass: a default is literal. */
const syntax: Syntax = {
  pattern: /\$\{([A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?)\}/g,
  fill: (variable) => {
    const [name = "", ...fallback] = variable.split(":-");
    if (fallback.length === 0) return { ours: `\${${name}}` };
    return { ours: `\${${name}:-${escapeVariables(fallback.join(":-"))}}` };
  },
};

export const claudeCode: Dialect = {
  // Its project file is `.mcp.json`, which is a source of its own.
  files: ({ facts: { home, env }, join }) => ({
    user: [join(given(env.CLAUDE_CONFIG_DIR) ?? home, ".claude.json")],
    project: [],
  }),
  groups: (root, facts) => [
    ...mcpServers(root, facts),
    ...localEntries(root, facts).map(([folder, { mcpServers: servers }]) => ({
      path: ["projects", folder, "mcpServers"],
      servers,
    })),
  ],
  /** The names that Claude Code's `/mcp` disabled in the working folder. */
  disabled: (root, facts) =>
    new Set(
      localEntries(root, facts).flatMap(([, { disabledMcpServers: names }]) =>
        Array.isArray(names) ? names : [],
      ),
    ),
  convert: (entry) => fromCommon(entry, claudeOauth(entry)),
  syntax: () => syntax,
  unusable: ({ headersHelper }) =>
    headersHelper === undefined ? undefined : "it gets its headers from a helper",
};

export const claudeDesktop: Dialect = {
  files: ({ appData, join }) => ({
    user: [join(appData, "Claude", "claude_desktop_config.json")],
    project: [],
  }),
  groups: mcpServers,
  convert: (entry) => fromCommon(entry),
};
