/**
 * Owns: the system's credential store as the user of the packed command sees it, with a stand-in for `secret-tool`: sign in,
 * call, where the tokens are, their way there and back, sign out; and a store that cannot be used.
 */
import { expect, test } from "vitest";
import { startAuthorizationServer } from "../support/authorization-server.ts";
import { browse } from "../support/browser.ts";
import { onCleanup } from "../support/cleanup.ts";
import { findSecrets, readBelow } from "../support/find-secrets.ts";
import { makeHome } from "../support/make-home.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { standInStore } from "../support/secret-store.ts";
import { type Run, runCli, startCli } from "./support.ts";

async function openPlace() {
  const trusted = await startAuthorizationServer();
  onCleanup(() => trusted.close());
  const server = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
  });
  onCleanup(() => server.close());
  const store = await standInStore();
  const env = { BROWSER: "none", PATH: store.env.PATH };
  const home = await makeHome();
  const configure = (settings: Record<string, unknown>): Promise<unknown> =>
    home.writeMcp({ mcpServers: { web: { url: server.url } }, settings });
  const cli = (...args: string[]): Promise<Run> => runCli(home, args, { env });
  const login = async (): Promise<Run> => {
    const running = startCli(home, ["login", "web"], { env });
    let text = "";
    running.child.stderr?.on("data", (chunk: string) => {
      text += chunk;
    });
    const page = (): string | undefined => /^(https?:\/\/\S+)\n/m.exec(text)?.[1];
    await Promise.race([expect.poll(page).toBeDefined(), running.ended]);
    await browse(page() ?? "");
    return running.ended;
  };
  const onDisk = async () => findSecrets(await readBelow(home.agentDir), trusted.book.secrets);
  return { home, trusted, store, configure, cli, login, onDisk };
}

const call = ["call", "web", "echo", "--args", '{"text": "hi"}'];

test("login, call, list, sign-ins, logout -> said where the tokens are; nothing of them on the disk or a command line", async () => {
  const at = await openPlace();
  await at.configure({ tokenStore: "system" });
  expect(await at.login()).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^web: signed in, \d+ tools?\. The system's credential store keeps its tokens\.\n$/,
    ),
  });
  expect((await at.cli(...call)).code).toBe(0);
  expect((await at.cli("list")).stdout).toContain("renews itself, kept in the system's store");
  expect((await at.cli("sign-ins")).stdout).toMatch(
    /^web\t127\.0\.0\.1:\d+\tin the system's credential store\n$/,
  );
  expect((await at.cli("doctor")).stdout).toContain("1 sign-in in the system's credential store");
  at.trusted.book.expireAll();
  expect((await at.cli(...call)).code).toBe(0);
  expect((await at.store.texts()).length).toBe(1);
  expect(await at.onDisk()).toEqual([]);
  const runs = [{ name: "command lines", text: (await at.store.runs()).join("\n") }];
  expect(findSecrets(runs, at.trusted.book.secrets)).toEqual([]);
  expect((await at.cli("logout", "web")).stdout).toBe(
    "web is signed out. The system's credential store has no token of it any more.\n",
  );
  expect(await at.store.texts()).toEqual([]);
  expect((await at.cli(...call)).code).toBe(4);
});

test("sign-ins move -> there and back; a store that fails leaves the file as it is; the setting comes first", {
  tags: "thorough",
}, async () => {
  const at = await openPlace();
  await at.configure({});
  await at.login();
  expect((await at.cli("sign-ins")).stdout).toMatch(/^web\t127\.0\.0\.1:\d+\tin a file\n$/);
  expect(await at.cli("sign-ins", "move")).toMatchObject({ code: 2 });

  await at.store.misbehave("locked", "store");
  expect(await at.cli("sign-ins", "move", "--to", "system")).toMatchObject({
    code: 3,
    stdout: "",
    stderr: expect.stringMatching(/web: the system's credential store cannot be used: it is locked\./),
  });
  expect((await at.cli(...call)).code).toBe(0);
  await at.store.misbehave(undefined);
  const there = await at.cli("sign-ins", "move", "--to", "system");
  expect(there).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^web \(127\.0\.0\.1:\d+\) is moved to the system's credential store\.\n$/),
    stderr: expect.stringContaining("New sign-ins still go to files"),
  });
  expect(await at.onDisk()).toEqual([]);
  expect((await at.cli(...call)).code).toBe(0);
  expect((await at.cli("sign-ins", "move", "--to", "system")).stdout).toBe(
    "No sign-in is to be moved: all are in the system's credential store.\n",
  );

  await at.configure({ tokenStore: "system" });
  expect(await at.cli("sign-ins", "move", "--to", "file")).toMatchObject({
    code: 7,
    stderr: expect.stringContaining("Take tokenStore out of the settings"),
  });
  await at.configure({});
  expect((await at.cli("sign-ins", "move", "--to", "file")).stdout).toContain("is moved to a file.");
  expect(await at.store.texts()).toEqual([]);
  expect((await at.cli(...call)).code).toBe(0);
});

test("a store that cannot be used -> login says so before any page opens, and no file is written", async () => {
  const at = await openPlace();
  await at.configure({ tokenStore: "system" });
  await at.store.misbehave("nobus");
  const refused = await at.cli("login", "web");
  expect(refused).toMatchObject({ code: 3, stdout: "" });
  expect(refused.stderr).toContain(
    "web: the system's credential store cannot be used: this session has no D-Bus, as over SSH or in a container.",
  );
  expect(refused.stderr).not.toContain("/authorize");
  expect((await at.cli("doctor")).stdout).toContain("this session has no D-Bus");
  expect(await at.onDisk()).toEqual([]);
  expect(at.trusted.asked("/register")).toEqual([]);
});
