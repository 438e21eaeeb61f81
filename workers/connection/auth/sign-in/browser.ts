/**
 * Starts the user's browser at the address of a sign-in. Owns: which program that is, and when there is none, for
 * example over SSH. The program is started by its whole path, without a shell, and not in the folder in which Pi runs.
 */
import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { basename, win32 } from "node:path";
import { systemProgram } from "../../../../src/shared/process/strays.ts";
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import { isOpenable } from "../../../../src/shared/text/reading.ts";
import { childEnvironment, type Env, endsOf, findHere } from "../../../shared/programs/find-program.ts";

export interface BrowserOptions {
  env: Env;
  platform: NodeJS.Platform;
  /** Gets one line for the log. */
  onNote: (note: string) => void;
}

/** A program that shows an address. `command`: an absolute path, or a name that is looked for on the search path. */
interface Opener {
  command: string;
  args: string[];
}

/** On Windows any other file than a program would be started by a shell. */
const isAbsoluteProgram = (file: string, platform: NodeJS.Platform): boolean =>
  platform === "win32" ? /^[a-z]:[\\/].*\.(?:exe|com)$/i.test(file) : file.startsWith("/");

/** Without BROWSER. A user at the other end of SSH does not see this machine's screen, unless it is forwarded. */
function systemOpeners(url: string, { env, platform }: Pick<BrowserOptions, "env" | "platform">): Opener[] {
  const hasDisplay = env.DISPLAY || env.WAYLAND_DISPLAY;
  if ((env.SSH_CONNECTION || env.SSH_TTY) && !hasDisplay) return [];
  if (platform === "darwin") return [{ command: "/usr/bin/open", args: [url] }];
  if (platform === "win32") {
    return [{ command: systemProgram("rundll32.exe", env), args: ["url.dll,FileProtocolHandler", url] }];
  }
  const isWsl = env.WSL_DISTRO_NAME || env.WSL_INTEROP;
  return [
    ...(isWsl ? [{ command: "wslview", args: [url] }] : []),
    ...(hasDisplay ? [{ command: "xdg-open", args: [url] }] : []),
  ];
}

/**
 * The programs to try, in this order. BROWSER wins if it names a program by its whole path: editors set it to one that
 * opens the address on the user's own machine. `none` or nothing in BROWSER: no browser is opened. Pure.
 */
export function openersFor(url: string, options: Pick<BrowserOptions, "env" | "platform">): Opener[] {
  const { env, platform } = options;
  const named = env.BROWSER?.trim();
  if (named === "" || named?.toLowerCase() === "none") return [];
  const own =
    named !== undefined && isAbsoluteProgram(named, platform) ? [{ command: named, args: [url] }] : [];
  return [...own, ...systemOpeners(url, options)];
}

/** Settles when the program runs; rejects if it cannot be started. */
function start(
  program: string,
  { args }: Opener,
  env: Record<string, string>,
  onNote: (note: string) => void,
) {
  return new Promise<void>((resolve, reject) => {
    const child = spawn(program, args, { cwd: "/", env, detached: true, stdio: "ignore", windowsHide: true });
    child.once("error", reject);
    child.once("spawn", resolve);
    child.once("exit", (code) => {
      if (code !== 0 && code !== null) onNote(`${basename(program)} ended with code ${code}`);
    });
    child.unref();
  });
}

/** The programs for the address that are on this machine, in the order in which to try them. */
async function* findOpeners(url: string, { env: base, platform }: Pick<BrowserOptions, "env" | "platform">) {
  const folders = { cwd: process.cwd(), home: homedir() };
  const independentOf = { ...folders, ends: await endsOf(base, folders) };
  const env = childEnvironment({ base, own: {}, platform, independentOf });
  for (const opener of openersFor(url, { env: base, platform })) {
    const program = await findHere(opener.command, { env, cwd: "/" });
    if (program !== undefined) yield { program, opener, env };
  }
}

/** Whether there is a program that can be told to open an address. It is not started. Never rejects. */
export async function hasBrowser(options: Pick<BrowserOptions, "env" | "platform">): Promise<boolean> {
  for await (const _found of findOpeners("https://localhost/", options)) return true;
  return false;
}

/** Never rejects: a browser that cannot be started is a note, and the user opens the address. */
export async function openBrowser(url: string, options: BrowserOptions): Promise<"started" | "none"> {
  const { onNote } = options;
  if (!isOpenable(URL.parse(url))) return "none";
  for await (const { program, opener, env } of findOpeners(new URL(url).href, options)) {
    try {
      await start(program, opener, env, onNote);
      return "started";
    } catch (error) {
      onNote(`${win32.basename(program)} could not be started: ${messageOf(error)}`);
    }
  }
  return "none";
}
