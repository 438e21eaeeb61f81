/**
 * A session at rest: no worker runs until something needs one. Owns: whether what the worker left beside the snapshot still
 * holds, who looks at the files meanwhile, and what main is told in the place of the worker's first plan. Must not: read a
 * configuration file. Whatever does not hold, or cannot be read, starts the worker.
 */
import { unwatchFile, watchFile } from "node:fs";
import { homedir } from "node:os";
import { stampOf } from "../catalog/stamp.ts";
import { readWhole } from "../catalog/store.ts";
import type { Resting, RuntimeOptions } from "../runtime/contract.ts";
import { type Files, ownFiles, tellUpdate } from "../runtime/files.ts";
import { isObject } from "../shared/protocol/values.ts";
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
/** How often the system looks at each file. */
const LOOK_MS = 1_000;
/** Milliseconds without another change until an edit counts: an editor may empty or remove a file before writing it. */
const SETTLE_MS = 350;

/** An update may replace the package: its files are read when Pi has made its first request. */
const REMEMBER_MS = 3_000;

const hasChanged = ({ files }: Pick<Rest, "files">): boolean =>
  files.some(([path, stamp]) => stampOf(path) !== stamp);

/** What must be true of the `Rest` at `path`. */
export interface RestWanted {
  agentDir: string;
  path: string;
  checksum: number;
  trusted: boolean;
}

interface RestOptions {
  onEvent: RuntimeOptions["onEvent"];
  /** Absent: those of this package. */
  files?: Files;
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
      !hasChanged(rest)
      ? rest
      : undefined;
  } catch {
    // A file that is broken.
    return undefined;
  }
}

/** Calls `onEdit` when a file is no longer what it was. Answers what ends the watching. */
function watchFiles(rest: Rest, onEdit: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    if (hasChanged(rest)) onEdit();
  };
  const settle = (): void => {
    clearTimeout(timer);
    timer = setTimeout(look, SETTLE_MS).unref();
  };
  // An event tells of a folder at best, and not across links and machines: the system compares each file itself.
  for (const [path] of rest.files) watchFile(path, { persistent: false, interval: LOOK_MS }, settle);
  // What changed before the first look of the system.
  settle();
  return () => {
    clearTimeout(timer);
    for (const [path] of rest.files) unwatchFile(path, settle);
  };
}

/** `RuntimeOptions.rest` of a session that may rest if there is such a `Rest`: until `asked` settles, or a file is edited. */
export function startRest(
  asked: Promise<void>,
  wanted: RestWanted,
  { onEvent, files = ownFiles, rememberMs = REMEMBER_MS }: RestOptions,
): Resting | undefined {
  const rest = readRest(wanted);
  if (!rest) return undefined;
  void tellUpdate(files, onEvent);
  const { settings, servers, listed, traces } = rest;
  const nothing = { problems: [], questions: [], refused: [] };
  const timers = [
    setTimeout(() => {
      onEvent({ type: "planned", settings, servers, files: listed, accepted: undefined, ...nothing });
    }, PLAN_MS),
    // Without the copy, only a session whose package was updated meanwhile lacks its worker.
    setTimeout(() => files.remember(wanted.agentDir).catch(() => undefined), rememberMs),
  ];
  for (const timer of timers) timer.unref();
  const edited = Promise.withResolvers<void>();
  const stop = watchFiles(rest, edited.resolve);
  const over = Promise.race([asked, edited.promise]).then(() => {
    timers.forEach(clearTimeout);
    stop();
  });
  return {
    over,
    isEdited: () => hasChanged(rest),
    traces,
  };
}
