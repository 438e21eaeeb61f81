/**
 * Appends to a file that grows for ever, of which one older file is kept. Owns the rule that of all processes that write the
 * file one makes it the older one: another would put the new file, with a line or two, in the place of what was kept just now.
 */
import { rename } from "node:fs/promises";
import { nodeFiles } from "./file-system.ts";
import { withLock } from "./lock.ts";
import { appendRegular, codeOf, regularSize } from "./read-regular.ts";

/** `appendRegular`; before the file gets larger than `most` bytes, it becomes `<file>.1`, behind any link. Throws as that does. */
export async function appendRotated(path: string, text: string, most: number): Promise<void> {
  const isFull = async (file: string): Promise<boolean> => {
    const size = await regularSize(file);
    return size > 0 && size + Buffer.byteLength(text) > most;
  };
  if (await isFull(path)) {
    const { target } = await nodeFiles.find(path);
    const rotate = async (holds: () => Promise<boolean>): Promise<void> => {
      if ((await isFull(target)) && (await holds())) await rename(target, `${target}.1`);
    };
    await withLock(target, { files: nodeFiles }, rotate).catch(async (error: unknown) => {
      // A full disk has no room for a lock, and the rotation makes room. Else the file grows until the next line.
      if (["ENOSPC", "EDQUOT"].includes(codeOf(error) ?? "")) await rotate(async () => true);
    });
  }
  await appendRegular(path, text);
}
