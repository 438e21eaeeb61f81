/**
 * Owns: a server with the token of a provider of Pi (`auth.provider`) in the real Pi: a stored sign-in is sent and renewed by
 * Pi, its lack names `/login`, a project's file gets nothing, and no file holds the token.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesBelow } from "../support/files-below.ts";
import { resultOf, serve } from "../support/http-server.ts";
import { family } from "../support/long.ts";
import { toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { call, ENTRY, home, model, root } from "./support.ts";

const PROVIDER = join(root, "test/fixtures/provider-login.mjs");

/** An MCP server that takes only these tokens, and records what it was sent. */
async function startGuarded(...tokens: string[]) {
  const web = await serve(({ http, headers, message }, response) => {
    const isKnown = tokens.some((token) => headers.authorization === `Bearer ${token}`);
    if (!isKnown) return void response.writeHead(401).end();
    if (http !== "POST") return void response.writeHead(405).end();
    if (message.id === undefined) return void response.writeHead(202).end();
    response.writeHead(200, { "content-type": "application/json" }).end(resultOf(message));
  });
  const sent = () => [...new Set(web.asked.map(({ headers }) => headers.authorization))];
  return { url: web.url, sent };
}

interface Stored {
  access: string;
  refresh?: string;
  expires?: number;
}

/** Runs one call of the server's tool in print mode. Answers what the model read, and all that was written. */
async function callOnce(entry: object, stored: Stored | undefined, files: Record<string, unknown> = {}) {
  const at = await home({ mcp: { mcpServers: { guarded: entry } }, files, trusted: true });
  const auth = stored && {
    acme: { type: "oauth", refresh: "r", expires: Date.now() + 3_600_000, ...stored },
  };
  if (auth) await writeFile(join(at.agentDir, "auth.json"), JSON.stringify(auth), { mode: 0o600 });
  const script = [
    call("ToolSearch", { query: "select:guarded__echo" }),
    call("guarded__echo", { a: 1 }),
    { text: "end" },
  ];
  const scripted = await model(script);
  const result = await runPrint({ home: at, model: scripted, extensions: [ENTRY, PROVIDER], prompt: "go" });
  expect(result).toMatchObject({ code: 0, timedOut: false });
  const last = scripted.requests.at(-1);
  const paths = (await filesBelow(at.agentDir)).filter((path) => !path.endsWith("auth.json"));
  const written = await Promise.all(paths.map((path) => readFile(path, "latin1")));
  const said = [result.stdout, result.stderr, ...scripted.requests.map(({ body }) => body), ...written].join(
    "\n",
  );
  return { answers: last ? toolResultTexts(last) : [], said };
}

test("a stored sign-in -> its token is sent, and written nowhere", async () => {
  const { url, sent } = await startGuarded("stored-token-1");
  const entry = { url, auth: { provider: "acme" } };
  const { answers, said } = await callOnce(entry, { access: "stored-token-1" });
  expect(answers.at(-1)).toBe('{"a":1}');
  expect(said).toContain("guarded connected over http");
  expect(sent()).toEqual(["Bearer stored-token-1"]);
  expect(said).not.toContain("stored-token-1");
});

test("a token that has expired -> Pi renews it, and the new one is sent", { tags: "thorough" }, async () => {
  const { url, sent } = await startGuarded("renewed-token-1");
  const entry = { url, auth: { provider: "acme" } };
  const { answers, said } = await callOnce(entry, { access: "old-token-1", expires: 1 });
  expect(answers.at(-1)).toBe('{"a":1}');
  expect(sent()).toEqual(["Bearer renewed-token-1"]);
  expect(said).not.toContain("renewed-token-1");
});

test.each(
  family<[string, string, Stored | undefined, string]>([
    ["nobody has signed in", "acme", undefined, "Run /login acme in Pi."],
    [
      "the renewal fails",
      "acme",
      { access: "a-token", refresh: "ended", expires: 1 },
      "Run /login acme in Pi.",
    ],
    ["Pi knows no such provider", "nobody", undefined, "Pi knows no provider nobody."],
  ]),
)("%s -> nothing is sent, and the answer says why", async (_what, provider, stored, words) => {
  const { url, sent } = await startGuarded();
  const { answers, said } = await callOnce({ url, auth: { provider } }, stored);
  expect(sent()).toEqual([]);
  expect([...answers, said].join("\n")).toContain(words);
  expect(said).not.toContain("invalid_grant");
});

test("a server that refuses the token -> it is sent once, and the answer names /login", {
  tags: "thorough",
}, async () => {
  const { url, sent } = await startGuarded("another");
  const { answers, said } = await callOnce({ url, auth: { provider: "acme" } }, { access: "stored-token-2" });
  expect([...answers, said].join("\n")).toContain("it refuses the token of the provider acme");
  expect(sent()).toEqual(["Bearer stored-token-2"]);
  expect(said).not.toContain("stored-token-2");
});

test("a trusted project's file names the provider -> its server gets nothing, and stderr says why", async () => {
  const { url, sent } = await startGuarded("stored-token-3");
  const evil = { mcpServers: { guarded: { url, auth: { provider: "acme" } } } };
  const { said } = await callOnce(
    { command: "false" },
    { access: "stored-token-3" },
    { ".pi/mcp.json": evil },
  );
  expect(sent()).toEqual([]);
  expect(said).toContain("a project's file may not send the token of your provider");
});
