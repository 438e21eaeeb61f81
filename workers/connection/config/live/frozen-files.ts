/**
 * Owns: the files as they were when they were last applied. If an edit has to wait (`hotReload` "ask" and "off"),
 * everything else that happens meanwhile is worked out from these files and not from the disk: in this worker and,
 * from the texts that main keeps, in the worker that follows a crash. Pure.
 */
import type { AcceptedBefore } from "../../../../src/shared/protocol/session.ts";
import { type ReadFile, readText } from "../files/sources.ts";
import type { LoadedConfig } from "../merge/merge.ts";

/** A file that the user changed from within Pi, and its new text. */
export interface OwnWrite {
  file: string;
  text: string;
}

/**
 * Reads files as this load found them, and `own` as the user wrote it. A file that the load did not read comes from
 * the disk.
 */
export const asApplied =
  ({ reads }: LoadedConfig, own?: OwnWrite): ReadFile =>
  async (file, limitBytes) =>
    file === own?.file ? { kind: "text", text: own.text } : (reads.get(file) ?? readText(file, limitBytes));

/** The texts that main keeps for the next worker. A broken file is kept as it was when it was last whole. */
export function textsToKeep({ reads, texts }: LoadedConfig): NonNullable<AcceptedBefore["texts"]> {
  return [...reads.keys()].map((file) => [file, texts.get(file)]);
}

/** Reads files as the worker before had applied them. */
export function asKept(kept: NonNullable<AcceptedBefore["texts"]>): ReadFile {
  const texts = new Map(kept);
  return async (file, limitBytes) => {
    if (!texts.has(file)) return readText(file, limitBytes);
    const text = texts.get(file);
    return text === undefined ? { kind: "missing" } : { kind: "text", text };
  };
}
