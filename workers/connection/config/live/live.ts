/**
 * Owns: what an edit does while a session is open: files are followed, an edit can wait for the user, and files are
 * remembered as they were applied. Must not: know servers or what a plan does.
 * follow.ts and the file watcher behind it are loaded after the first plan, which needs neither.
 */

import { createHash } from "node:crypto";
import type { AcceptedBefore } from "../../../../src/shared/protocol/session.ts";
import { canonical } from "../../../shared/json.ts";
import { comparable } from "../entry/definition.ts";
import { type ReadFile, readText } from "../files/sources.ts";
import type { LoadedConfig } from "../merge/merge.ts";
import type { Plan } from "../plan/plan.ts";
import type { ConfigWatcher } from "./follow.ts";

export interface HeldEdit {
  /** Hex SHA-256 of everything that the edit would do. */
  id: string;
  change: Plan;
  config: LoadedConfig;
}

export function heldEdit(config: LoadedConfig, change: Plan): HeldEdit {
  const { servers, settings } = change;
  const doing = servers
    .filter(({ action }) => action !== "keep")
    .map((one) => ({
      ...one,
      ...("before" in one && { before: comparable(one.before) }),
      ...("after" in one && { after: comparable(one.after) }),
    }));
  const id = createHash("sha256")
    .update(canonical({ servers: doing, settings }))
    .digest("hex");
  return { id, change, config };
}

/** A file that the user changed from within Pi. */
export interface OwnWrite {
  file: string;
  /** Its new text. Asked when its turn has come, since another such change of the file may be applied before. */
  text: (applied: LoadedConfig) => string | Promise<string>;
}

/**
 * Reads files as this load found them, and `own` as the user wrote it. A file that the load did not read comes from
 * the disk.
 */
export const asApplied =
  ({ reads }: LoadedConfig, own?: { file: string; text: string }): ReadFile =>
  async (file, limitBytes) =>
    file === own?.file ? { kind: "text", text: own.text } : (reads.get(file) ?? readText(file, limitBytes));

/** What main keeps for the next worker. A broken file is kept as it was when it was last whole, or else as it is. */
export function textsToKeep({ reads, texts }: LoadedConfig): NonNullable<AcceptedBefore["texts"]> {
  return [...reads].map(([file, read]) => {
    if (read.kind !== "unreadable")
      return [file, texts.get(file) ?? (read.kind === "text" ? read.text : undefined)];
    const { reason, remedy } = read;
    return [file, texts.get(file) ?? { reason, remedy }];
  });
}

/** Reads files as the worker before had applied them. */
export function asKept(kept: NonNullable<AcceptedBefore["texts"]>): ReadFile {
  const texts = new Map(kept);
  return async (file, limitBytes) => {
    if (!texts.has(file)) return readText(file, limitBytes);
    const text = texts.get(file);
    if (text === undefined) return { kind: "missing" };
    return typeof text === "string" ? { kind: "text", text } : { kind: "unreadable", ...text };
  };
}

/** Watches nothing before `follow` names a file. */
export function watchEnvFiles({
  onChange,
  onError,
}: {
  /** Called for each change, and once when watching begins, because an earlier change was not seen. */
  onChange: () => void;
  onError: (message: string) => void;
}) {
  let watcher: ConfigWatcher | undefined;
  let followed = "";
  let closed = false;
  let work: Promise<void> = Promise.resolve();

  const follow = async (files: readonly string[]): Promise<void> => {
    const wanted = [...files].sort().join("\0");
    if (closed || wanted === followed) return;
    followed = wanted;
    if (watcher) return watcher.follow(files);
    const { watchConfig } = await import("./follow.ts");
    watcher = watchConfig({ files, onChange, onError });
    watcher.ready.then(() => {
      if (!closed) onChange();
    }, onError);
  };

  return {
    /** Follows these files from now on, and no others. Never rejects. */
    follow: (files: readonly string[]): Promise<void> => {
      work = work.then(() => follow(files)).catch((error: Error) => onError(error.message));
      return work;
    },
    close: async () => {
      closed = true;
      await work;
      await watcher?.close();
    },
  };
}

export type EnvWatch = ReturnType<typeof watchEnvFiles>;
