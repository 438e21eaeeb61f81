/**
 * Whether Python would look for modules in its working directory first. With `-m` and `-c` it does, and a file
 * `json.py` in a clone then runs in place of Python's own module. Pure.
 */
import { win32 } from "node:path";

const PYTHON = /^(?:python|pythonw|pypy|py)[\d.]*(?:\.exe)?$/i;
/** Flags that take the next argument as their value. */
const WITH_VALUE = /^-[A-Za-z]*[WX]$|^--check-hash-based-pycs$/;
/** `m` or `c` among flags that take no value. */
const RUNS_CODE = /^-[bBdEhiIOPqsSuvVx?]*[mc]/;

/** `program`: path or name. */
export function searchesWorkingDirectory(program: string, args: readonly string[]): boolean {
  if (!PYTHON.test(win32.basename(program))) return false;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (!arg.startsWith("-") || arg === "--") return false;
    if (RUNS_CODE.test(arg)) return true;
    if (WITH_VALUE.test(arg)) i++;
  }
  return false;
}
