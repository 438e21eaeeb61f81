/** The dialect of each program whose servers can be imported. */
import type { HostName } from "../entry/schema.ts";
import { claudeCode, claudeDesktop } from "./claude.ts";
import { codex } from "./codex.ts";
import { cursor } from "./cursor.ts";
import type { Dialect } from "./dialect.ts";
import { opencode } from "./opencode.ts";
import { vscode } from "./vscode.ts";
import { windsurf } from "./windsurf.ts";

export const DIALECTS: Readonly<Record<HostName, Dialect>> = {
  cursor,
  "claude-code": claudeCode,
  "claude-desktop": claudeDesktop,
  codex,
  windsurf,
  vscode,
  opencode,
};
