/**
 * A session at rest: no worker runs until something needs one. Owns: whether what the worker left beside the snapshot still
 * holds, or the snapshot is sure and a run waits for its first request; who looks at the files meanwhile, and what main is told
 * in the place of the worker's first plan. Must not: read a configuration file. Whatever does not hold, or cannot be read, starts
 * the worker.
 */
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { stampOf } from "../catalog/stamp.ts";
import { type CatalogStore, readWhole, snapshotIsOlder } from "../catalog/store.ts";
import type { Pi } from "../pi/api.ts";
import type { Resting, RuntimeOptions } from "../runtime/contract.ts";
import { type Files, ownFiles, REMEMBER_MS, tellUpdate } from "../runtime/files.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { fileStamp, isObject } from "../shared/protocol/values.ts";
import { PROJECT_FILES, type SnapshotKey } from "../shared/snapshot/contract.ts";
import {
  REST_BYTES,
  REST_FILES,
  REST_MS,
  REST_VERSION,
  type Rest,
  restPlace,
} from "../shared/snapshot/rest.ts";

/** Pi paints before main is told of the plan. */
const PLAN_MS = 20;
/** How often each file is looked at. */
const LOOK_MS = 1_000;
/** A look that takes longer, as on a mount that hangs, counts as an edit: a worker looks on, and Pi does not wait. */
const SILENT_MS = 1_000;
/** Milliseconds without another change until an edit counts: an editor may empty or remove a file before writing it. */
const SETTLE_MS = 350;
/** A model that answers sooner is not asked over a network. */
const ANSWERED_MS = 100;

/** The same as `stampOf`, without holding Pi up for as long as the file system takes. Never rejects. */
export const stampLater = (path: string): Promise<string> =>
  stat(path).then(fileStamp, ({ code }: NodeJS.ErrnoException) =>
    code === "ENOENT" || code === "ENOTDIR" ? fileStamp(undefined) : "unreadable",
  );

/** What must be true of the `Rest` at `path`. */
export interface RestWanted {
  /** Below the folder of the snapshots, which is below the agent folder. */
  path: string;
  checksum: number;
  trusted: boolean;
}

interface RestOptions {
  onEvent: RuntimeOptions["onEvent"];
  /** Absent: those of this package. */
  files?: Files;
  /** Another look at a file, for tests. */
  look?: typeof stampLater;
  /** Shorter, for tests. */
  rememberMs?: number;
}

/** Undefined: the worker has to look. */
function readRest({ path, checksum, trusted }: RestWanted): Rest | undefined {
  try {
    const bytes = readWhole(path, REST_BYTES);
    if (!bytes) return undefined;
    const rest = JSON.parse(Buffer.from(bytes).toString()) as Rest;
    const age = Date.now() - rest.madeAt;
    const isOfThis = rest.version === REST_VERSION && rest.checksum === checksum && rest.trusted === trusted;
    const isWhole =
      rest.servers.every(({ name }) => typeof name === "string") &&
      rest.listed.every((file) => typeof file === "string") &&
      isObject(rest.settings) &&
      typeof rest.traces === "string";
    const isYoung = age >= 0 && age < REST_MS && rest.files.length <= REST_FILES;
    return isOfThis &&
      isWhole &&
      isYoung &&
      rest.place === restPlace(process.env, homedir()) &&
      rest.files.every(([path, stamp]) => stampOf(path) === stamp)
      ? rest
      : undefined;
  } catch {
    // A file that is broken.
    return undefined;
  }
}

/**
 * Looks at files that had these stamps. Files are looked at one after the other: one that never answers holds one of the threads
 * for files, of which Pi has four.
 */
function looksAt(files: Rest["files"], look: typeof stampLater) {
  const before = files.map(([, stamp]) => stamp).join("\n");
  /** The look that goes on, or the last one. */
  let last: Promise<string> = Promise.resolve(before);
  const lookOnce = async (): Promise<string> => {
    const stamps: string[] = [];
    for (const [path] of files) stamps.push(await look(path));
    return stamps.join("\n");
  };
  const lookAll = (): Promise<string> => {
    last = last.then(lookOnce);
    return last;
  };
  return {
    before,
    lookAll,
    isEdited: async (): Promise<boolean> => {
      const late = Promise.withResolvers<true>();
      const limit = setTimeout(late.resolve, SILENT_MS, true);
      try {
        return await Promise.race([lookAll().then((now) => now !== before), late.promise]);
      } finally {
        clearTimeout(limit);
      }
    },
  };
}

/**
 * Calls `onEdit` when files are no longer what they were, until the function that it answers is called. An event would tell of a
 * folder at best, and not across links and machines.
 */
function watchFiles({ before, lookAll }: ReturnType<typeof looksAt>, onEdit: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  /** `seen`: what the look before has found. */
  const watch = (seen: string, ms: number): void => {
    if (isOver) return;
    timer = setTimeout(async () => {
      const now = await lookAll();
      if (now === before) watch(before, LOOK_MS);
      else if (now !== seen) watch(now, SETTLE_MS);
      else if (!isOver) onEdit();
    }, ms).unref();
  };
  // What changed before the first look.
  watch(before, SETTLE_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** `RuntimeOptions.rest` of a session that may rest if there is such a `Rest`: until `asked` settles, or a file is edited. */
export function startRest(
  asked: Promise<void>,
  wanted: RestWanted,
  { onEvent, files = ownFiles, look = stampLater, rememberMs = REMEMBER_MS }: RestOptions,
): Resting | undefined {
  const rest = readRest(wanted);
  if (!rest) return undefined;
  void tellUpdate(files, onEvent);
  const { settings, servers, listed, traces } = rest;
  const nothing = { problems: [], questions: [], refused: [] };
  const timer = setTimeout(() => {
    onEvent({ type: "planned", settings, servers, files: listed, accepted: undefined, ...nothing });
  }, PLAN_MS);
  timer.unref();
  // Without the copy, only a session whose package was updated meanwhile lacks its worker.
  files.remember(dirname(dirname(wanted.path)), rememberMs).catch(() => undefined);
  const edited = Promise.withResolvers<void>();
  const looks = looksAt(rest.files, look);
  const stop = watchFiles(looks, edited.resolve);
  const over = Promise.race([asked, edited.promise]).then(() => {
    clearTimeout(timer);
    stop();
  });
  return {
    over,
    isEdited: looks.isEdited,
    traces,
  };
}

export interface SnapshotOptions {
  agentDir: string;
  /** Names the snapshot that the session shows. */
  key: () => SnapshotKey;
  store: Pick<CatalogStore, "current" | "checksum">;
}

/** The user's and the project's own files, and every other file that the snapshot was made of. */
const configFiles = ({ agentDir, key, store }: SnapshotOptions): string[] => [
  join(agentDir, "mcp.json"),
  join(homedir(), ".config", "mcp", "mcp.json"),
  ...PROJECT_FILES.map((file) => join(key().cwd, file)),
  ...store.current().settings.files,
];

/** Whether the plan is sure to name the same servers as the snapshot. */
export function snapshotIsSure(pi: Pi, options: SnapshotOptions): boolean {
  const { agentDir, key, store } = options;
  if (store.checksum() === undefined) return false;
  const { servers } = store.current();
  // Only the plan says whether a project's server may still run, and how other extensions define their servers.
  if (servers.some(({ project }) => project)) return false;
  const known = new Set(servers.map(({ name }) => name));
  if (pi.getMcpServers().some(({ name }) => !known.has(name))) return false;
  return !snapshotIsOlder(agentDir, key(), configFiles(options));
}

/** Settles a moment after the first request has left; while none does, after `LIMITS.firstRequestMs`. */
const requestSent = (pi: Pick<Pi, "on">): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, LIMITS.firstRequestMs).unref();
    const stop = pi.on("before_provider_request", () => {
      stop();
      setTimeout(resolve, ANSWERED_MS).unref();
    });
  });

/**
 * `RuntimeOptions.rest` of a run whose prompt is on the command line, and whose servers are known and are to connect: until `asked`
 * settles, or its first request has left. That request has the processor for itself, and a run that ends with the answer needs no
 * worker. `path`: of the `Rest`. Undefined: it is no such run.
 */
export function restUntilSent(
  asked: Promise<void>,
  pi: Pi,
  { mode, path, ...snapshot }: SnapshotOptions & { mode: string; path: string },
): Resting | undefined {
  // Over RPC nobody knows when the first prompt comes.
  if (mode !== "print" && mode !== "json") return undefined;
  const { agentDir: _, key, store } = snapshot;
  // A `Rest` that does not hold, and a file of the project, which may be trusted by now, are the worker's to judge.
  const judged = [path, ...PROJECT_FILES.map((file) => join(key().cwd, file))];
  if (judged.some((file) => stampOf(file) !== "") || !snapshotIsSure(pi, snapshot)) return undefined;
  // The first call of a shared server, which may run already, waits for the worker alone.
  if (store.current().settings.shared) return undefined;
  const files = configFiles(snapshot).map((file): Rest["files"][number] => [file, stampOf(file)]);
  // The rest is over before a second look would be due: what counts is what the files are at its end.
  const { isEdited } = looksAt(files, stampLater);
  return { over: Promise.race([asked, requestSent(pi)]), isEdited };
}
