/**
 * Writes a file so that a reader sees either the old content or the new, whole, whatever happens
 * meanwhile: temp file beside the target, fsync, rename. A symlink is followed, the mode is kept.
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readlink, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";

/** The file behind a symlink, also behind one whose target is not there yet; else the path itself. */
async function targetOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
    return readlink(path).then(
      (link) => resolve(dirname(path), link),
      () => path,
    );
  }
}

async function modeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).mode & 0o777;
  } catch (error) {
    if (isMissing(error)) return PRIVATE_FILE;
    throw error;
  }
}

/** Throws what the file system throws; the target is then as it was and no temp file stays. */
export async function writeFileAtomic(path: string, data: Uint8Array | string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
  const target = await targetOf(path);
  const mode = await modeOf(target);
  const temp = join(
    dirname(target),
    `.${basename(target).slice(0, 40)}.${randomBytes(6).toString("hex")}.tmp`,
  );
  try {
    const file = await open(temp, "wx", mode);
    try {
      // `open` masks the mode with the umask.
      await file.chmod(mode);
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temp, target);
  } catch (error) {
    await rm(temp, { force: true });
    throw error;
  }
}
