/** The Git worktree around a folder: where programs that look for files upwards stop. */
import { lstat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The nearest folder from `folder` upwards that holds `.git`, which is a file in a linked worktree. */
export async function findWorktree(folder: string): Promise<string | undefined> {
  const found = await lstat(join(folder, ".git")).then(
    () => true,
    () => false,
  );
  if (found) return folder;
  const parent = dirname(folder);
  return parent === folder ? undefined : findWorktree(parent);
}
