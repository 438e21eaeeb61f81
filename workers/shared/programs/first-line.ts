/** Reads the first line of a file, which may name the program that runs the file. */
import { open } from "node:fs/promises";

const FIRST_LINE_BYTES = 256;

export async function firstLineOf(file: string): Promise<string> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(FIRST_LINE_BYTES), 0, FIRST_LINE_BYTES, 0);
    return buffer.toString("latin1", 0, bytesRead).split(/\r?\n/, 1)[0] ?? "";
  } finally {
    await handle.close();
  }
}
