/**
 * Pi's agent folder by Pi's own rule (`getAgentDir` of Pi), for main and for the command, which must mean one folder: it names
 * the hub, and the tokens lie there. Pure: the caller passes Node's functions.
 */

interface Machine {
  env: Readonly<Record<string, string | undefined>>;
  platform: string;
}

interface Node {
  homedir(): string;
  join(...parts: string[]): string;
  fileURLToPath(url: string): string;
}

/** A drive as Git Bash, Cygwin and WSL write it. */
const DRIVE = /^\/(?:mnt\/|cygdrive\/)?([a-z])(?:\/|$)/i;

/**
 * `$PI_CODING_AGENT_DIR`, in which `~` is the home and which may be a URL of a file, else `~/.pi/agent`. As relative as the
 * variable. Throws what Node throws for a URL that names no file.
 */
export function agentFolder({ env, platform }: Machine, { homedir, join, fileURLToPath }: Node): string {
  const isWindows = platform === "win32";
  let named = env.PI_CODING_AGENT_DIR || "~/.pi/agent";
  if (isWindows) named = named.replace(DRIVE, (_, drive: string) => `${drive.toUpperCase()}:/`);
  if (isWindows ? /^~(?=$|[\\/])/.test(named) : /^~(?=$|\/)/.test(named))
    return join(homedir(), named.slice(2));
  return named.startsWith("file://") ? fileURLToPath(named) : named;
}
