/** A file is replaced in one step. */
import { execFile } from "node:child_process";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, test } from "vitest";
import { nodeFiles, roomOf, writeFileAtomic } from "../../../../../workers/shared/files/file-system.ts";
import { appendRotated } from "../../../../../workers/shared/files/rotate.ts";
import { refuseChmod } from "../../../refused-chmod.ts";
import { tempFolder } from "../../../temp-folder.ts";

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe("writeFileAtomic", () => {
  test("no file, no folder -> file 0600 in folder 0700, nothing else", async () => {
    const folder = join(await tempFolder(), "a", "b");
    await writeFileAtomic(join(folder, "f"), "text");
    expect(await readFile(join(folder, "f"), "utf8")).toBe("text");
    expect(await modeOf(join(folder, "f"))).toBe(0o600);
    expect(await modeOf(folder)).toBe(0o700);
    expect(await readdir(folder)).toEqual(["f"]);
  });

  test("bytes -> the same bytes", async () => {
    const path = join(await tempFolder(), "f");
    await writeFileAtomic(path, Uint8Array.of(0, 255, 10));
    expect([...(await readFile(path))]).toEqual([0, 255, 10]);
  });

  it.each([
    ["0600", 0o600],
    ["0640", 0o640],
    ["0644", 0o644],
    ["0666, beyond the umask", 0o666],
    ["0755", 0o755],
  ])("a file of mode %s -> replaced, mode kept", async (_name, mode) => {
    const path = join(await tempFolder(), "f");
    await writeFile(path, "old");
    await chmod(path, mode);
    await writeFileAtomic(path, "new");
    expect(await readFile(path, "utf8")).toBe("new");
    expect(await modeOf(path)).toBe(mode);
  });

  it.each(["EPERM", "ENOTSUP", "ENOSYS"])(
    "a file system that answers chmod with %s -> replaced, with no more rights than before",
    async (code) => {
      const path = join(await tempFolder(), "f");
      await writeFile(path, "old");
      await chmod(path, 0o640);
      await refuseChmod(code);
      await writeFileAtomic(path, "new");
      await writeFileAtomic(`${path}2`, "new");
      expect(await readFile(path, "utf8")).toBe("new");
      expect((await modeOf(path)) & ~0o640).toBe(0);
      expect(await modeOf(`${path}2`)).toBe(0o600);
    },
  );

  test("a chmod that fails for another reason -> rejects, the old content stays, no temp file", async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, "f"), "old");
    await refuseChmod("EIO");
    await expect(writeFileAtomic(join(folder, "f"), "new")).rejects.toThrow("EIO");
    expect(await readFile(join(folder, "f"), "utf8")).toBe("old");
    expect(await readdir(folder)).toEqual(["f"]);
  });

  // As `sudo pi` does where HOME stays, or a container as root in a home from outside.
  test.runIf(process.getuid?.() === 0)(
    "root in the folder of a user -> files and folders are the user's, a file of another one stays that one's, those of root's own folder are root's",
    async () => {
      const ownersOf = async (folder: string, paths: readonly string[]): Promise<number[]> =>
        (await Promise.all(paths.map((path) => stat(join(folder, path))))).map(({ uid }) => uid);
      const folder = await tempFolder();
      await writeFile(join(folder, "other"), "old", { mode: 0o600 });
      await chown(join(folder, "other"), 1_001, 1_001);
      await chown(folder, 1_000, 1_000);
      for (const path of ["f", "a/b/f", "other"]) await writeFileAtomic(join(folder, path), "new");
      await writeFileAtomic(join(folder, "f"), "newer");
      await appendRotated(join(folder, "log"), "line", 100);
      const paths = ["f", "a", "a/b", "a/b/f", "log", "other"];
      expect(await ownersOf(folder, paths)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000, 1_001]);
      expect(await modeOf(join(folder, "f"))).toBe(0o600);
      const own = await tempFolder();
      await writeFileAtomic(join(own, "a/f"), "new");
      expect(await ownersOf(own, ["a", "a/f"])).toEqual([0, 0]);
    },
  );

  test("a symlink -> stays a link, the file behind it is replaced", async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, "real"));
    await writeFile(join(folder, "real", "f"), "old");
    await symlink(join("real", "f"), join(folder, "link"));
    await writeFileAtomic(join(folder, "link"), "new");
    expect((await lstat(join(folder, "link"))).isSymbolicLink()).toBe(true);
    expect(await readFile(join(folder, "real", "f"), "utf8")).toBe("new");
    expect(await readdir(folder)).toEqual(["link", "real"]);
    expect(await readdir(join(folder, "real"))).toEqual(["f"]);
  });

  test("a link in a folder behind a link, to a file that is not there -> the file where the system would make it", async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, "dotfiles/pi/agent"), { recursive: true });
    await mkdir(join(folder, "dotfiles/shared"));
    await symlink("dotfiles/pi", join(folder, ".pi"));
    await symlink("../../shared/mcp.json", join(folder, "dotfiles/pi/agent/mcp.json"));
    const path = join(folder, ".pi/agent/mcp.json");
    await writeFileAtomic(path, "new");
    expect(await readFile(path, "utf8")).toBe("new");
    expect(await readdir(join(folder, "dotfiles/shared"))).toEqual(["mcp.json"]);
    expect(await readdir(folder)).toEqual([".pi", "dotfiles"]);
  });

  test("a link to a link to a file that is not there -> both stay links", async () => {
    const folder = await tempFolder();
    await symlink("b", join(folder, "a"));
    await symlink(join(folder, "c"), join(folder, "b"));
    await writeFileAtomic(join(folder, "a"), "new");
    expect([await readlink(join(folder, "a")), await readlink(join(folder, "b"))]).toEqual([
      "b",
      join(folder, "c"),
    ]);
    expect(await readFile(join(folder, "c"), "utf8")).toBe("new");
  });

  test("a target that cannot be replaced -> rejects, no temp file stays", async () => {
    const folder = await tempFolder();
    await mkdir(join(folder, "f", "inner"), { recursive: true });
    await expect(writeFileAtomic(join(folder, "f"), "new")).rejects.toThrow();
    expect(await readdir(folder)).toEqual(["f"]);
    expect(await readdir(join(folder, "f"))).toEqual(["inner"]);
  });

  test.each(["itself", "behind a link"])(
    "a device or pipe, %s -> rejects; the device or pipe stays",
    async (where) => {
      const folder = await tempFolder();
      const path = join(folder, "f");
      const pipe = where === "itself" ? path : join(folder, "pipe");
      await promisify(execFile)("mkfifo", [pipe]);
      if (pipe !== path) await symlink(pipe, path);
      await expect(writeFileAtomic(path, "new")).rejects.toThrow("it is a named pipe, not a regular file");
      expect((await lstat(pipe)).isFIFO()).toBe(true);
    },
  );

  test("data that cannot be written -> rejects, the old content stays, no temp file", async () => {
    const folder = await tempFolder();
    const path = join(folder, "f");
    await writeFile(path, "old");
    await expect(writeFileAtomic(path, 5 as unknown as string)).rejects.toThrow();
    expect(await readFile(path, "utf8")).toBe("old");
    expect(await readdir(folder)).toEqual(["f"]);
  });

  describe("a target that another process has open", () => {
    /** Each rename fails with `code` but those after the first `times`. Nothing else fails. */
    const inUse = (code: string, times: number) => {
      const seen = { renames: 0, asked: 0 };
      const rename = async (from: string, to: string): Promise<void> => {
        if (seen.renames++ < times) throw Object.assign(new Error(`${code}: injected, rename`), { code });
        await nodeFiles.rename(from, to);
      };
      const beforeReplace = async (): Promise<void> => void seen.asked++;
      return { seen, options: { files: { ...nodeFiles, rename }, beforeReplace } };
    };

    it.each(["EPERM", "EACCES", "EBUSY"])(
      "on Windows for a moment (%s) -> replaced, and its lock is asked for before each attempt",
      async (code) => {
        const folder = await tempFolder();
        const { seen, options } = inUse(code, 3);
        await writeFileAtomic(join(folder, "f"), "new", { ...options, platform: "win32" });
        expect(await readFile(join(folder, "f"), "utf8")).toBe("new");
        expect(seen).toEqual({ renames: 4, asked: 4 });
        expect(await readdir(folder)).toEqual(["f"]);
      },
    );

    it.each([
      ["on Windows for good", "win32", "EBUSY", 9],
      ["on Windows for another reason", "win32", "ENOSPC", 1],
      ["on Linux, where the code is no matter of time", "linux", "EPERM", 1],
    ] as const)(
      "%s -> rejects, the old content stays, no temp file",
      async (_what, platform, code, renames) => {
        const folder = await tempFolder();
        await writeFile(join(folder, "f"), "old");
        const { seen, options } = inUse(code, Number.POSITIVE_INFINITY);
        await expect(writeFileAtomic(join(folder, "f"), "new", { ...options, platform })).rejects.toThrow(
          code,
        );
        expect(await readFile(join(folder, "f"), "utf8")).toBe("old");
        expect(seen.renames).toBe(renames);
        expect(await readdir(folder)).toEqual(["f"]);
      },
    );
  });

  test("a folder that cannot be made -> rejects", async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, "file"), "");
    await expect(writeFileAtomic(join(folder, "file", "f"), "x")).rejects.toThrow();
  });

  test("a name of 255 bytes -> written, since the length of the temp name does not depend on it", async () => {
    const path = join(await tempFolder(), "n".repeat(255));
    await writeFileAtomic(path, "x");
    expect(await readFile(path, "utf8")).toBe("x");
  });

  test("twenty writes at once -> one of the contents, whole, no temp file", async () => {
    const folder = await tempFolder();
    const path = join(folder, "f");
    const contents = Array.from({ length: 20 }, (_, i) => String(i).repeat(50_000));
    await Promise.all(contents.map((content) => writeFileAtomic(path, content)));
    expect(contents).toContain(await readFile(path, "utf8"));
    expect(await readdir(folder)).toEqual(["f"]);
  });
});

test.each([
  ["with room", { blocks: 10, bavail: 3, bsize: 4_096 }, 12_288],
  ["that is full", { blocks: 10, bavail: 0, bsize: 4_096 }, 0],
  ["that does not tell its room", { blocks: 0, bavail: 0, bsize: 4_096 }, Number.POSITIVE_INFINITY],
])("the room of a disk %s", (_what, told, bytes) => {
  expect(roomOf(told)).toBe(bytes);
});
