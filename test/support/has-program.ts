/**
 * Owns: which programs this machine has that the tests do not bring along. A test that needs one looks here and does not run
 * without it; vitest.config.ts says so at the start of a run. Each is looked for once in a process.
 */
import { spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { relative } from "node:path";

const looked = new Map<string, boolean>();

function works(program: string, ...args: string[]): boolean {
  const key = [program, ...args].join(" ");
  const before = looked.get(key);
  if (before !== undefined) return before;
  const found = spawnSync(program, args).status === 0;
  looked.set(key, found);
  return found;
}

/** What a person sees is tested in a real terminal. */
export const hasTmux = (): boolean => works("tmux", "-V");

/** `bash`, `zsh` or `fish`. */
export const hasShell = (shell: string): boolean => works(shell, "--version");

/** A version that can be told not to import from the folder in which it runs. */
export const hasPython = (): boolean =>
  works("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))");

const isInTemp = (path: string): boolean =>
  [tmpdir(), "/tmp", "/var/tmp"]
    .filter((folder) => existsSync(folder))
    .some((folder) => !relative(realpathSync(folder), realpathSync(path)).startsWith(".."));

/** Whether the sandboxes of Linux work, and show the programs of this checkout: they hide temp folders. */
export const hasSandbox = (): boolean =>
  !isInTemp(import.meta.dirname) &&
  works("bwrap", ..."--ro-bind / / --unshare-pid --proc /proc true".split(" "));

/** The system's credential store is a stand-in in most tests; a real one needs these programs. */
export const hasKeyring = (): boolean =>
  ["dbus-daemon", "gdbus", "gnome-keyring-daemon", "secret-tool"].every(
    (program) => spawnSync(program, ["--version"]).error === undefined,
  );
