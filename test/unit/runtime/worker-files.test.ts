/** Owns: the files from which a worker is started, also after they were deleted. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, describe, expect, it, test } from "vitest";
import { connectionWorkerUrl, createWorkerFiles } from "../../../src/runtime/thread.ts";
import { tempFolder } from "../temp-folder.ts";

const before = process.env.TMPDIR;
afterEach(() => {
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
});

async function packed(): Promise<{ folder: string; url: URL; temp: string }> {
  const folder = await tempFolder();
  const temp = await tempFolder();
  process.env.TMPDIR = temp;
  for (const name of ["connection.js", "cache.js", "worker.js"])
    await writeFile(join(folder, name), `// ${name}`);
  await writeFile(join(folder, "notes.txt"), "");
  return { folder, url: pathToFileURL(join(folder, "connection.js")), temp };
}

describe("connectionWorkerUrl", () => {
  it.each([
    ["file:///p/src/runtime/thread.ts", "file:///p/workers/connection.ts"],
    ["file:///p/dist/later.js", "file:///p/dist/workers/connection.js"],
    ["file:///a%20b/node_modules/p/dist/later.js", "file:///a%20b/node_modules/p/dist/workers/connection.js"],
  ])("%s -> %s", (here, url) => {
    expect(connectionWorkerUrl(here).href).toBe(url);
  });
});

describe("createWorkerFiles", () => {
  test("the files exist -> the same URL, no copy", async () => {
    const { url, temp } = await packed();
    const files = createWorkerFiles(url);
    await files.remember();
    expect((await files.locate()).href).toBe(url.href);
    expect(await readdir(temp)).toEqual([]);
  });

  test("the files are gone -> one private copy of the code, at every call the same", async () => {
    const { folder, url, temp } = await packed();
    const files = createWorkerFiles(url);
    await files.remember();
    await rm(folder, { recursive: true });
    const copy = await files.locate();
    expect((await files.locate()).href).toBe(copy.href);
    expect(await readdir(temp)).toHaveLength(1);
    const copied = dirname(fileURLToPath(copy));
    expect((await readdir(copied)).sort()).toEqual([
      "cache.js",
      "connection.js",
      "package.json",
      "worker.js",
    ]);
    expect(await readFile(copy, "utf8")).toBe("// connection.js");
    expect(JSON.parse(await readFile(join(copied, "package.json"), "utf8"))).toEqual({ type: "module" });
  });

  test("an update has put other files in their place -> a copy of the files that belong together", async () => {
    const { folder, url, temp } = await packed();
    const files = createWorkerFiles(url);
    await files.remember();
    await rm(join(folder, "cache.js"));
    await writeFile(join(folder, "connection.js"), "// of the next version");
    const copy = await files.locate();
    expect(await readFile(copy, "utf8")).toBe("// connection.js");
    expect(await readdir(temp)).toHaveLength(1);
  });

  test("a file of the same name has other code -> a copy, one for all who ask at once, gone after dispose", async () => {
    const { folder, url, temp } = await packed();
    const files = createWorkerFiles(url);
    await files.remember();
    await writeFile(join(folder, "worker.js"), "// of the next version");
    const [one, two] = await Promise.all([files.locate(), files.locate()]);
    expect(one?.href).toBe(two?.href);
    expect(await readFile(new URL("worker.js", one), "utf8")).toBe("// worker.js");
    expect(await readdir(temp)).toHaveLength(1);
    await files.dispose();
    expect(await readdir(temp)).toEqual([]);
  });

  test("disposed while the copy is written -> no copy is left", async () => {
    const { folder, url, temp } = await packed();
    const files = createWorkerFiles(url);
    await files.remember();
    await rm(folder, { recursive: true });
    const located = files.locate();
    await files.dispose();
    await located;
    expect(await readdir(temp)).toEqual([]);
  });

  test("gone before they were kept -> the same URL, where the start fails and says so", async () => {
    const { folder, url } = await packed();
    const files = createWorkerFiles(url);
    await rm(folder, { recursive: true });
    expect((await files.locate()).href).toBe(url.href);
  });

  test("gone while they are read -> the caller gets the error, and nothing is copied", async () => {
    const { folder, url, temp } = await packed();
    const files = createWorkerFiles(url);
    await rm(folder, { recursive: true });
    await expect(files.remember()).rejects.toThrow(/ENOENT/);
    expect((await files.locate()).href).toBe(url.href);
    expect(await readdir(temp)).toEqual([]);
  });

  test("one file cannot be read -> no copy without that file", async () => {
    const { folder, url } = await packed();
    await rm(join(folder, "worker.js"));
    await mkdir(join(folder, "worker.js"));
    const files = createWorkerFiles(url);
    await expect(files.remember()).rejects.toThrow(/EISDIR/);
    await rm(folder, { recursive: true });
    expect((await files.locate()).href).toBe(url.href);
  });

  test("a checkout -> never kept, never copied", async () => {
    const folder = await tempFolder();
    const url = pathToFileURL(join(folder, "connection.ts"));
    const files = createWorkerFiles(url);
    await files.remember();
    expect((await files.locate()).href).toBe(url.href);
  });
});
