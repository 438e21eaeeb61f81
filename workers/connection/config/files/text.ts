/** Reads the text of a configuration file. Whatever the file is, that is a value and never an exception. */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { readRegularText, remedyForUnread, whyUnread } from "../../../shared/files/read-regular.ts";

export { withoutBom } from "../../../../src/shared/text/bom.ts";

export type FileText =
  | { kind: "missing" }
  | { kind: "unreadable"; reason: string; remedy: string }
  | { kind: "text"; text: string };

/**
 * Reads the text of a file, or says why that is not possible. A file larger than `limitBytes` is not read. Never
 * throws.
 */
export type ReadFile = (file: string, limitBytes: number) => Promise<FileText>;

/** Gives the text with its BOM. Never throws. A file that is not regular or may not be read is `unreadable`. */
export async function readText(file: string, limitBytes: number = LIMITS.configFileBytes): Promise<FileText> {
  const read = await readRegularText(file, limitBytes);
  if (read.kind === "text" || read.kind === "missing") return read;
  return { kind: "unreadable", reason: whyUnread(read), remedy: remedyForUnread(read) };
}
