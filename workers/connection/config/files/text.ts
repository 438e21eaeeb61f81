/** Reads the text of a configuration file. Whatever the file is, that is a value and never an exception. */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { inTime, silenceOf } from "../../../shared/files/file-system.ts";
import { readRegularText, remedyForUnread, whyUnread } from "../../../shared/files/read-regular.ts";

export { withoutBom } from "../../../../src/shared/text/reading.ts";

export type FileText =
  | { kind: "missing" }
  /** `later`: the file system has not answered yet; settles when it has. */
  | { kind: "unreadable"; reason: string; remedy: string; later?: Promise<void> }
  | { kind: "text"; text: string };

/**
 * Reads the text of a file, or says why that is not possible. A file larger than `limitBytes` is not read. Never
 * throws.
 */
export type ReadFile = (file: string, limitBytes: number) => Promise<FileText>;

export const NO_ANSWER = `its file system has not answered within ${LIMITS.projectReadMs / 1_000} s`;

const unanswered = (later: Promise<void>): FileText => ({
  kind: "unreadable",
  reason: NO_ANSWER,
  remedy: "It is used as soon as it answers. Delete it if it leads to a machine that does not.",
  later,
});

/** Reads the text of a project's file, which must not keep the user's own servers waiting. Never throws. */
export async function readInTime(
  file: string,
  limitBytes: number,
  read: ReadFile = readText,
): Promise<FileText> {
  const found = await inTime(file, () => read(file, limitBytes), LIMITS.projectReadMs);
  return "value" in found ? found.value : unanswered(found.silent);
}

/** Gives the text with its BOM. Never throws. A file that is not regular or may not be read is `unreadable`. */
export async function readText(file: string, limitBytes: number = LIMITS.configFileBytes): Promise<FileText> {
  const silent = silenceOf(file);
  if (silent) return unanswered(silent);
  const read = await readRegularText(file, limitBytes);
  if (read.kind === "text" || read.kind === "missing") return read;
  return { kind: "unreadable", reason: whyUnread(read), remedy: remedyForUnread(read) };
}
