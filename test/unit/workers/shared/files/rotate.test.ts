/** A file that grows for ever is rotated once, whoever writes it, and where it really lies. */
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { appendRotated } from "../../../../../workers/shared/files/rotate.ts";
import { tempFolder } from "../../../temp-folder.ts";

const MOST = 100;
const FULL = "o".repeat(MOST);

test("a full file, ten writers at once -> it is kept whole as the older one, no line is lost, nothing else stays", async () => {
  const folder = await tempFolder();
  const file = join(folder, "log");
  await writeFile(file, FULL);
  await Promise.all(Array.from({ length: 10 }, (_, i) => appendRotated(file, `${i}\n`, MOST)));
  const [older, newer] = [await readFile(`${file}.1`, "utf8"), await readFile(file, "utf8")];
  expect(older.startsWith(FULL)).toBe(true);
  const lines = `${older.slice(FULL.length)}${newer}`.trim().split("\n");
  expect(lines.toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => String(i)));
  expect(await readdir(folder)).toEqual(["log", "log.1"]);
});

test("a link to a full file -> stays a link, the older file lies beside the real one", async () => {
  const folder = await tempFolder();
  await mkdir(join(folder, "real"));
  await writeFile(join(folder, "real", "log"), FULL);
  await symlink(join("real", "log"), join(folder, "link"));
  await appendRotated(join(folder, "link"), "new\n", MOST);
  expect((await lstat(join(folder, "link"))).isSymbolicLink()).toBe(true);
  expect(await readFile(join(folder, "real", "log"), "utf8")).toBe("new\n");
  expect(await readFile(join(folder, "real", "log.1"), "utf8")).toBe(FULL);
  expect(await readdir(folder)).toEqual(["link", "real"]);
});
