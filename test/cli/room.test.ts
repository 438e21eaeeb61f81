/**
 * Owns: servers with a sandbox as a plain user has them, and machines that cannot make one: without bubblewrap, without
 * namespaces. The machines are real ones, made by bubblewrap itself.
 */
import { execFileSync } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { fixtureServer, type Run, runCli } from "./support.ts";

const NOBODY = "65534";
/** Root needs no namespaces of users, which most people need. */
const AS_A_USER =
  process.getuid?.() === 0 ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : [];
const WITHOUT_BWRAP = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", "/dev/null", "/usr/bin/bwrap"];
const WITHOUT_NAMESPACES = [
  ...AS_A_USER,
  "bwrap",
  "--unshare-user",
  "--disable-userns",
  "--dev-bind",
  "/",
  "/",
];

async function homeWith(servers: Record<string, unknown>): Promise<PiHome> {
  const home = await makeHome({ mcp: { mcpServers: servers } });
  await mkdir(join(home.dir, ".ssh"));
  await writeFile(join(home.dir, ".ssh", "id"), "the secret");
  if (AS_A_USER.length > 0) {
    // The folder of code that all tests share is root's, so this user makes one of its own.
    await rm(join(home.agentDir, "mcp-code"));
    execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, home.dir]);
  }
  return home;
}

const tries = (more: Record<string, unknown> = {}) => ({ ...fixtureServer("tries.mjs"), ...more });
const work = (
  home: PiHome,
  server: string,
  code: string,
  within: readonly string[] = AS_A_USER,
): Promise<Run> => runCli(home, ["call", server, "work", `code=${code}`], { within });
/** From where npm has put it: what tests bundle lies in the temp folder, which a sandbox hides. */
const npmServer = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [
    join(import.meta.dirname, "..", "..", "node_modules", "@modelcontextprotocol", name, "dist", "index.js"),
    ...args,
  ],
});
const READ_KEY = 'return fs.readFileSync(process.env.HOME + "/.ssh/id", "utf8")';

test("a plain user, start after start -> it works each time, hides the keys, and the doctor sees that it holds", async () => {
  const home = await homeWith({ s: tries({ sandbox: true }), plain: tries() });
  expect((await work(home, "plain", READ_KEY)).stdout).toBe('"the secret"\n');
  for (let start = 0; start < 2; start++)
    expect(await work(home, "s", READ_KEY)).toMatchObject({ code: 0, stdout: "ENOENT\n", stderr: "" });
  const { code, stdout } = await runCli(home, ["doctor", "s", "--json"], { within: AS_A_USER });
  expect(code).toBe(0);
  expect(stdout).toMatch(/Its sandbox holds: \d+ hidden places cannot be read from inside\./);
});

test.each([
  ["no bubblewrap", WITHOUT_BWRAP, /bwrap is missing\./, /Install the package bubblewrap/],
  [
    "no namespaces",
    WITHOUT_NAMESPACES,
    /bwrap: .*(?:namespace|uid map)/,
    /--security-opt seccomp=unconfined or --cap-add SYS_ADMIN/,
  ],
])(
  "%s -> the server does not start, the call and the doctor say what to do, and others work",
  async (_what, within, why, remedy) => {
    const home = await homeWith({ s: tries({ sandbox: true }), plain: tries() });
    const refused = await work(home, "s", "return 1", within);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toMatch(/^pi-mcp-threads: s: its sandbox cannot be made: /);
    expect(refused.stderr).toMatch(why);
    expect(refused.stderr).toMatch(remedy);
    expect(await work(home, "plain", "return 1", within)).toMatchObject({ code: 0, stdout: "1\n" });
    const { code, stdout } = await runCli(home, ["doctor", "s", "--json"], { within });
    expect(code).toBe(1);
    expect(stdout).toMatch(/Its sandbox cannot be made: /);
    expect(stdout).toMatch(remedy);
  },
);

test("three servers of npm in a sandbox do their work: files within and not outside, a memory that lasts, each tool of everything", {
  tags: "thorough",
}, async () => {
  const home = await homeWith({});
  const notes = join(home.dir, "notes");
  await mkdir(notes);
  const memory = join(notes, "memory.jsonl");
  await home.writeMcp({
    mcpServers: {
      files: { ...npmServer("server-filesystem", home.dir), sandbox: { write: [notes] } },
      memory: {
        ...npmServer("server-memory"),
        env: { MEMORY_FILE_PATH: memory },
        sandbox: { write: [notes] },
      },
      everything: { ...npmServer("server-everything"), sandbox: { network: false } },
    },
  });
  if (AS_A_USER.length > 0) execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, home.dir]);
  const call = (...words: string[]): Promise<Run> => runCli(home, ["call", ...words], { within: AS_A_USER });

  expect(await call("files", "write_file", `path=${notes}/a.txt`, "content=kept")).toMatchObject({ code: 0 });
  expect(await readFile(join(notes, "a.txt"), "utf8")).toBe("kept");
  expect(await call("files", "write_file", `path=${home.dir}/b.txt`, "content=x")).toMatchObject({ code: 1 });
  const paths = JSON.stringify({ paths: [`${notes}/a.txt`, `${home.dir}/.ssh/id`] });
  const { stdout } = await call("files", "read_multiple_files", "--args", paths);
  expect(stdout).toContain("kept");
  expect(stdout).not.toContain("the secret");

  const entities = JSON.stringify({
    entities: [{ name: "Pi", entityType: "agent", observations: ["runs"] }],
  });
  expect(await call("memory", "create_entities", "--args", entities)).toMatchObject({ code: 0 });
  expect((await call("memory", "read_graph")).stdout).toContain("Pi");

  expect((await call("everything", "echo", "message=hello")).stdout).toContain("hello");
  expect((await call("everything", "get-sum", "a=2", "b=3")).stdout).toContain("5");
});
