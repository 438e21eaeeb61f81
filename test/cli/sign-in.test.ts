/** Owns: `login` and `logout` of the packed command, with a real authorization server and a real browser's requests. */
import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { startAuthorizationServer } from "../support/authorization-server.ts";
import { browse } from "../support/browser.ts";
import { onCleanup } from "../support/cleanup.ts";
import { findSecrets, readBelow } from "../support/find-secrets.ts";
import { serve } from "../support/http-server.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { type Run, type Running, runCli, startCli } from "./support.ts";
import { openShell } from "./tmux.ts";

const hasTmux = spawnSync("tmux", ["-V"]).status === 0;
const NO_BROWSER = { env: { BROWSER: "none" } };

async function openPlace() {
  const trusted = await startAuthorizationServer();
  onCleanup(() => trusted.close());
  const server = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
  });
  onCleanup(() => server.close());
  const home = await makeHome({ mcp: { mcpServers: { web: { url: server.url } } } });
  return { home, trusted };
}

/** The address of the sign-in page, once the command has shown it. */
async function shownPage({ child, ended }: Running): Promise<string> {
  let text = "";
  child.stderr?.on("data", (chunk: string) => {
    text += chunk;
  });
  const found = (): string | undefined => /^(https?:\/\/\S+)\n/m.exec(text)?.[1];
  await Promise.race([expect.poll(found).toBeDefined(), ended]);
  const page = found();
  if (page === undefined) throw new Error(`no address was shown: ${JSON.stringify(await ended)}`);
  return page;
}

const call = (home: PiHome): Promise<Run> =>
  runCli(home, ["call", "web", "echo", "--args", '{"text": "hi"}'], NO_BROWSER);

describe("a server that wants a sign-in", () => {
  test("call -> code 4; a signal ends a login that waits; login, then calls run; logout ends that; no secret is told", async () => {
    const { home, trusted } = await openPlace();
    const before = await call(home);
    expect(before).toMatchObject({ code: 4, stdout: "" });
    expect(before.stderr).toContain("pi-mcp-threads login web");
    expect(before.stderr).not.toContain("/mcp auth");

    const left = startCli(home, ["login", "web"], NO_BROWSER);
    await shownPage(left);
    left.child.kill("SIGINT");
    expect(await left.ended).toMatchObject({ code: 130, stdout: "" });

    const login = startCli(home, ["login", "web", "--json"], NO_BROWSER);
    await browse(await shownPage(login));
    const signedIn = await login.ended;
    expect(signedIn.code).toBe(0);
    expect(JSON.parse(signedIn.stdout)).toMatchObject({ server: "web", signedIn: true });
    const after = await call(home);
    expect(after.code).toBe(0);

    const { secrets } = trusted.book;
    expect(secrets.size).toBeGreaterThan(0);
    const written = (await readBelow(home.agentDir)).filter(({ name }) => !name.includes("mcp-oauth"));
    expect(written.length).toBeGreaterThan(0);
    const said = [signedIn, after].map(({ stdout, stderr }) => ({ name: "output", text: stdout + stderr }));
    expect(findSecrets([...written, ...said], secrets)).toEqual([]);

    const logout = await runCli(home, ["logout", "web", "--json"], NO_BROWSER);
    expect(logout.code).toBe(0);
    expect(JSON.parse(logout.stdout)).toMatchObject({ server: "web", text: expect.any(String) });
    expect((await call(home)).code).toBe(4);
  });

  test("the page of another server -> named with who gets the code; without a person refused, also with --yes", async () => {
    const { home, trusted } = await openPlace();
    trusted.behaviour.metadata = (metadata) => ({
      ...metadata,
      authorization_endpoint: "https://accounts.bank.example/authorize",
    });
    for (const options of [[], ["--yes"]]) {
      const refused = await runCli(home, [...options, "login", "web"], NO_BROWSER);
      expect(refused).toMatchObject({ code: 5, stdout: "" });
      expect(refused.stderr).toContain(
        `sign in at accounts.bank.example, and the code of that sign-in goes to ${new URL(trusted.origin).host}`,
      );
      expect(refused.stderr).not.toContain("https://accounts.bank.example/");
    }
    expect(trusted.asked("/register")).toEqual([]);
  });

  test("a server that wants a key -> its own words and where to write the key, for each command", async () => {
    const { url } = await serve((_asked, response) => {
      response.writeHead(401, { "content-type": "application/json" }).end('{"error":"Missing API key."}');
    });
    const home = await makeHome({ mcp: { mcpServers: { acme: { url } } } });
    for (const words of [
      ["login", "acme"],
      ["call", "acme", "work"],
      ["list", "--refresh"],
      ["add", "more", url],
    ]) {
      const { code, stdout, stderr } = await runCli(home, words, NO_BROWSER);
      expect([words[0], code]).toEqual([words[0], words[0] === "add" ? 3 : 4]);
      expect(stdout + stderr).toMatch(
        /answered 401: Missing API key\.+\s+It wants a key: write "bearerTokenEnv": "NAME_OF_VARIABLE"/,
      );
      expect(stdout + stderr).toContain("mcp.json");
      expect(stdout + stderr).not.toContain("sign-in");
    }
  });

  test.runIf(hasTmux)("on a terminal the address on which the browser ends can be pasted", async () => {
    const { home } = await openPlace();
    const shell = await openShell(home, 200);
    await shell.start("login web", "BROWSER=none");
    const screen = await shell.until(/Address or code:/);
    const page = /^(https?:\/\/\S+)$/m.exec(screen)?.[1] ?? "";
    await shell.type("nonsense with spaces");
    await shell.until(/nonsense[\s\S]*\n.+\n[\s\S]*Address or code: *$/);
    const redirect = new URL(new URL(page).searchParams.get("redirect_uri") ?? "");
    const end = await browse(page, (url) => url.origin === redirect.origin);
    await shell.type(end.url);
    await shell.until(/^web: signed in, \d+ tools?\.\n[\s\S]*exit 0/m);
  });
});
