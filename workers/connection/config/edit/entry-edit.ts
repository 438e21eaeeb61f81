/** Several changes of one server's entry in one text. Comments and formatting stay. Pure. */
import { entryAt } from "./entry-at.ts";
import { appendItems, type Plain, setValue } from "./insert.ts";
import { removeItem, removeValue } from "./remove.ts";

type Path = readonly [...string[], string];

export interface EntryEdit {
  /** The entry before the edit; empty if there is none. */
  entry: Record<string, unknown>;
  /** Paths are below the entry. */
  set(path: Path, value: Plain): void;
  remove(path: Path): void;
  /** Adds items to a list that exists. */
  append(path: Path, items: readonly Plain[]): void;
  /** Takes an item out of a list. Later items move up. */
  removeItem(path: Path, at: number): void;
}

/** The text after `change`. `text`: undefined for a new file. Throws `bad_config` if it cannot be changed without guessing. */
export function editEntry(
  text: string | undefined,
  server: string,
  file: string,
  change: (edit: EntryEdit) => void,
): string {
  const { bom, text: before, path: place, entry } = entryAt(text, server, file);
  let after = before;
  const below = (path: Path): [...string[], string] => [...place, ...path];
  change({
    entry,
    set: (path, value) => {
      after = setValue(after, below(path), value);
    },
    remove: (path) => {
      after = removeValue(after, below(path));
    },
    append: (path, items) => {
      after = appendItems(after, below(path), items);
    },
    removeItem: (path, at) => {
      after = removeItem(after, below(path), at);
    },
  });
  // An override without a key would be a mistake.
  const isEmpty =
    Object.keys(entry).length > 0 && Object.keys(entryAt(after, server, file).entry).length === 0;
  return bom + (isEmpty ? removeValue(after, place) : after);
}
