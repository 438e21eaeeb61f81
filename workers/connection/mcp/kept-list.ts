/**
 * Keeps the items of one list over all of its pages, up to a number of items and of bytes. Items beyond that are left out
 * and named in a note.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

export interface KeptList<T> {
  readonly items: readonly T[];
  /** An item was left out, so further pages need not be asked for. */
  readonly isFull: boolean;
  add(item: T): void;
  /** The list ends here although the server has further pages. */
  stopEarly(): void;
  /** One line that names the items left out, worded to follow the server's name; undefined if there are none. */
  note(): string | undefined;
}

const NAMED = 20;
const NAME_CHARS = 100;
const MEBIBYTE = 1024 * 1024;

/** `what`: the plural of the items, for example `tools`. */
export function createKeptList<T>(
  what: string,
  { limit, nameOf }: { limit: number; nameOf: (item: T) => string },
): KeptList<T> {
  const items: T[] = [];
  const named: string[] = [];
  let chars = 0;
  let leftOut = 0;
  let hasMorePages = false;
  let reason = "";

  const leaveOut = (item: T, because: string): void => {
    reason ||= because;
    leftOut++;
    if (named.length < NAMED) named.push(nameOf(item).slice(0, NAME_CHARS).toWellFormed());
  };

  return {
    items,
    get isFull() {
      return leftOut > 0;
    },
    add: (item) => {
      if (items.length >= limit) return leaveOut(item, `more than ${limit.toLocaleString("en")} ${what}`);
      // The length of its JSON is close enough to what an item takes in memory and in the files of the cache.
      const itemChars = leftOut > 0 ? 0 : JSON.stringify(item).length;
      if (leftOut > 0 || chars + itemChars > LIMITS.listBytes) {
        return leaveOut(item, `more than ${LIMITS.listBytes / MEBIBYTE} MiB of ${what}`);
      }
      chars += itemChars;
      items.push(item);
    },
    stopEarly: () => {
      hasMorePages = true;
    },
    note: () => {
      if (leftOut === 0) return undefined;
      const more = leftOut > named.length ? ` and ${(leftOut - named.length).toLocaleString("en")} more` : "";
      const pages = hasMorePages ? "; further pages were not asked for" : "";
      return `lists ${reason}, and these are left out: ${named.join(", ")}${more}${pages}`;
    },
  };
}
