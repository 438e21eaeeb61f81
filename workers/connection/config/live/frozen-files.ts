/**
 * The files as they were when they last were applied. Where an edit has to wait (`hotReload` "ask" and "off"),
 * everything else that happens meanwhile is worked out from these and not from the disk, in this worker and, with
 * what main keeps of them, in one that follows a crash. Pure.
 */
import type { AcceptedBefore } from "../../../../src/shared/protocol/session.ts";
import { type ReadFile, readText } from "../files/files.ts";
import type { LoadedConfig } from "../merge/merge.ts";

/** Files as this load found them; those that it did not look at from the disk. `own`: what the user wrote since. */
export const asApplied =
  ({ reads }: LoadedConfig, own?: { file: string; text: string }): ReadFile =>
  async (file, limitBytes) =>
    file === own?.file ? { kind: "text", text: own.text } : (reads.get(file) ?? readText(file, limitBytes));

/** What main keeps for a worker after this one. A file that is broken is kept as it last was whole. */
export function textsToKeep({ reads, texts }: LoadedConfig): NonNullable<AcceptedBefore["texts"]> {
  return [...reads.keys()].map((file) => [file, texts.get(file)]);
}

/** The files as the worker before had applied them. */
export function asKept(kept: NonNullable<AcceptedBefore["texts"]>): ReadFile {
  const texts = new Map(kept);
  return async (file, limitBytes) => {
    if (!texts.has(file)) return readText(file, limitBytes);
    const text = texts.get(file);
    return text === undefined ? { kind: "missing" } : { kind: "text", text };
  };
}
