/**
 * Owns: the policy of a machine in the real Pi and in the shell. bubblewrap lays a folder of the test over /etc/pi-mcp-threads:
 * nothing of this machine is written, and no variable moves the file.
 */
import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, readdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { notices } from "../support/rpc-events.ts";
import { live, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, home, model, root, searchFor } from "./support.ts";

const FILE = "/etc/pi-mcp-threads/policy.json";
const run = promisify(execFile);

/** Answers the arguments of bubblewrap for an /etc that is this machine's, with the folder in the place of the policy's. */
async function etcWith(folder: string): Promise<string[]> {
  const names = (await readdir("/etc")).filter((name) => name !== "pi-mcp-threads");
  const entries = await Promise.all(
    names.map(async (name) => {
      const path = join("/etc", name);
      const isLink = (await lstat(path)).isSymbolicLink();
      return isLink ? ["--symlink", await readlink(path), path] : ["--ro-bind-try", path, path];
    }),
  );
  const asRoot = process.getuid?.() === 0 ? [] : ["--unshare-user", "--uid", "0", "--gid", "0"];
  return [
    ...asRoot,
    "--dev-bind",
    "/",
    "/",
    "--tmpfs",
    "/etc",
    ...entries.flat(),
    "--bind",
    folder,
    "/etc/pi-mcp-threads",
  ];
}

/** A folder for the policy, and a program that runs Node under it. */
async function machine(at: PiHome, policy: unknown) {
  const folder = join(at.dir, "policy");
  const file = join(folder, "policy.json");
  await mkdir(folder, { mode: 0o755 });
  const write = async (content: unknown): Promise<void> => {
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content), { mode: 0o644 });
    await chmod(file, 0o644);
  };
  await write(policy);
  const runtime = join(at.dir, "node-under-policy");
  const words = ["bwrap", ...(await etcWith(folder)), "--", process.execPath];
  const line = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  await writeFile(runtime, `#!/bin/sh\nexec ${line} "$@"\n`, { mode: 0o755 });
  return { file, write, runtime };
}

const command = async (pi: Opened, text: string): Promise<string> =>
  notices(await pi.rpc.command(text, PATIENCE_MS))
    .map(({ message }) => message)
    .join("\n");

test("a denied server is nowhere, whatever its name; the refusal, /mcp and the doctor name the file; an edit of the policy applies at once, and a broken one ends all servers; one that denies a server between two sessions -> the first request of the second one has no tool of it", async () => {
  const direct = { directTools: true };
  const mcpServers = { good: live(["good"], {}, direct), bad: live(["bad"]), renamed: live(["bad"]) };
  const at = await home({ mcp: { mcpServers, settings: { hotReload: "ask" } } });
  const { file, write, runtime } = await machine(at, {
    deny: [{ command: ["node", "*live.mjs", "bad"] }],
    required: { company: live(["company"]) },
  });
  const env = { PI_MCP_POLICY: "/dev/null", ProgramData: "/tmp", MCP_SERVERS: "good,bad,renamed" };
  const pi = await open({ at, runtime, env });
  await pi.prompt(searchFor("work"));
  const told = JSON.stringify(pi.scripted.requests);
  expect(told).not.toMatch(/bad__work|renamed__work/);
  await pi.prompt(searchFor("select:good__work"), searchFor("select:company__work"));
  expect((await pi.ask("good__work")).argv).toEqual(["good"]);
  expect((await pi.ask("company__work")).argv).toEqual(["company"]);
  const status = await pi.status();
  for (const name of ["bad", "renamed"])
    expect(status).toContain(`${name} is not started: the policy of this machine denies it (${FILE}:1)`);
  await pi.prompt(call("bad__work", {}));
  expect(JSON.stringify(pi.scripted.requests.at(-1))).toContain("Only the administrator can allow it");
  expect(await command(pi, "/mcp doctor")).toContain("Only your administrator can allow it");
  expect(await command(pi, "/mcp off company")).toContain("The policy of this machine requires company");
  expect(await command(pi, "/mcp enable bad")).toContain("the policy of this machine denies it");

  await write({ allow: [{ name: "bad" }] });
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(/^bad: /m);
  expect(await pi.status()).toContain(
    `good is not started: the policy of this machine does not allow it (${FILE})`,
  );
  expect(await pi.status()).not.toMatch(/^company: /m);

  await write('{\n  "allow": [\n');
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).not.toMatch(/^bad: /m);
  expect(await pi.status()).toContain(`the policy of this machine cannot be used (${FILE}:`);
  await chmod(file, 0o666);
  await write({});
  await chmod(file, 0o666);
  await expect
    .poll(() => pi.status(), { timeout: PATIENCE_MS })
    .toContain("others than root can write to it");
  await rm(file);
  await symlink("/dev/null", file);
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toContain("it is a link");
  await rm(file);
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(/^good: /m);
  await pi.prompt(searchFor("select:good__work"));
  await pi.rpc.stop();

  const printed = async () => {
    const script = await model([searchFor("select:good__work"), { text: "done." }]);
    await runPrint({ home: at, runtime, model: script, extensions: ENTRY, prompt: "go" });
    return script.requests;
  };
  expect((await printed())[0]?.toolNames).toContain("good__work");
  await write({ deny: [{ name: "good" }] });
  const [first, second] = await printed();
  expect(first?.toolNames).not.toContain("good__work");
  expect(JSON.stringify(first)).not.toContain("good__");
  expect(JSON.stringify(second?.messages.at(-1))).not.toMatch(/loaded|"name":"good__work"/);
});

test("the shell: list, call, an address on the command line and add are under it", async () => {
  const at = await home({ mcp: { mcpServers: { bad: live(["bad"]) } } });
  const { runtime } = await machine(at, {
    deny: [{ name: "bad" }, { url: "http://127.0.0.1" }, { command: "evil" }],
  });
  const shell = (...args: string[]) =>
    run(runtime, [join(root, "dist", "cli.js"), ...args], {
      cwd: at.cwd,
      env: { ...process.env, HOME: at.dir, PI_CODING_AGENT_DIR: at.agentDir },
    }).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      ({ code, stdout, stderr }) => ({ code: Number(code), text: String(stdout) + String(stderr) }),
    );
  expect((await shell("list")).text).toContain("the policy of this machine denies it");
  const called = await shell("call", "bad", "work");
  expect(called.code).not.toBe(0);
  expect(called.text).toContain("the policy of this machine denies it");
  const address = await shell("tools", "http://127.0.0.1:1/mcp");
  expect(address.text).toContain("the policy of this machine denies it");
  const added = await shell("add", "--no-test", "other", "evil");
  expect(added.code).not.toBe(0);
  expect(added.text).toContain("the policy of this machine denies it");
});
