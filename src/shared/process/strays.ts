/**
 * Processes that a server has started and that have left its group, as browsers do (setsid): a signal to the group does
 * not reach them. They are found while their parents live, from a list of all processes. Pure.
 */

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  /** When it was started, in the system's own form: a later process with the same pid has another one. */
  started: string;
  name: string;
}

/** `/proc/<pid>/stat` of Linux (proc_pid_stat(5)). A name may hold anything, also brackets. */
export function fromStat(text: string): ProcessRow | undefined {
  const [, pid, name = "", rest = ""] = /^(\d+) \(([\s\S]*)\) ([^)]*)$/.exec(text.trimEnd()) ?? [];
  const fields = rest.split(" ");
  const [, parent, group] = fields;
  // Field 22 of the whole; the third one is the first here.
  const started = fields[19];
  if (pid === undefined || started === undefined) return undefined;
  return { pid: Number(pid), parent: Number(parent), group: Number(group), started, name };
}

/** What `ps` prints for each process, without a head line. */
export const PS_COLUMNS = "pid=,ppid=,pgid=,lstart=,comm=";

/** macOS writes times as the user's language does, and in the user's time zone: both may differ between two processes. */
export const PS_ENV = { LC_ALL: "C", TZ: "UTC" };

/** The lines of `ps -o` with these columns. */
export function fromPs(text: string): ProcessRow[] {
  return text.split("\n").flatMap((line) => {
    const [, pid, parent, group, started = "", path = ""] =
      /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\w+\s+\w+\s+\w+\s+[\d:]+\s+\d+)\s+(.*)$/.exec(line) ?? [];
    if (pid === undefined) return [];
    const name = path.slice(path.lastIndexOf("/") + 1);
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), started, name }];
  });
}

/** Programs that open something for the person, with 15 characters of a name at least, as Linux has them. What they start, such as the person's browser, is not the server's. */
const OPENERS =
  /^(?:xdg-open|gio|gio-launch-desk(?:top)?|gnome-open|kde-open\d?|exo-open|sensible-browser?|(?:x-)?www-browser|wslview|open)$/;

/** The descendants of a process that a signal to its group does not reach. */
export function straysOf(pid: number, rows: readonly ProcessRow[]): ProcessRow[] {
  const children = Map.groupBy(rows, ({ parent }) => parent);
  const found: ProcessRow[] = [];
  const seen = new Set([pid]);
  for (const parent of seen) {
    for (const child of children.get(parent) ?? []) {
      if (seen.has(child.pid) || OPENERS.test(child.name)) continue;
      seen.add(child.pid);
      found.push(child);
    }
  }
  return found.filter(({ group }) => group !== pid);
}

/*
 * Absolute paths of programs that belong to Windows. Windows looks into the current folder before PATH, and a clone
 * may hold a `taskkill.exe`, so no such program is started by its bare name.
 */

type Env = Readonly<Record<string, string | undefined>>;

/** The value of a variable if it is a path on a drive. Windows ignores the case of names; a worker's copy of the environment does not. */
function pathIn(env: Env, name: string): string | undefined {
  const key = Object.keys(env).find((candidate) => candidate.toLowerCase() === name.toLowerCase());
  const path = key === undefined ? undefined : env[key];
  return path !== undefined && /^[a-z]:[\\/]/i.test(path) ? path : undefined;
}

/** For example `taskkill.exe` -> `C:\Windows\System32\taskkill.exe`. */
export function systemProgram(name: string, env: Env): string {
  const folder = pathIn(env, "SystemRoot") ?? pathIn(env, "windir") ?? "C:\\Windows";
  return `${folder.replace(/[\\/]+$/, "")}\\System32\\${name}`;
}

/** The user's command shell where ComSpec names one by its whole path, else `cmd.exe` of Windows. */
export const commandShell = (env: Env): string => pathIn(env, "ComSpec") ?? systemProgram("cmd.exe", env);
