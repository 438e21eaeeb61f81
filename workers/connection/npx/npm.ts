/**
 * npm's own output in plain words: why it failed, and how far it is. Owns: npm's settings for a run that a person waits
 * for. Called by: npm-run.ts, and by the handshake of a server that npm itself starts. Pure.
 */

import { resolve } from "node:path";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Env } from "../../shared/programs/environment.ts";
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

/** For example `registry.npmjs.org`; the path may hold a token. */
function hostIn(stderr: string): string {
  const url = / (https?:\/\/[^\s/]+)\//.exec(stderr)?.[1];
  return URL.parse(url ?? "")?.host ?? "";
}

/** The package that the registry lacks: one of the command, or one that it needs. */
const lackedBy = (stderr: string): string | undefined =>
  /(?:resource|for) '?((?:@[\w.~-]+\/)?[\w.~-]+)(?:@[^\s']*)?'? ?(?:could|is)/.exec(stderr)?.[1] ??
  /No matching version found for (\S+?)\.?\s/.exec(stderr)?.[1];

interface Facts {
  code: string;
  stderr: string;
  /** For example `npm's registry registry.npmjs.org`. */
  registry: string;
  /** The packages of the command. */
  wanted: string;
  /** Empty, or that a proxy is on the way. */
  through: string;
}

type Words = [words: string, remedy: string];

/** Failures that say nothing about the package: what is installed already may be started. */
const NETWORK: readonly [code: RegExp, words: (facts: Facts) => Words][] = [
  [
    /^(?:ENOTFOUND|EAI_AGAIN|EAI_FAIL|ENODATA)$/,
    ({ registry, through, code }) => [`${registry} cannot be found${through} (${code})`, NO_REGISTRY_REMEDY],
  ],
  [
    /^(?:ECONN(?:REFUSED|RESET|ABORTED)|E(?:HOST|NET)UNREACH|E?TIMEDOUT|ETIMEOUT|ERR_SOCKET_TIMEOUT|EPIPE)$/,
    ({ registry, through, code }) => [
      `${registry} cannot be reached${through} (${code})`,
      NO_REGISTRY_REMEDY,
    ],
  ],
  [
    /CERT|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL/,
    ({ registry, code }) => [
      `the certificate of ${registry} is not trusted (${code})`,
      "Set NODE_EXTRA_CA_CERTS or npm's cafile to the certificate of your network.",
    ],
  ],
  [/^E5\d\d$/, ({ registry, code }) => [`${registry} has a fault (${code.slice(1)})`, "Try again later."]],
  [
    /^E429$/,
    ({ registry }) => [`${registry} takes no more requests for now (429)`, "Try again in a minute."],
  ],
  [
    /^E407$/,
    () => [
      "the proxy before npm's registry wants a sign-in (407)",
      "Write user and password into npm's setting proxy.",
    ],
  ],
  [
    /^FETCH_ERROR$/,
    ({ registry }) => [
      `${registry} answers with something else than packages`,
      "A network that wants a sign-in answers so: open a page in a browser.",
    ],
  ],
  [
    /^ENOTCACHED$/,
    ({ wanted }) => [`npm is set to work offline, and ${wanted} is not in its cache`, "Unset npm's offline."],
  ],
];

const OTHERS: readonly [code: RegExp, words: (facts: Facts) => Words][] = [
  [
    /^E404$/,
    ({ registry, wanted, stderr }) => {
      const lacked = lackedBy(stderr) ?? wanted;
      const by = wanted.split(" ").some((name) => name.startsWith(lacked)) ? "" : `, which ${wanted} needs`;
      const remedy = "Check its name in args. A private package needs npm's sign-in: npm login.";
      return [`${registry} has no package ${lacked}${by}`, remedy];
    },
  ],
  [
    /^(?:ETARGET|ENOVERSIONS)$/,
    ({ wanted, stderr }) => [
      `npm's registry has no version ${lackedBy(stderr) ?? wanted}`,
      "Name a version in args that is published, or none.",
    ],
  ],
  [
    /^(?:E401|ENEEDAUTH|EOTP)$/,
    ({ registry, wanted, code }) => [
      `${registry} wants a sign-in for ${wanted} (${code})`,
      "Sign in with npm login.",
    ],
  ],
  [
    /^E403$/,
    ({ registry, wanted }) => [
      `${registry} refuses ${wanted} (403)`,
      "Its policy or your rights there forbid it: ask who runs the registry.",
    ],
  ],
  [
    /^(?:ENOSPC|EDQUOT)$/,
    ({ wanted }) => [
      `the disk is full, so npm cannot install ${wanted}`,
      "Free some space; npm cache clean --force frees npm's.",
    ],
  ],
  [
    /^(?:EACCES|EPERM|EROFS)$/,
    ({ stderr, code }) => [
      `npm may not write ${/^npm (?:error|ERR!) path (.+)$/m.exec(stderr)?.[1] ?? "into its cache"} (${code})`,
      "Give the folder to your user: an earlier npm may have run as root.",
    ],
  ],
];

/** `stderr`: all that npm wrote. Undefined if npm did not fail, or for a reason that is not listed here. */
export function npmFailure(
  stderr: string,
  { packages, env }: { packages: readonly string[]; env: Env },
): NpmFailure | undefined {
  const code = /^npm (?:error|ERR!) code (\S+)/m.exec(stderr)?.[1];
  if (code === undefined) return undefined;
  const host = hostIn(stderr);
  const hasProxy = Object.entries(env).some(([name, value]) => PROXIES.includes(name.toLowerCase()) && value);
  const facts: Facts = {
    code,
    stderr,
    registry: `npm's registry${host === "" ? "" : ` ${host}`}`,
    wanted: packages.join(" "),
    through: hasProxy ? " through the proxy that is set" : "",
  };
  for (const [table, isNetwork] of [[NETWORK, true] as const, [OTHERS, false] as const]) {
    const found = table.find(([pattern]) => pattern.test(code))?.[1](facts);
    if (found) return { code, words: found[0], remedy: found[1], isNetwork };
  }
  return undefined;
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

  /** For example `npm fetches semver, 12 s, 3 files`. */
  text(packages: readonly string[], seconds: number): string {
    const far =
      this.#trouble !== ""
        ? `its registry does not answer: ${this.#trouble}`
        : this.#files > 0
          ? `${this.#files} file${this.#files === 1 ? "" : "s"}`
          : "no answer of its registry yet";
    return `npm fetches ${packages.join(" ")}, ${seconds} s, ${far}`;
  }
}

interface NpmRunOptions {
  /** The file of `npx` or `npm`, and the arguments that make it install packages. */
  npm: { program: string; args: readonly string[] };
  flags: readonly string[];
  /** The node that runs inside npm and prints: not one that a package could have put first on PATH. */
  node: string;
  /** The whole environment. */
  env: Record<string, string>;
  cwd: string;
  /** As the command line writes them. */
  packages: readonly string[];
  /** The longest run, and the longest time in which npm says nothing. */
  limits: NpmLimits;
  progress: NpmProgress;
  signal: AbortSignal;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
}

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

/** Throws the signal's reason if the signal is aborted. Whatever the outcome, nothing is left running. */
export async function runNpm(options: NpmRunOptions): Promise<NpmAnswer | Declined> {
  const { npm, flags, node, signal, packages, env } = options;
  signal.throwIfAborted();
  const ended = await run([...npm.args, ...flags, `--call=${callLine(node)}`], options);
  signal.throwIfAborted();
  if (ended.late) return { reason: ended.late.words, failure: ended.late };
  if (ended.failure !== undefined) {
    const reason = `npm ${ended.failure}`;
    const failure = npmFailure(ended.stderr, { packages, env });
    return failure ? { reason, failure } : { reason };
  }
  return readAnswer(ended.stdout, options);
}

interface Ended {
  stdout: string;
  stderr: string;
  /** The run was ended because it took too long. */
  late: NpmFailure | undefined;
  failure: string | undefined;
}

function run(args: readonly string[], options: NpmRunOptions): Promise<Ended> {
  const { npm, env, cwd, signal, limits, progress, onSpawn, onExit } = options;
  // What the environment sets itself stays.
  const child = spawnServer({
    program: npm.program,
    args,
    env: { ...RETRY_SOON, ...env, ...TALKATIVE },
    cwd,
  });
  const { pid } = child;
  let stdout = "";
  let stderr = "";
  let late: NpmFailure | undefined;
  let killTimer: NodeJS.Timeout | undefined;

  /** SIGTERM comes first, so that npm can remove a half installed package. */
  const stop = (): void => {
    if (pid === undefined || killTimer) return;
    killTree(pid, "SIGTERM");
    killTimer = setTimeout(() => killTree(pid, "SIGKILL"), LIMITS.shutdownTermMs);
  };
  const giveUp = (words: string): void => {
    const remedy = "Try again: what npm has fetched stays in its cache.";
    late ??= { code: "ETIMEDOUT", isNetwork: true, words, remedy };
    stop();
  };
  const wanted = options.packages.join(" ");
  const timer = setTimeout(
    () => giveUp(`npm was not done with ${wanted} within ${limits.npxRunMs / 1_000} s`),
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

function readAnswer(stdout: string, { env, cwd }: NpmRunOptions): NpmAnswer | Declined {
  const line = stdout.split(/\r?\n/).findLast((text) => text.startsWith("["));
  const said = parseStrings(line ?? "");
  const [ranBy, cacheDir, globalPrefix, projectPrefix, shell, options] = said ?? [];
  if (!ranBy || !cacheDir || !globalPrefix || !projectPrefix)
    return { reason: "this npm does not name its folders" };
  if (shell) return { reason: "npm has a script-shell of its own" };
  // npm's settings may add options that are missing in the server's environment.
  if ((options ?? "") !== (env.NODE_OPTIONS ?? "")) return { reason: "npm has node-options of its own" };
  // A relative folder starts from the folder of npm, not from that of this process.
  const folders = { cacheDir: resolve(cwd, cacheDir), globalPrefix: resolve(cwd, globalPrefix) };
  return { ...folders, projectPrefix, node: ranBy };
}

function parseStrings(text: string): (string | null)[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    const strings =
      Array.isArray(parsed) && parsed.every((part) => part === null || typeof part === "string");
    return strings ? (parsed as (string | null)[]) : undefined;
  } catch {
    return undefined;
  }
}
