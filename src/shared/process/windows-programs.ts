/**
 * Absolute paths of programs that belong to Windows. Windows looks into the current folder before PATH, and a clone
 * may hold a `taskkill.exe`, so no such program is started by its bare name. Pure.
 */

type Env = Readonly<Record<string, string | undefined>>;

const WINDOWS_FOLDER = "C:\\Windows";
const ON_A_DRIVE = /^[a-z]:[\\/]/i;

/** Windows ignores the case of names. A worker's copy of the environment does not. */
function readVariable(env: Env, name: string): string | undefined {
  const key = Object.keys(env).find((candidate) => candidate.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : env[key];
}

const onADrive = (path: string | undefined): string | undefined =>
  path !== undefined && ON_A_DRIVE.test(path) ? path : undefined;

/** For example `taskkill.exe` -> `C:\Windows\System32\taskkill.exe`. */
export function systemProgram(name: string, env: Env): string {
  const folder =
    onADrive(readVariable(env, "SystemRoot")) ?? onADrive(readVariable(env, "windir")) ?? WINDOWS_FOLDER;
  return `${folder.replace(/[\\/]+$/, "")}\\System32\\${name}`;
}

/** The user's command shell where ComSpec names one by its whole path, else `cmd.exe` of Windows. */
export const commandShell = (env: Env): string =>
  onADrive(readVariable(env, "ComSpec")) ?? systemProgram("cmd.exe", env);
