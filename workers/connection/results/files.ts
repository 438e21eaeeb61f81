/** Files of a result, as those see them who have something to store. Writes none: see store.ts. */

export type Saved = { path: string; bytes: number } | { problem: string };

export interface ResultStore {
  /** A file is expected in a moment: its folder and its room are made meanwhile. */
  prepare?(): void;
  /** Writes the parts one after the other. `label` and `extension` make the name of the file readable. */
  save(parts: readonly (string | Uint8Array)[], label: string, extension: string): Promise<Saved>;
}

/** Shorter texts are written together. */
export const SHORT_CHARS = 64 * 1024;

/** Joins short texts, so that a hundred thousand of them take a few writes. */
export function* joined(parts: readonly (string | Uint8Array)[]): Generator<string | Uint8Array> {
  let short: string[] = [];
  let chars = 0;
  for (const part of parts) {
    const isShort = typeof part === "string" && part.length < SHORT_CHARS;
    if (short.length > 0 && (!isShort || chars >= SHORT_CHARS)) {
      yield short.join("");
      short = [];
      chars = 0;
    }
    if (!isShort) {
      yield part;
      continue;
    }
    short.push(part);
    chars += part.length;
  }
  if (short.length > 0) yield short.join("");
}

/** The same store for at most `most` files: one result may hold a hundred thousand images. */
export function limitFiles(store: ResultStore, most: number): ResultStore {
  let left = most;
  return {
    save: async (...file) => {
      if (left <= 0) return { problem: `more than ${most} files of one result` };
      left--;
      return store.save(...file);
    },
  };
}
