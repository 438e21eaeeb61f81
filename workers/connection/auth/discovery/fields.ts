/** Owns how single fields of metadata are read: every field is bounded, and a wrong one counts as absent. Pure. */
import { asList } from "../../../../src/shared/protocol/is-object.ts";
import type { Fields } from "./document.ts";

/** Real metadata have at most some hundred scopes, and addresses of some hundred characters. */
const LIST_ITEMS = 1_000;
const ITEM_CHARS = 256;
const ADDRESS_CHARS = 2_048;

/** Printable ASCII without spaces, as in identifiers, scopes (RFC 6749, section 3.3) and addresses. */
const PRINTABLE = /^[!-~]+$/;

const isWord = (value: unknown, chars: number): value is string =>
  typeof value === "string" && value.length <= chars && PRINTABLE.test(value);

/** An identifier or an address as it is written; undefined if it cannot be one. */
export function readAddress(value: unknown): string | undefined {
  return isWord(value, ADDRESS_CHARS) ? value : undefined;
}

/** The words of a list, or of a text with spaces; undefined if there are none. Other items are left out. */
export function readWords(value: unknown, chars = ITEM_CHARS): string[] | undefined {
  const items: readonly unknown[] = typeof value === "string" ? value.split(" ", LIST_ITEMS) : asList(value);
  const words = items.slice(0, LIST_ITEMS).filter((item) => isWord(item, chars));
  return words.length === 0 ? undefined : words;
}

/** The addresses of a list, or a single one. */
export const readAddresses = (fields: Fields, key: string): string[] =>
  readWords(fields[key], ADDRESS_CHARS) ?? [];

/** Some servers write truth as a text. */
export const readFlag = (value: unknown): boolean => value === true || value === "true";
