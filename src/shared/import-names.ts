/** The programs whose servers can be imported: what `imports` of a file and `import` of the shell may name. */

/** workers/connection/config/hosts/dialects.ts has a row for each. */
export const HOSTS = [
  "cursor",
  "claude-code",
  "claude-desktop",
  "codex",
  "windsurf",
  "vscode",
  "opencode",
  "gemini-cli",
  "copilot-cli",
] as const;

export type HostName = (typeof HOSTS)[number];

/** Also the plugins that Claude Code has installed (workers/connection/config/packages). */
export const IMPORTS = [...HOSTS, "claude-plugins"] as const;

export type ImportName = (typeof IMPORTS)[number];
