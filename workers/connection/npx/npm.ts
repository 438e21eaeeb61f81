/**
 * Runs npm, and says in plain words why it failed and how far it is. Owns: npm's process, which is reported and has ended
 * before its run settles, and npm's settings for a run that a person waits for.
 */

import { resolve } from "node:path";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Env } from "../../shared/programs/find-program.ts";
import { killTree, onWindows, spawnServer } from "../../shared/programs/processes.ts";

/** Why npm failed, known for certain from its error code. */
export interface NpmFailure {
  /** npm's code, such as `ENOTFOUND` or `E404`. */
  code: string;
  /** No package and no setting is wrong: what is installed already may be started. */
  isNetwork: boolean;
  /** A sentence without its full stop. */
  words: string;
  remedy: string;
}

/** Why npm itself is to be run. `failure`: npm has failed, and as the server's parent it would fail again. */
export type Declined = { reason: string; failure?: NpmFailure };

/** The folders of npm, as npm itself names them. */
export interface NpmFacts {
  cacheDir: string;
  globalPrefix: string;
  /** The file of the node that ran in npm's folder: a program called `node` may choose a version by its folder. */
  node: string;
}

/** What helps if npm's registry cannot be reached. */
export const NO_REGISTRY_REMEDY =
  "Connect to the network for the first start, or install the package and name its program as the command.";

/**
 * npm waits 10 and then 60 s before it tries a request again: without a network it would be silent for 70 s. As many
 * attempts within 3 s tell a network that is not there from one that is slow, and a slow answer has as long as before.
 * npm says each answer of the registry, as a sign of life, and does not look for a newer npm.
 */
export const RETRY_SOON: Readonly<Record<string, string>> = {
  npm_config_fetch_retry_mintimeout: "500",
  npm_config_fetch_retry_maxtimeout: "2000",
};
const TALKATIVE: Readonly<Record<string, string>> = {
  npm_config_loglevel: "http",
  npm_config_update_notifier: "false",
};

const PROXIES = ["https_proxy", "http_proxy", "proxy", "npm_config_https_proxy", "npm_config_proxy"];

/** As npm reads it (@npmcli/agent, isNoProxy): an entry stands for a host and all below it; no port, and no `*`. */
function isExcepted(host: string, env: Env): boolean {
  const found = Object.entries(env).filter(([name]) => /^(?:npm_config_)?no_?proxy$/i.test(name));
  const entries = found.flatMap(([, value = ""]) => value.split(","));
  return entries.some((entry) => {
    const name = entry.trim().replace(/^\.+/, "");
    return name !== "" && `.${host}`.endsWith(`.${name}`);
  });
}

/** The package that the registry lacks: one of the command, or one that it needs. */
const lackedBy = (stderr: string): string | undefined =>
  /(?:resource|for) '?((?:@[\w.~-]+\/)?[\w.~-]+)(?:@[^\s']*)?'? ?(?:could|is)/.exec(stderr)?.[1] ??
  /No matching version found for (\S+?)\.?\s/.exec(stderr)?.[1];

/** npm's code -> its words, with names of `facts` in braces, and the remedy. */
type Row = readonly [code: RegExp, words: string, remedy: string];

/** Failures that say nothing about the package: what is installed already may be started. */
const NETWORK: readonly Row[] = [
  [
    /^(?:ENOTFOUND|EAI_AGAIN|EAI_FAIL|ENODATA)$/,
    "{registry} cannot be found{through} ({code})",
    NO_REGISTRY_REMEDY,
  ],
  [
    /^(?:ECONN(?:REFUSED|RESET|ABORTED)|E(?:HOST|NET)UNREACH|E?TIMEDOUT|ETIMEOUT|ERR_SOCKET_TIMEOUT|EPIPE)$/,
    "{registry} cannot be reached{through} ({code})",
    NO_REGISTRY_REMEDY,
  ],
  [
    /CERT|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL/,
    "the certificate of {registry} is not trusted ({code})",
    "Set NODE_EXTRA_CA_CERTS or npm's cafile to the certificate of your network.",
  ],
  [/^E5\d\d$/, "{registry} has a fault ({status})", "Try again later."],
  [/^E429$/, "{registry} refuses more requests for now (429)", "Try again in a minute."],
  [
    /^E407$/,
    "the proxy before npm's registry wants a sign-in (407)",
    "Write user and password into npm's setting proxy.",
  ],
  [
    /^FETCH_ERROR$/,
    "{registry} answers with something else than packages",
    "A network that wants a sign-in answers so: open a page in a browser.",
  ],
  [/^ENOTCACHED$/, "npm is set to work offline, and {wanted} is not in its cache", "Unset npm's offline."],
];

/** What helps where a file may not be executed: the home folder of some machines is mounted so. */
const NO_EXEC_REMEDY =
  "Its disk may be mounted noexec: name a folder of another disk in npm_config_cache for what npm installs, and in PI_CODING_AGENT_DIR for Pi's own.";

const OTHERS: readonly Row[] = [
  // Before the row of what npm may not write: the same codes, of another syscall.
  [/^(?:EACCES|EPERM) spawn$/, "npm may not start {spawned} ({code})", NO_EXEC_REMEDY],
  // Of the shell in which npm starts a program (POSIX, 2.8.2).
  [/^126$/, "npm may not start a program of {wanted} (126)", NO_EXEC_REMEDY],
  [
    /^E404$/,
    "{registry} has no package {lacked}{by}",
    "Check its name in args. A private package needs npm's sign-in: npm login.",
  ],
  [
    /^(?:ETARGET|ENOVERSIONS)$/,
    "npm's registry has no version {lacked}",
    "Name a version in args that is published, or none.",
  ],
  [
    /^(?:E401|ENEEDAUTH|EOTP)$/,
    "{registry} wants a sign-in for {wanted} ({code})",
    "Sign in with npm login.",
  ],
  [
    /^E403$/,
    "{registry} refuses {wanted} (403)",
    "Its policy or your rights there forbid it: ask who runs the registry.",
  ],
  [
    /^(?:ENOSPC|EDQUOT)$/,
    "the disk is full, so npm cannot install {wanted}",
    "Free some space; npm cache clean --force frees npm's.",
  ],
  [
    /^(?:EACCES|EPERM|EROFS)$/,
    "npm may not write {path} ({code})",
    "Give the folder to your user: an earlier npm may have run as root.",
  ],
];

/** `stderr`: all that npm wrote. Undefined if npm did not fail, or for a reason that is not listed here. */
export function npmFailure(stderr: string, packages: readonly string[], env: Env): NpmFailure | undefined {
  const code = /^npm (?:error|ERR!) code (\S+)/m.exec(stderr)?.[1];
  if (code === undefined) return undefined;
  const spawned = /^npm (?:error|ERR!) syscall spawn (.+)$/m.exec(stderr)?.[1];
  const key = spawned === undefined ? code : `${code} spawn`;
  const row = [...NETWORK, ...OTHERS].find(([pattern]) => pattern.test(key));
  if (!row) return undefined;
  const [, text, remedy] = row;
  // For example `registry.npmjs.org`; the path may hold a token.
  const { host = "", hostname = "" } = URL.parse(/ (https?:\/\/[^\s/]+)\//.exec(stderr)?.[1] ?? "") ?? {};
  const hasProxy =
    Object.entries(env).some(([name, value]) => PROXIES.includes(name.toLowerCase()) && value) &&
    !isExcepted(hostname, env);
  const wanted = packages.join(" ");
  const lacked = lackedBy(stderr) ?? wanted;
  const facts: Readonly<Record<string, string>> = {
    code,
    status: code.slice(1),
    registry: `npm's registry${host === "" ? "" : ` ${host}`}`,
    through: hasProxy ? " through the proxy that is set" : "",
    wanted,
    lacked,
    spawned: spawned ?? "",
    by: packages.some((name) => name.startsWith(lacked)) ? "" : `, which ${wanted} needs`,
    path: /^npm (?:error|ERR!) path (.+)$/m.exec(stderr)?.[1] ?? "into its cache",
  };
  const words = text.replace(/\{(\w+)\}/g, (_, name: string) => facts[name] ?? "");
  return { code, words, remedy, isNetwork: NETWORK.includes(row) };
}

/** How far a run of npm is: it has written one line for each answer of the registry. */
export class NpmProgress {
  #files = 0;
  #trouble = "";

  /** `text`: what npm has just written. */
  see(text: string): void {
    for (const line of text.split("\n")) {
      if (!line.startsWith("npm http ")) continue;
      const trouble = / failed with ([\w-]{1,40})$/.exec(line.trimEnd())?.[1];
      if (trouble === undefined) this.#files++;
      this.#trouble = trouble ?? "";
    }
  }

  /** For example `npm fetches, 12 s, 3 files: semver`. A narrow terminal cuts the end, and a package's name may be long. */
  text(packages: readonly string[], seconds: number): string {
    const far =
      this.#trouble !== ""
        ? `its registry does not answer (${this.#trouble})`
        : this.#files > 0
          ? `${this.#files} file${this.#files === 1 ? "" : "s"}`
          : "no answer of its registry yet";
    return `npm fetches, ${seconds} s, ${far}: ${packages.join(" ")}`;
  }
}

/** What the runs of npm for one command have in common. */
export interface NpmRun {
  /** The file of `npx` or `npm`, and the arguments that make it install packages. */
  program: string;
  npmArgs: readonly string[];
  /** The node that runs inside npm and prints: not one that a package could have put first on PATH. */
  node: string;
  /** The whole environment. */
  env: Record<string, string>;
  /** The folder in which npm runs. */
  cwd: string;
  /** As the command line writes them. */
  packages: readonly string[];
  limits: NpmLimits;
  /** npm has been started, and has ended: the main thread ends what still runs when Pi exits. */
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
}

/** Who waits for one run of npm. */
export interface Waiting {
  progress: NpmProgress;
  signal: AbortSignal;
}

/** The longest run, and the longest time in which npm says nothing. */
export interface NpmLimits {
  npxRunMs: number;
  npxSilentMs: number;
}

export type NpmAnswer = NpmFacts & { projectPrefix: string };

const OUTPUT_CHARS = 64 * 1024;
/** Variables that node prints after its own file. */
const SAID = [
  "npm_config_cache",
  "npm_config_global_prefix",
  "npm_config_local_prefix",
  "npm_config_script_shell",
  "NODE_OPTIONS",
];

/** Both kinds of shell read this line alike: two arguments in double quotes with nothing special inside. */
const callLine = (node: string): string =>
  `"${node}" -p "JSON.stringify([process.execPath,${SAID.map((name) => `process.env.${name}`).join()}])"`;

/** Whether a shell reads the path in `callLine` as it is written. */
export const fitsShell = (node: string): boolean =>
  !/["$`%!\r\n]/.test(node) && (onWindows || !node.includes("\\"));

/**
 * Runs npm once, for its effect on npm's cache and for the folders that it prints. Throws the signal's reason if the signal
 * is aborted. Whatever the outcome, nothing is left running.
 */
export async function runNpm(
  npm: NpmRun,
  flags: readonly string[],
  waiting: Waiting,
): Promise<NpmAnswer | Declined> {
  waiting.signal.throwIfAborted();
  const ended = await run(npm, [...npm.npmArgs, ...flags, `--call=${callLine(npm.node)}`], waiting);
  waiting.signal.throwIfAborted();
  if (ended.late) return { reason: ended.late.words, failure: ended.late };
  if (ended.failure === undefined) return readAnswer(ended.stdout, npm);
  const failure = npmFailure(ended.stderr, npm.packages, npm.env);
  return { reason: `npm ${ended.failure}`, ...(failure ? { failure } : {}) };
}

interface Ended {
  stdout: string;
  stderr: string;
  /** The run was ended because it took too long. */
  late: NpmFailure | undefined;
  failure: string | undefined;
}

/** npm has a group of its own, and has ended before this settles. The server is never started. */
function run(
  { program, env, cwd, packages, limits, onSpawn, onExit }: NpmRun,
  args: readonly string[],
  { progress, signal }: Waiting,
): Promise<Ended> {
  // What the environment sets itself stays.
  const child = spawnServer({ program, args, env: { ...RETRY_SOON, ...env, ...TALKATIVE }, cwd });
  const { pid } = child;
  let stdout = "";
  let stderr = "";
  let late: NpmFailure | undefined;
  let killTimer: NodeJS.Timeout | undefined;

  /** SIGTERM comes first, so that npm can remove a half installed package. */
  const stop = (): void => {
    if (pid === undefined || killTimer) return;
    killTree(pid, "SIGTERM");
    killTimer = setTimeout(() => {
      killTree(pid, "SIGKILL");
      // What has left npm's group may still hold the pipes.
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
    }, LIMITS.shutdownTermMs);
  };
  const giveUp = (words: string): void => {
    const remedy = "Try again: what npm has fetched stays in its cache.";
    late ??= { code: "ETIMEDOUT", isNetwork: true, words, remedy };
    stop();
  };
  const timer = setTimeout(
    () => giveUp(`npm was not done with ${packages.join(" ")} within ${limits.npxRunMs / 1_000} s`),
    limits.npxRunMs,
  );
  const silence = setTimeout(
    () => giveUp(`npm heard nothing of its registry for ${limits.npxSilentMs / 1_000} s`),
    limits.npxSilentMs,
  );
  signal.addEventListener("abort", stop, { once: true });

  child.stdin.on("error", () => undefined);
  child.stdin.end();
  child.stdout.on("data", (chunk: Buffer) => {
    stdout = (stdout + chunk.toString("utf8")).slice(-OUTPUT_CHARS);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    const text = chunk.toString("utf8");
    stderr = (stderr + text).slice(-OUTPUT_CHARS);
    progress.see(text);
    silence.refresh();
  });
  if (pid !== undefined) onSpawn(pid);

  return new Promise((settle) => {
    const done = (failure: string | undefined): void => {
      for (const one of [timer, silence, killTimer]) clearTimeout(one);
      signal.removeEventListener("abort", stop);
      settle({ stdout, stderr, late, failure });
    };
    child.once("error", (error) => {
      if (pid === undefined) done(`could not be started: ${messageOf(error)}`);
    });
    // A process that npm leaves in its group could hold the pipes open.
    if (pid !== undefined && !onWindows) child.once("exit", () => killTree(pid, "SIGKILL"));
    child.once("close", (code, by) => {
      if (pid !== undefined) onExit(pid);
      done(code === 0 ? undefined : `ended with ${by ?? `code ${code}`}: ${lastLine(stderr)}`);
    });
  });
}

const lastLine = (text: string): string =>
  text
    .split("\n")
    .filter((line) => /^npm (?:error|ERR!) (?!A complete log)/.test(line))
    .join(" ")
    .slice(0, 300);

function readAnswer(stdout: string, { env, cwd }: NpmRun): NpmAnswer | Declined {
  const line = stdout.split(/\r?\n/).findLast((text) => text.startsWith("["));
  let said: unknown;
  try {
    said = JSON.parse(line ?? "");
  } catch {
    // A line that is no list names no folders.
  }
  const isAnswer = Array.isArray(said) && said.every((part) => part === null || typeof part === "string");
  const answer = isAnswer ? (said as (string | null)[]) : [];
  const [ranBy, cacheDir, globalPrefix, projectPrefix, shell, options] = answer;
  if (!ranBy || !cacheDir || !globalPrefix || !projectPrefix)
    return { reason: "this npm does not name its folders" };
  if (shell) return { reason: "npm has a script-shell of its own" };
  // npm's settings may add options that are missing in the server's environment.
  if ((options ?? "") !== (env.NODE_OPTIONS ?? "")) return { reason: "npm has node-options of its own" };
  // A relative folder starts from the folder of npm, not from that of this process.
  const folders = { cacheDir: resolve(cwd, cacheDir), globalPrefix: resolve(cwd, globalPrefix) };
  return { ...folders, projectPrefix, node: ranBy };
}
