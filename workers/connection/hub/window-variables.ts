/**
 * Variables that only name the terminal, the window or the shell in which a session runs. A shared server does not get them:
 * it would get those of whichever session came first, and no two sessions could share a server. All other variables are
 * given, and two sessions in which one differs have a process each. Pure.
 */
import { SERVING_VARIABLE } from "../../../src/shared/process/serving.ts";
import type { Env } from "../../shared/programs/find-program.ts";

/** Names, or beginnings of names before `*`, each with what they name. */
export const WINDOW_VARIABLES: Readonly<Record<string, string>> = {
  _: "the program that the shell started last",
  PWD: "the shell's folder; the server has its own",
  OLDPWD: "the folder before it",
  SHLVL: "how deep the shell is",
  COLUMNS: "the terminal's size",
  LINES: "the terminal's size",
  TERM: "the kind of terminal; a server has none",
  COLORTERM: "the same",
  TERM_PROGRAM: "the same",
  TERM_PROGRAM_VERSION: "the same",
  TERM_SESSION_ID: "a window of macOS's Terminal",
  __CFBundleIdentifier: "the program of macOS whose window it is",
  LC_TERMINAL: "the kind of terminal, beyond SSH",
  LC_TERMINAL_VERSION: "the same",
  WINDOWID: "a window of X11",
  WINDOW: "a window of screen",
  STY: "a session of screen",
  "TMUX*": "a session and a pane of tmux",
  "ZELLIJ*": "a session and a pane of Zellij",
  "ITERM_*": "a session of iTerm2",
  "KITTY_*": "a window of kitty",
  "WEZTERM_*": "a pane of WezTerm",
  "ALACRITTY_*": "a window of Alacritty",
  "GHOSTTY_*": "where Ghostty lies, in its windows",
  "KONSOLE_*": "a window of Konsole",
  "GNOME_TERMINAL_*": "a window of GNOME Terminal",
  "VTE_*": "the kind of terminal",
  WT_SESSION: "a tab of Windows Terminal",
  WT_PROFILE_ID: "the same",
  "VSCODE_*": "a window of VS Code",
  "CURSOR_TRACE_*": "a window of Cursor",
  SSH_TTY: "the terminal of an SSH session",
  SSH_CONNECTION: "the addresses of an SSH session",
  SSH_CLIENT: "the same",
  XDG_SESSION_ID: "a login session",
  XDG_VTNR: "its console",
  GPG_TTY: "the terminal for questions of GnuPG",
  INSIDE_EMACS: "a shell within Emacs",
  STARSHIP_SESSION_KEY: "a shell",
  STARSHIP_SHELL: "the same",
  "PI_SESSION_*": "a session of Pi",
  PI_CODING_AGENT: "that Pi runs it; the command of this package does not",
  AI_AGENT: "the same",
  [SERVING_VARIABLE]: "that `serve` runs it",
  PI_OFFLINE: "an option of one run of Pi",
  PI_SKIP_VERSION_CHECK: "the same",
  INIT_CWD: "the folder in which npm was called",
  npm_lifecycle_event: "the script of npm that started Pi",
  npm_lifecycle_script: "the same",
};

const exact = new Set(Object.keys(WINDOW_VARIABLES).filter((name) => !name.endsWith("*")));
const starts = Object.keys(WINDOW_VARIABLES)
  .filter((name) => name.endsWith("*"))
  .map((name) => name.slice(0, -1));

export const isWindowVariable = (name: string): boolean =>
  exact.has(name) || starts.some((start) => name.startsWith(start));

export const withoutWindow = (env: Env): Env =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !isWindowVariable(name)));
