/** Owns: `login` and `logout` of the packed command, with a real authorization server and a real browser's requests. */
import { describe, expect, test } from "vitest";
import { assertionIssuer } from "../support/assertions.ts";
import { type Behaviour, startAuthorizationServer } from "../support/authorization-server.ts";
import { browse } from "../support/browser.ts";
import { onCleanup } from "../support/cleanup.ts";
import { findSecrets, readBelow } from "../support/find-secrets.ts";
import { hasTmux } from "../support/has-program.ts";
import { serve } from "../support/http-server.ts";
import { startCompany } from "../support/identity-provider.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { type Run, type Running, runCli, startCli } from "./support.ts";
import { openShell } from "./tmux.ts";

const NO_BROWSER = { env: { BROWSER: "none" } };

async function openPlace(behaviour: Behaviour = {}) {
  const trusted = await startAuthorizationServer(behaviour);
  onCleanup(() => trusted.close());
  const server = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
  });
  onCleanup(() => server.close());
  const home = await makeHome({ mcp: { mcpServers: { web: { url: server.url } } } });
  return { home, trusted };
}

/** What the command has written of this form, once it has. */
async function shown({ child, ended }: Running, form: RegExp): Promise<string> {
  let text = "";
  child.stderr?.on("data", (chunk: string) => {
    text += chunk;
  });
  const found = (): string | undefined => form.exec(text)?.[1];
  await Promise.race([expect.poll(found).toBeDefined(), ended]);
  const page = found();
  if (page === undefined) throw new Error(`${form} was not shown: ${JSON.stringify(await ended)}`);
  return page;
}

/** The address of the sign-in page. */
const shownPage = (login: Running): Promise<string> => shown(login, /^(https?:\/\/\S+)\n/m);
/** The code for another device. */
const shownCode = (login: Running): Promise<string> => shown(login, /enter this code: (\S+)\n/);

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

  const OFFERED: Behaviour = { device: (answer) => answer };

  test("no browser, and codes are offered -> page and code are shown, and the login ends by itself; a refusal is code 4", {
    tags: "thorough",
  }, async () => {
    const { home, trusted } = await openPlace(OFFERED);
    const declined = startCli(home, ["login", "web"], NO_BROWSER);
    expect(trusted.book.answerDevice(await shownCode(declined), "refused")).toBe(true);
    const refused = await declined.ended;
    expect(refused).toMatchObject({ code: 4, stdout: "" });
    expect(refused.stderr).toContain(`\n${trusted.origin}/device\n`);

    const login = startCli(home, ["login", "web", "--json"], NO_BROWSER);
    expect(trusted.book.answerDevice(await shownCode(login), "agreed")).toBe(true);
    const signedIn = await login.ended;
    expect(signedIn.code).toBe(0);
    expect(JSON.parse(signedIn.stdout)).toMatchObject({ server: "web", signedIn: true, tools: 1 });
    expect(signedIn.stderr).toContain("Agree on that page only if it shows this code.");
    expect((await call(home)).code).toBe(0);
    const said = [{ name: "output", text: signedIn.stdout + signedIn.stderr }];
    expect(findSecrets(said, trusted.book.secrets)).toEqual([]);
  });

  test("--device beside a browser -> a code; --link without one -> a link; both, or no offer -> an error", {
    tags: "thorough",
  }, async () => {
    const { home, trusted } = await openPlace(OFFERED);
    const browser = { env: { BROWSER: "/bin/true" } };
    const left = startCli(home, ["login", "web", "--device"], browser);
    await shownCode(left);
    left.child.kill("SIGINT");
    expect((await left.ended).code).toBe(130);
    const link = startCli(home, ["login", "web", "--link"], NO_BROWSER);
    await browse(await shownPage(link));
    expect((await link.ended).code).toBe(0);
    expect(trusted.grants.at(-1)).toBe("authorization_code");
    expect((await runCli(home, ["login", "web", "--device", "--link"], NO_BROWSER)).code).toBe(2);

    const other = await openPlace();
    const refused = await runCli(other.home, ["login", "web", "--device"], NO_BROWSER);
    expect(refused.code).toBe(4);
    expect(refused.stderr).toMatch(/offers no sign-in with a code for another device/);
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

  test("a server that wants a key -> its own words and where to write the key, for each command", {
    tags: "thorough",
  }, async () => {
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
      const what =
        words[0] === "add"
          ? /\s+--bearer-token-env NAME or --header NAME=value, before the name, gives it a key\./
          : /\s+It wants a key: write "bearerTokenEnv": "NAME_OF_VARIABLE"[\s\S]*mcp\.json/;
      expect(stdout + stderr).toMatch(/answered 401: Missing API key\./);
      expect(stdout + stderr).toMatch(what);
      expect(stdout + stderr).not.toContain("sign-in");
    }
  });

  test.runIf(hasTmux())("on a terminal the address on which the browser ends can be pasted", async () => {
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

describe("servers of a company", () => {
  test("one login serves all; list says through whom; logout ends it for all; no secret is told", async () => {
    const { idp, mcpServers, settings, secrets } = await startCompany();
    const home = await makeHome({ mcp: { mcpServers, settings } });
    const callOf = (server: string) => runCli(home, ["call", server, "echo"], NO_BROWSER);
    const { host } = new URL(idp.server.issuer);
    const before = await callOf("wiki");
    expect(before.code).toBe(4);
    expect(before.stderr).toContain(`it needs a sign-in (at the identity provider ${host}).`);
    expect(before.stderr).toContain("pi-mcp-threads login wiki");

    const login = startCli(home, ["login", "docs"], NO_BROWSER);
    await browse(await shownPage(login));
    expect(await login.ended).toMatchObject({ code: 0, stdout: "docs: signed in, 1 tool.\n" });
    const after = [await callOf("wiki"), await runCli(home, ["list", "--refresh"], NO_BROWSER)];
    expect(after.map(({ code }) => code)).toEqual([0, 0]);
    expect(after[1]?.stdout.split(`signed in through ${host}, `)).toHaveLength(3);

    const logout = await runCli(home, ["logout", "docs"], NO_BROWSER);
    const out = `docs is signed out, and so is every other server that you use through ${host}.`;
    expect(logout).toMatchObject({ code: 0, stdout: `${out}\n` });
    expect((await callOf("wiki")).code).toBe(4);
    const said = [before, ...after, logout].map((run) => ({ name: "output", text: run.stdout + run.stderr }));
    const written = (await readBelow(home.agentDir)).filter(({ name }) => !name.includes("mcp-oauth"));
    expect(findSecrets([...written, ...said], secrets())).toEqual([]);
  });

  test("the company says no -> login ends with code 4 and its words", async () => {
    const { idp, mcpServers, settings } = await startCompany();
    idp.policy = { refuses: () => ["access_denied", "Only engineers."] };
    const home = await makeHome({ mcp: { mcpServers, settings } });
    const login = startCli(home, ["login", "docs"], NO_BROWSER);
    await browse(await shownPage(login));
    const { code, stderr } = await login.ended;
    expect(code).toBe(4);
    expect(stderr).toContain(
      "docs: your company does not allow it: Only engineers (at the identity provider",
    );
  });
});

test("a workload without a good assertion -> login and call end with code 4, and say for whom the assertion is", {
  tags: "thorough",
}, async () => {
  const issuer = assertionIssuer("https://workloads.example");
  const trusted = await startAuthorizationServer({ assertions: (text, aud) => issuer.check(text, aud) });
  onCleanup(() => trusted.close());
  const server = await startProtectedServer({ issuers: [trusted.issuer], check: () => undefined });
  onCleanup(() => server.close());
  const { url } = server;
  const assertion = issuer.issue("https://other.example");
  const mcp = {
    mcpServers: { web: { url, oauth: { grantType: "jwt_bearer", assertion: "$env:ID_TOKEN" } } },
  };
  const home = await makeHome({ mcp });
  for (const words of [
    ["login", "web"],
    ["call", "web", "echo"],
  ]) {
    const { code, stderr } = await runCli(home, words, { env: { ...NO_BROWSER.env, ID_TOKEN: assertion } });
    expect([words[0], code]).toEqual([words[0], 4]);
    expect(stderr).toContain("its audience is https://other.example");
    expect(stderr).not.toContain(assertion);
  }
});
