/** The Git worktree around a folder. Programs that look for files in the folders above stop at its root. */
import { lstat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The nearest folder, from `folder` upwards, that holds `.git`, which in a linked worktree is a file. */
export async function findWorktree(folder: string): Promise<string | undefined> {
  const found = await lstat(join(folder, ".git")).then(
    () => true,
    () => false,
  );
  if (found) return folder;
  const parent = dirname(folder);
  return parent === folder ? undefined : findWorktree(parent);
}
