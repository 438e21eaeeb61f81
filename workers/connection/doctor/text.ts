/**
 * Makes findings fit to be pasted into an issue: one line each, bounded, without secrets, queries of urls and the path of
 * the home folder. The texts of findings may hold a server's words. Pure.
 */

import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import { escapePattern } from "../../../src/shared/text/reading.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { DETAIL_CHARS, REMEDY_CHARS, TITLE_CHARS } from "./limits.ts";

/** What may follow the home folder's path, so that `/home/ann` is not found in `/home/anna`. */
const END = "(?=$|[/\\\\\\s\"'`,;:)\\]])";

/** The text with `~` in the place of the home folder. */
export function withoutHome(text: string, home: string): string {
  if (home.length < 2) return text;
  return text.replaceAll(new RegExp(`${escapePattern(home)}${END}`, "g"), "~");
}

/** Urls lose their user, their query and their fragment, which may be secrets. */
export const withoutQueries = (text: string): string =>
  text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)(?:[^\s/?#@"'`]*@)?([^\s?#"'`]*)(?:[?#][^\s"'`]*)?/gi, "$1$2");

export interface TextFacts {
  home: string;
  /** Takes the secrets of the finding's server out. Absent: the finding has no words of a server. */
  redact?: ((text: string) => string) | undefined;
}

/** Cleans before it cuts: half a secret would not be found. */
export function cleanFinding(finding: Finding, { home, redact = (text) => text }: TextFacts): Finding {
  const clean = (text: string, chars: number): string =>
    oneLine(withoutHome(withoutQueries(redact(text)), home), chars);
  const { title, detail, remedy, file, ...rest } = finding;
  return {
    ...rest,
    title: clean(title, TITLE_CHARS),
    ...(detail ? { detail: clean(detail, DETAIL_CHARS) } : {}),
    ...(remedy ? { remedy: clean(remedy, REMEDY_CHARS) } : {}),
    ...(file === undefined ? {} : { file: clean(file, TITLE_CHARS) }),
  };
}
