/** Owns: whether the sandboxes of Linux work on this machine: the tests do not bring their program along. */
import { spawnSync } from "node:child_process";

export const hasSandbox = (): boolean =>
  spawnSync("bwrap", ["--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"]).status === 0;
