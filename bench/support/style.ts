/**
 * Owns: bold, dim and coloured text if the output is a terminal, plain text otherwise.
 */
import type { WriteStream } from "node:tty";
import { styleText } from "node:util";

type Format = Parameters<typeof styleText>[0];

export interface Style {
  title(text: string): string;
  bold(text: string): string;
  dim(text: string): string;
  bad(text: string): string;
}

/** `styleText` obeys NO_COLOR and FORCE_COLOR, and checks whether `stream` is a terminal. */
export function createStyle(stream: WriteStream): Style {
  const as =
    (format: Format) =>
    (text: string): string =>
      styleText(format, text, { stream, validateStream: true });
  return { title: as(["bold", "cyan"]), bold: as("bold"), dim: as("dim"), bad: as(["bold", "red"]) };
}
