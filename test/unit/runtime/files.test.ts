/** Owns: the files that main loads later, also after they were deleted or replaced. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, test, vi } from "vitest";
import { connectionWorkerUrl, createFiles } from "../../../src/runtime/files.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { tempFolder } from "../temp-folder.ts";

interface Packed {
  folder: string;
  url: URL;
  agent: string;
  /** The copies below the agent folder. */
  copies: () => Promise<string[]>;
}

async function packed(): Promise<Packed> {
  const home = await tempFolder();
  const folder = join(home, "workers");
  await mkdir(folder);
  const agent = await tempFolder();
  for (const name of ["connection.js", "cache.js", "worker.js"])
    await writeFile(join(folder, name), `// ${name}`);
  await writeFile(join(folder, "notes.txt"), "");
  for (const name of ["screens.js", "chunk-A.js", "chunk.js", "later.js"])
    await writeFile(join(home, name), `// ${name}`);
  const copies = (): Promise<string[]> => readdir(join(agent, "mcp-code")).catch(() => []);
  return { folder, url: pathToFileURL(join(folder, "connection.js")), agent, copies };
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

describe("createFiles", () => {
  test("the files exist -> the same URL, no copy", async () => {
    const { url, agent, copies } = await packed();
    const files = createFiles(url);
    await files.remember(agent);
    expect((await files.locate()).href).toBe(url.href);
    expect(await copies()).toEqual([]);
  });

  test("it is to remember later -> until then nothing is read, afterwards as ever", async () => {
    const { folder, url, agent } = await packed();
    const files = createFiles(url);
    const remembered = files.remember(agent, 50);
    await writeFile(join(folder, "cache.js"), "// changed before");
    await remembered;
    expect(await files.isReplaced()).toBe(false);
    await writeFile(join(folder, "cache.js"), "// changed afterwards");
    expect(await files.isReplaced()).toBe(true);
  });

  test("the files are gone -> one private copy of the code, at every call the same", async () => {
    const { folder, url, agent, copies } = await packed();
    const files = createFiles(url);
    await files.remember(agent);
    await rm(folder, { recursive: true });
    const copy = await files.locate();
    expect((await files.locate()).href).toBe(copy.href);
    expect(await copies()).toHaveLength(1);
    const copied = dirname(fileURLToPath(copy));
    expect((await readdir(copied)).sort()).toEqual(["cache.js", "connection.js", "worker.js"]);
    expect(await readFile(copy, "utf8")).toBe("// connection.js");
    // What main has loaded itself is not needed again.
    const all = (await readdir(dirname(copied))).sort();
    expect(all).toEqual(["chunk-A.js", "package.json", "screens.js", "workers"]);
    const manifest = await readFile(new URL("../package.json", copy), "utf8");
    expect(JSON.parse(manifest)).toEqual({ type: "module" });
  });

  test("an update has put other files in their place -> a copy of the files that belong together", async () => {
    const { folder, url, agent, copies } = await packed();
    const files = createFiles(url);
    await files.remember(agent);
    await rm(join(folder, "cache.js"));
    await writeFile(join(folder, "connection.js"), "// of the next version");
    const copy = await files.locate();
    expect(await readFile(copy, "utf8")).toBe("// connection.js");
    expect(await copies()).toHaveLength(1);
  });

  test("a file of the same name has other code -> a copy, one for all who ask at once", async () => {
    const { folder, url, agent, copies } = await packed();
    const files = createFiles(url);
    await files.remember(agent);
    await writeFile(join(folder, "worker.js"), "// of the next version");
    const [one, two] = await Promise.all([files.locate(), files.locate()]);
    expect(one?.href).toBe(two?.href);
    expect(await readFile(new URL("worker.js", one), "utf8")).toBe("// worker.js");
    expect(await copies()).toHaveLength(1);
  });

  test("the same version is installed anew -> the same URL, and nobody is told", async () => {
    const { folder, url, agent, copies } = await packed();
    const files = createFiles(url);
    await files.remember(agent);
    await rename(folder, `${folder}-old`);
    await mkdir(folder);
    for (const name of ["connection.js", "cache.js", "worker.js"])
      await writeFile(join(folder, name), `// ${name}`);
    expect((await files.locate()).href).toBe(url.href);
    expect(await files.isReplaced()).toBe(false);
    expect(await copies()).toEqual([]);
  });

  test.each<[string, (copied: string) => Promise<unknown>]>([
    ["all of it", (copied) => rm(dirname(copied), { recursive: true })],
    ["one of its files", (copied) => rm(join(copied, "cache.js"))],
    [
      "all of it, and another user of the machine has put the same there",
      async (copied) => {
        const names = await readdir(copied);
        await rm(copied, { recursive: true });
        await mkdir(copied);
        for (const name of names) await writeFile(join(copied, name), `// ${name}`);
      },
    ],
  ])("the system has cleared the copy, %s -> another copy", async (_what, clear) => {
    const { folder, url, agent } = await packed();
    const files = createFiles(url);
    await files.remember(agent);
    await rm(folder, { recursive: true });
    const first = await files.locate();
    await clear(dirname(fileURLToPath(first)));
    const second = await files.locate();
    expect(second.href).not.toBe(first.href);
    expect(await readFile(new URL("cache.js", second), "utf8")).toBe("// cache.js");
    expect((await files.locate()).href).toBe(second.href);
  });

  test("no folder is the user's alone -> a copy in the temp folder", async () => {
    const { folder, url, agent } = await packed();
    const temp = await tempFolder();
    vi.stubEnv("TMPDIR", temp);
    const files = createFiles(url);
    await files.remember(join(agent, "none"));
    await rm(folder, { recursive: true });
    expect(fileURLToPath(await files.locate()).startsWith(temp)).toBe(true);
    vi.unstubAllEnvs();
  });

  test("copies of a Pi that was killed a month ago are removed with the next copy, and nothing else", async () => {
    const { folder, url, agent, copies } = await packed();
    const files = createFiles(url);
    await files.remember(agent);
    await rm(folder, { recursive: true });
    await mkdir(join(agent, "mcp-code"), { mode: 0o700 });
    for (const name of ["pi-mcp-threads-old", "pi-mcp-threads-new", "v24.1.0-x64"])
      await mkdir(join(agent, "mcp-code", name));
    const old = new Date(Date.now() - LIMITS.unusedMs - 1_000);
    for (const name of ["pi-mcp-threads-old", "v24.1.0-x64"])
      await utimes(join(agent, "mcp-code", name), old, old);
    const copy = await files.locate();
    const made = basename(dirname(dirname(fileURLToPath(copy))));
    expect((await copies()).toSorted()).toEqual([made, "pi-mcp-threads-new", "v24.1.0-x64"].toSorted());
  });

  test("the process ends -> no copy is left", async () => {
    const { folder, url, agent, copies } = await packed();
    const room = pathToFileURL(join(import.meta.dirname, "../../../src/runtime/files.ts")).href;
    const program = `
      import { rm } from "node:fs/promises";
      const { createFiles } = await import(${JSON.stringify(room)});
      const files = createFiles(new URL(${JSON.stringify(url.href)}));
      await files.remember(${JSON.stringify(agent)});
      await rm(${JSON.stringify(folder)}, { recursive: true });
      console.log((await files.locate()).href);
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
    expect(stdout).toContain(pathToFileURL(agent).href);
    expect(existsSync(fileURLToPath(stdout.trim()))).toBe(false);
    expect(await copies()).toEqual([]);
  });

  test("gone before they were kept -> the same URL, where the start fails and says so", async () => {
    const { folder, url } = await packed();
    const files = createFiles(url);
    await rm(folder, { recursive: true });
    expect((await files.locate()).href).toBe(url.href);
  });

  test("gone while they are read -> the caller gets the error, and nothing is copied", async () => {
    const { folder, url, agent, copies } = await packed();
    const files = createFiles(url);
    await rm(folder, { recursive: true });
    await expect(files.remember(agent)).rejects.toThrow(/ENOENT/);
    expect((await files.locate()).href).toBe(url.href);
    expect(await copies()).toEqual([]);
  });

  test("one file cannot be read -> no copy without that file", async () => {
    const { folder, url, agent } = await packed();
    await rm(join(folder, "worker.js"));
    await mkdir(join(folder, "worker.js"));
    const files = createFiles(url);
    await expect(files.remember(agent)).rejects.toThrow(/EISDIR/);
    await rm(folder, { recursive: true });
    expect((await files.locate()).href).toBe(url.href);
  });

  test("a checkout -> never kept, never copied", async () => {
    const folder = await tempFolder();
    const url = pathToFileURL(join(folder, "connection.ts"));
    const files = createFiles(url);
    await files.remember(folder);
    expect((await files.locate()).href).toBe(url.href);
  });
});
