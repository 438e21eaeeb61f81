/**
 * Owns: tests of an envFile in the session's folder, in the real Pi. The file decides nothing about which programs the
 * user's own servers run. For a project's servers it sets only what the user has seen and allowed, also after an edit.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PiHome } from "../support/pi-run.ts";
import { notices } from "../support/rpc-events.ts";
import { type InTurn, inTurn } from "./in-turn.ts";
import { dialogsOf, live, type Opened, PATIENCE_MS, serversOf } from "./rpc-support.ts";
import { call, readLog, searchFor } from "./support.ts";

const EVIL = "NODE_OPTIONS=--require=./evil.cjs\n";
const EAGER = { lifecycle: "eager" };
const withEnvFile = (file = ".env", more: Record<string, unknown> = {}) =>
  live([], {}, { envFile: file, ...more });
/** The folder is a project of its own for each test. */
const turn = inTurn();
const config = (servers: Record<string, unknown>) => ({ mcpServers: servers });
const hash = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Returns the files of a folder whose `evil.cjs` runs if a server gets the NODE_OPTIONS of its `.env`. */
const clone = (env: string): Record<string, string> => ({
  ".env": env,
  "evil.cjs": 'require("node:fs").writeFileSync(require("node:path").join(__dirname, "evil-ran"), "");',
});

const evilRan = (at: PiHome): Promise<boolean> =>
  stat(join(at.cwd, "evil-ran")).then(
    () => true,
    () => false,
  );

/**
 * Replaces the file by a rename. A file written in place is empty for a moment, which would cause an extra question.
 */
async function setEnv(at: PiHome, text: string): Promise<void> {
  const whole = join(at.dir, "new.env");
  await writeFile(whole, text);
  await rename(whole, join(at.cwd, ".env"));
}
const titles = ({ rpc }: Opened): string[] => dialogsOf(rpc).map(({ title }) => title);
const servers = async (at: PiHome): Promise<number> => (await serversOf(at)).length;

describe("the user's own server with an envFile", () => {
  const token = async (pi: Opened): Promise<string> => {
    await pi.prompt(searchFor("select:own__work"));
    return (await pi.ask("own__work")).token;
  };

  test.each([true, false])(
    "in a clone, trusted: %s -> variables that decide which programs run are left out, with a notice",
    async (trusted) => {
      const env = `${EVIL}PATH=./bin\nTOKEN=of-the-file\n`;
      const pi = await turn({ trusted, files: clone(env), mcp: config({ own: withEnvFile() }) });
      const told = await pi.notice(/lies in the folder that Pi runs in/);
      expect(told).toContain(
        `${join(pi.at.cwd, ".env")} lies in the folder that Pi runs in and sets NODE_OPTIONS, PATH: `,
      );
      expect(await token(pi)).toBe(hash("of-the-file"));
      expect(await evilRan(pi.at)).toBe(false);
      expect(titles(pi)).toEqual([]);
      const log = await readLog(pi.at);
      expect(log).toMatch(/own .*\.env lies in the folder that Pi runs in and sets NODE_OPTIONS, PATH/);
      expect(`${told}${log}`).not.toMatch(/evil|of-the-file|\.\/bin/);
    },
  );

  test("outside the clone, with an absolute path -> all variables count", async () => {
    const pi = await turn((at) => ({
      files: clone("TOKEN=of-the-clone\n"),
      mcp: config({ own: withEnvFile(join(at.dir, "mine.env")) }),
      fill: (folder) =>
        writeFile(
          join(folder, "mine.env"),
          `NODE_OPTIONS=--require=${join(at.cwd, "evil.cjs")}\nTOKEN=mine\n`,
        ),
    }));
    expect(await token(pi)).toBe(hash("mine"));
    expect(await evilRan(pi.at)).toBe(true);
    expect(notices(pi.rpc.events).filter(({ level }) => level !== "info")).toEqual([]);
  });

  test("a link into the clone or out of the clone -> variables that decide which programs run are left out", async () => {
    const pi = await turn((at) => ({
      files: clone(EVIL),
      mcp: config({ own: withEnvFile(join(at.dir, "into.env")), other: withEnvFile("out.env") }),
      fill: async (folder) => {
        await symlink(join(at.cwd, ".env"), join(folder, "into.env"));
        await writeFile(join(folder, "theirs.env"), EVIL);
        await symlink(join(at.dir, "theirs.env"), join(folder, "project", "out.env"));
      },
    }));
    await pi.statusLine("MCP: 2 servers ready · 2 tools");
    await pi.notice(/into\.env lies in the folder .* sets NODE_OPTIONS: left out/);
    await pi.notice(/out\.env lies in the folder .* sets NODE_OPTIONS: left out/);
    expect(await evilRan(pi.at)).toBe(false);
  });
});

describe("a project's server with an envFile", () => {
  const project = (env: string) => ({
    ...clone(env),
    ".mcp.json": config({ docs: withEnvFile(".env", EAGER) }),
  });
  const SAFE = "NODE_OPTIONS=--no-warnings\nTOKEN=one\n";

  async function allowed(): Promise<InTurn> {
    const pi = await turn({ files: project(SAFE) });
    const asked = await pi.dialog();
    expect(asked.title).toContain("env from .env, which sets NODE_OPTIONS=--no-warnings, TOKEN)");
    pi.answer(asked, { value: "Allow" });
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    return pi;
  }

  test("the question -> it says what the file sets; in a later session a new secret in the file needs no new answer, a new program does", async () => {
    const pi = await allowed();
    const { at } = pi;
    expect(await readFile(join(at.agentDir, "mcp-trust.json"), "utf8")).not.toMatch(/no-warnings|one"/);

    await pi.again({ files: { "project/.env": SAFE.replace("one", "two") } });
    await pi.prompt(searchFor("select:docs__work"));
    expect((await pi.ask("docs__work")).token).toBe(hash("two"));
    expect(titles(pi)).toEqual([]);

    await pi.again({ files: { "project/.env": EVIL } });
    expect((await pi.dialog()).title).toContain("which sets NODE_OPTIONS=--require=./evil.cjs)");
    expect(await pi.status()).toContain("waits for your consent: docs: ");
    expect(await evilRan(at)).toBe(false);
    expect(await servers(at)).toBe(0);
  });

  test("an edit while the server runs -> the server is asked for again, and does not run until the answer", async () => {
    const pi = await allowed();
    await pi.prompt(searchFor("select:docs__work"));
    const { pid } = await pi.ask("docs__work");
    let since = pi.rpc.events.length;
    await setEnv(pi.at, SAFE.replace("one", "two"));
    await setEnv(pi.at, `${SAFE}LD_LIBRARY_PATH=./lib\n`);
    const asked = await pi.dialog(since);
    expect(asked.title).toContain("which sets LD_LIBRARY_PATH=./lib, NODE_OPTIONS=--no-warnings, TOKEN)");
    await expect.poll(() => servers(pi.at), { timeout: PATIENCE_MS }).toBe(0);
    since = pi.rpc.events.length;
    pi.answer(asked, { value: "Allow" });
    await pi.statusLine("MCP: 1 server ready · 1 tool", since);
    // The tool, which was withdrawn meanwhile, is back when Pi has read the new catalog.
    await pi.prompt(searchFor("select:docs__work"));
    expect((await pi.ask("docs__work")).pid).not.toBe(pid);
    expect(titles(pi)).toHaveLength(2);
  });

  test("an edit between the question and the answer -> the answer runs nothing, the new content is asked for", async () => {
    const pi = await turn({ files: project(SAFE) });
    const asked = await pi.dialog();
    const since = pi.rpc.events.length;
    await setEnv(pi.at, EVIL);
    pi.answer(asked, { value: "Allow" });
    expect((await pi.dialog(since)).title).toContain("which sets NODE_OPTIONS=--require=./evil.cjs)");
    await pi.status();
    expect(await evilRan(pi.at)).toBe(false);
    expect(await servers(pi.at)).toBe(0);
  });

  test("a model writes the envFile of a server that started with the project -> asked for, in the next session too", async () => {
    const files = { ...clone(SAFE), ".pi/mcp.json": config({ docs: withEnvFile(".env") }) };
    const pi = await turn({ trusted: true, files });
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    expect(titles(pi)).toEqual([]);
    await pi.prompt(call("write", { path: join(pi.at.cwd, ".env"), content: EVIL }));
    pi.answer(await pi.dialog(), { value: "Not now" });
    await pi.again();
    expect((await pi.dialog()).title).toContain("which sets NODE_OPTIONS=--require=./evil.cjs)");
    expect(await evilRan(pi.at)).toBe(false);
  });

  test("a link to itself, a folder or a variable that is not set in place of the file -> the status says so, nothing hangs", async () => {
    const pi = await turn((at) => ({
      files: {
        ".mcp.json": config({
          a: withEnvFile("a.env"),
          b: withEnvFile("b.env"),
          c: withEnvFile("$env:NOT_SET/.env"),
        }),
      },
      fill: async (folder) => {
        await symlink(join(at.cwd, "a.env"), join(folder, "project", "a.env"));
        await mkdir(join(folder, "project", "b.env"));
      },
    }));
    await pi.dialog();
    const status = await pi.status();
    expect(status).toMatch(/a: .*env from a\.env, which cannot be used now: it cannot be read \(ELOOP\)/);
    expect(status).toMatch(/b: .*env from b\.env, which cannot be used now: it is a folder/);
    expect(status).toMatch(
      /c: .*, which cannot be used now: NOT_SET is not set.*uses \$NOT_SET of your environment/,
    );
  });
});
