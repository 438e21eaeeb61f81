/** Owns: servers of a company in the real Pi over RPC: one sign-in, what `/mcp` shows of it, a call of each, and the sign-out. */
import { expect, test } from "vitest";
import { browse } from "../support/browser.ts";
import { findSecrets, readBelow } from "../support/find-secrets.ts";
import { startCompany } from "../support/identity-provider.ts";
import { notices } from "../support/rpc-events.ts";
import { open, PATIENCE_MS } from "./rpc-support.ts";
import { call } from "./support.ts";

test("/mcp auth at the company -> both servers work; /mcp says through whom; the doctor says what is missing; /mcp logout ends both", async () => {
  const { idp, mcpServers, settings, secrets } = await startCompany();
  const { host } = new URL(idp.server.issuer);
  const pi = await open({ mcp: { mcpServers, settings }, env: { BROWSER: "none" } });
  const { rpc } = pi;
  await pi.notice(/^2 MCP servers need a sign-in: /);
  const doctor = notices(await rpc.command("/mcp doctor", PATIENCE_MS)).map(({ message }) => message);
  expect(doctor.join("\n")).toContain("it needs a sign-in (at the identity provider");

  const since = rpc.events.length;
  const ended = rpc.command("/mcp auth docs", PATIENCE_MS);
  const dialog = await pi.dialog(since);
  const page = dialog.title.split("\n").find((line) => line.startsWith("http")) ?? "";
  expect(page).toContain(`${idp.server.issuer}/authorize?`);
  // The browser reaches the listener by itself.
  await browse(page);
  expect(notices(await ended).map(({ message }) => message)).toContain("docs: signed in, 1 tool.");
  const [found, docs, wiki] = await pi.prompt(
    call("ToolSearch", { query: "select:docs__echo,wiki__echo" }),
    call("docs__echo", { a: 1 }),
    call("wiki__echo", { a: 2 }),
  );
  expect(found?.isError).toBe(false);
  expect([docs?.text, wiki?.text]).toEqual(['{"a":1}', '{"a":2}']);
  const status = await pi.status();
  for (const name of ["docs", "wiki"])
    expect(status).toMatch(
      new RegExp(
        `^${name}: connected \\(http, 1 tool, MCP [\\d-]+, signed in through ${host}, expires in`,
        "m",
      ),
    );

  const out = notices(await rpc.command("/mcp logout wiki", PATIENCE_MS)).map(({ message }) => message);
  expect(out).toContain(`wiki is signed out, and so is every other server that you use through ${host}.`);
  const [refused] = await pi.prompt(call("docs__echo", { a: 3 }));
  expect(refused).toMatchObject({ isError: true });
  expect(refused?.text).toContain(`docs: it needs a sign-in (at the identity provider ${host}).`);
  await rpc.stop();
  const said = [{ name: "RPC", text: JSON.stringify(rpc.events) + rpc.stderr }];
  expect(findSecrets([...(await readBelow(pi.at.dir)), ...said], secrets())).toEqual([]);
});
