/** Owns: a sign-in is read from and written to regular files of this user only, in real folders of this user. */
import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { ownId, refusal } from "../../../../../../workers/connection/auth/store/file.ts";
import { tempFolder } from "../../../../temp-folder.ts";
import { forget, openStore, put, signedIn, write } from "./support.ts";

const modeOf = async (path: string): Promise<number> => (await lstat(path)).mode & 0o777;

describe("refusal", () => {
  async function found(make: (path: string) => Promise<unknown>) {
    const path = join(await tempFolder(), "f");
    await make(path);
    return lstat(path, { bigint: true });
  }
  const file = () => found((path) => writeFile(path, ""));
  const folder = () => found((path) => mkdir(path));
  const link = () => found((path) => symlink("/dev/null", path));
  const pipe = () => found((path) => promisify(execFile)("mkfifo", [path]));

  test.each<[string, typeof file, "file" | "folder", string | undefined]>([
    ["a file as a file", file, "file", undefined],
    ["a folder as a folder", folder, "folder", undefined],
    ["a folder as a file", folder, "file", "it is a folder, not a regular file"],
    ["a file as a folder", file, "folder", "it is not a folder"],
    ["a link as a file", link, "file", "it is a link"],
    ["a link as a folder", link, "folder", "it is a link"],
    ["a pipe as a file", pipe, "file", "it is a named pipe, not a regular file"],
  ])("%s -> %4$s", async (_name, make, wanted, what) => {
    expect(refusal(await make(), wanted, ownId())).toBe(what);
  });

  test.each<["file" | "folder", typeof file]>([
    ["file", file],
    ["folder", folder],
  ])("a %s of another user -> refused; where files have no owner -> used", async (wanted, make) => {
    const stats = await make();
    expect(refusal(stats, wanted, Number(stats.uid) + 1)).toBe("it belongs to another user");
    expect(refusal(stats, wanted, undefined)).toBeUndefined();
  });
});

describe("a file that must not be used -> absent, told once, neither followed nor changed", () => {
  test.each(["file", "given"] as const)("%s is a link to a file that would count", async (which) => {
    const { store, place, warnings } = await openStore();
    const real = join(dirname(place.root), "real.json");
    await put(real, { ...signedIn() });
    await mkdir(place.folder, { recursive: true });
    await symlink(real, place[which]);
    expect(await store.read()).toEqual({});
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual([`${place[which]} is not used for a sign-in: it is a link.`]);
    expect((await lstat(place[which])).isSymbolicLink()).toBe(true);
  });

  test.each(["root", "folder"] as const)("the %s is a link", async (which) => {
    const { store, place, warnings, agentDir } = await openStore();
    const elsewhere = await openStore();
    await write(elsewhere.store, signedIn());
    await put(elsewhere.place.given, { access_token: "abc" });
    await mkdir(dirname(place[which]), { recursive: true });
    await symlink(elsewhere.place[which], place[which]);
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual([`${place[which]} is not used for a sign-in: it is a link.`]);
    const before = await readFile(elsewhere.place.file, "utf8");
    await write(store, signedIn({ access_token: "new" }));
    expect(await readFile(elsewhere.place.file, "utf8")).toBe(before);
    expect(await store.read()).toMatchObject({ record: { access_token: "new" } });
    expect(warnings[1]).toContain(`${place[which]}: it is a link`);
    await forget(store);
    expect(await readFile(elsewhere.place.file, "utf8")).toBe(before);
    expect((await readdir(elsewhere.place.folder)).sort()).toEqual((await readdir(place.folder)).sort());
    expect(await readdir(agentDir)).toEqual(["mcp-oauth"]);
  });

  test("the file is a link -> a new sign-in stays in memory, the target stays as it is", async () => {
    const { store, place, warnings } = await openStore();
    const target = join(dirname(place.root), "target");
    await put(target, "precious");
    await mkdir(place.folder, { recursive: true });
    await symlink(target, place.file);
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
    await forget(store);
    expect(await store.read()).toEqual({});
    expect(await readFile(target, "utf8")).toBe("precious");
    expect((await lstat(place.file)).isSymbolicLink()).toBe(true);
    expect(warnings).toHaveLength(2);
  });

  test.each<[string, (path: string) => Promise<unknown>, string]>([
    ["a folder", (path) => mkdir(path), "it is a folder, not a regular file"],
    [
      "a pipe that nobody writes to",
      (path) => promisify(execFile)("mkfifo", [path]),
      "it is a named pipe, not a regular file",
    ],
    [
      "a socket",
      async (path) => {
        const server = createServer();
        onTestFinished(() => void server.close());
        await new Promise<void>((resolve) => server.listen(path, resolve));
      },
      "it is a socket, not a regular file",
    ],
  ])("%s", async (_name, make, what) => {
    const { store, place, warnings } = await openStore();
    await mkdir(place.folder, { recursive: true });
    await make(place.file);
    await make(place.given);
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual(
      [place.file, place.given].map((path) => `${path} is not used for a sign-in: ${what}.`),
    );
  });

  test("a file in the place of the folder -> absent; a sign-in stays in memory", async () => {
    const { store, place, warnings } = await openStore();
    await put(place.folder, "a file");
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual([`${place.folder} is not used for a sign-in: it is not a folder.`]);
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
    expect(await readFile(place.folder, "utf8")).toBe("a file");
  });

  test("a file of more than 64 KiB -> absent, and a new sign-in keeps it aside", async () => {
    const { store, place, notes } = await openStore();
    await put(place.file, " ".repeat(65_537));
    expect(await store.read()).toEqual({});
    expect(notes).toEqual([`${place.file} is not used: it is larger than 65,536 bytes.`]);
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
    expect(await readdir(place.folder)).toHaveLength(2);
  });

  test("the link becomes a file -> used; becomes a link again -> told again", async () => {
    const { store, place, warnings } = await openStore();
    await mkdir(place.folder, { recursive: true });
    await symlink("nowhere", place.file);
    await store.read();
    await rm(place.file);
    await put(`${place.file}.new`, signedIn());
    await rename(`${place.file}.new`, place.file);
    expect(await store.read()).toEqual({ record: signedIn() });
    await rm(place.file);
    await symlink("nowhere", place.file);
    expect(await store.read()).toEqual({});
    expect(warnings).toHaveLength(2);
  });
});

describe("modes", () => {
  test("a new sign-in -> file 0600, folders 0700", async () => {
    const { store, place } = await openStore();
    await write(store, signedIn());
    expect(await Promise.all([place.root, place.folder, place.file].map(modeOf))).toEqual([
      0o700, 0o700, 0o600,
    ]);
    expect(await readdir(place.folder)).toEqual([place.file.slice(place.folder.length + 1)]);
  });

  test("file and folders that others may read -> closed with the next write", async () => {
    const { store, place } = await openStore();
    await write(store, signedIn());
    await chmod(place.file, 0o644);
    await chmod(place.folder, 0o755);
    await chmod(place.root, 0o777);
    await write(store, signedIn({ access_token: "new" }));
    expect(await Promise.all([place.root, place.folder, place.file].map(modeOf))).toEqual([
      0o700, 0o700, 0o600,
    ]);
  });
});
