/** The stamp of a file as it is now, for what must notice that a file was edited. */
import { statSync } from "node:fs";
import { fileStamp } from "../shared/protocol/values.ts";

/** A file that cannot be examined gets a stamp that no file has. */
export function stampOf(path: string): string {
  try {
    return fileStamp(statSync(path, { throwIfNoEntry: false }));
  } catch {
    return "unreadable";
  }
}
