/** Owns: what hides the sockets that others opened, and what they put in the place of one. */
import { realpath, rm, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hiddenFor, isOthers } from "../../../../../workers/connection/room/sockets.ts";
import { makeTempFolder, removeFolder } from "../../../../support/temp-folder.ts";

const me = process.getuid?.() ?? 0;

test.each([
  [0, 0o755, false],
  [me, 0o700, false],
  [me + 1, 0o755, true],
  [0, 0o1777, true],
  [me, 0o777, true],
  [me, 0o775, false],
])("a folder of user %s with mode %o may be changed by others: %s", (uid, mode, expected) => {
  expect(isOthers({ uid, mode })).toBe(expected);
});

test("five thousand sockets where others may write, there or gone by now -> one rule, for the folder that they cannot move", async () => {
  const paths = Array.from({ length: 5_000 }, (_, i) => `/tmp/theirs-${process.pid}/${i}/s`);
  const rules = await hiddenFor(paths, ["/usr", "/home"]);
  const tmp = await realpath("/tmp");
  expect([...new Set(rules.map(({ path, effect }) => `${effect} ${path}`))]).toEqual([`empty ${tmp}`]);
});

test("one beside what the server needs -> it alone, while it is a socket", async () => {
  const folder = await makeTempFolder("pmt-sockets");
  onTestFinished(() => removeFolder(folder));
  const path = join(folder, "s");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  const linked = join(folder, "link");
  await symlink(path, linked);
  const closed = [{ path, effect: "closed" }];
  expect(await hiddenFor([path], [folder])).toEqual(closed);
  expect(await hiddenFor([linked], [join(folder, "session")])).toEqual(closed);
  await rm(path);
  await symlink("/usr", path);
  expect(await hiddenFor([path, linked, join(folder, "none")], [folder])).toEqual([]);
});
