/**
 * Owns: servers that want a sign-in in print mode and in JSON mode, where nobody can be asked: a stored sign-in works
 * and is renewed, a machine signs in without a user, and a call to a signed-out server answers what to do. No browser.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ModelRequest, type ModelTurn, toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { open } from "./rpc-support.ts";
import { begin, expectNoSecret, SERVER, type Story, stored, storeOf } from "./sign-in-support.ts";
import { call, ENTRY, model } from "./support.ts";

const FIND = call("ToolSearch", { query: "select:web__echo" });
const echo = (a: number): ModelTurn => call("web__echo", { a });
type Mode = "text" | "json";

/**
 * Runs Pi until it exits. Resolves with the answers of the tool calls, in order. The modes differ in what Pi writes only,
 * so each story has a run in each mode, and not each step in both.
 */
async function run(
  story: Story,
  mode: Mode,
  turns: (ModelTurn | (() => ModelTurn))[],
  more: Record<string, string> = {},
): Promise<string[]> {
  const script = [...turns, { text: "the end" }];
  const scripted = await model(script);
  const args = ["--mode", mode];
  const { at } = story;
  const env = { ...story.env, ...more };
  const result = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go", args, env });
  story.said.push({ name: "stdout", text: result.stdout }, { name: "stderr", text: result.stderr });
  const told = scripted.requests.map(({ body }: ModelRequest) => body).join("\n");
  story.said.push({ name: "the requests to the model", text: told });
  expect(result).toMatchObject({ code: 0, timedOut: false });
  expect(result.stdout).not.toContain("extension_ui_request");
  expect(result.stdout).toContain(mode === "json" ? '"type":"agent_end"' : "the end");
  const last = scripted.requests.at(-1);
  return last ? toolResultTexts(last) : [];
}

/** Signs in as a user does, in a session over RPC that has ended. */
async function signIn(story: Story): Promise<void> {
  const { rpc, notice } = await open({ at: story.at, env: { ...story.env, BROWSER_AGREES: "1" } });
  await notice(/needs a sign-in/);
  await rpc.command("/mcp auth web");
  await notice(/^web: signed in, 1 tool\.$/);
  await rpc.stop();
  expect(await story.opened()).toHaveLength(1);
}

/** Writes into the stored sign-in that its token ended long ago. */
async function endStored(story: Story): Promise<void> {
  const [path = ""] = await stored(story);
  const record = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  await writeFile(path, JSON.stringify({ ...record, obtainedAt: 1, expiresAt: 2 }));
}

test("a stored sign-in -> works; ended by its time or by the server -> renewed; gone -> the call says what to do", async () => {
  // Even a call that may begin a sign-in begins none where nobody can be asked.
  const story = await begin({ settings: { autoAuth: true } });
  const { trusted } = story;
  await signIn(story);
  // The server ends the token while Pi runs, after the first call.
  const endAll = (): ModelTurn => {
    expect(trusted.grants).toEqual(["authorization_code"]);
    trusted.book.expireAll();
    return echo(2);
  };
  expect((await run(story, "text", [FIND, echo(1), endAll])).slice(1)).toEqual(['{"a":1}', '{"a":2}']);
  expect(trusted.grants).toEqual(["authorization_code", "refresh_token"]);
  await endStored(story);
  expect((await run(story, "json", [FIND, echo(3)]))[1]).toBe('{"a":3}');
  expect(trusted.grants).toEqual(["authorization_code", "refresh_token", "refresh_token"]);
  expect(trusted.book.reuses).toBe(0);
  await expectNoSecret(story, { isStored: true });

  await rm(storeOf(story), { recursive: true });
  const [, answer] = await run(story, "json", [FIND, echo(4)]);
  expect(answer).toContain("web: it needs a sign-in. Run /mcp auth web in Pi.");
  expect(await story.opened()).toHaveLength(1);
  expect(trusted.asked("/authorize")).toHaveLength(1);
  expect(trusted.asked("/register")).toHaveLength(1);
  await expectNoSecret(story, { isStored: false });
});

test("tokens.json of another program -> works and is never written; ended -> the call says so", async () => {
  const story = await begin();
  const { trusted, guarded } = story;
  const issued = trusted.issue({ client: "other", resource: guarded.url });
  const folder = join(storeOf(story), SERVER);
  const path = join(folder, "tokens.json");
  const text = JSON.stringify({ access_token: issued.access_token, token_type: "Bearer" });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(path, text, { mode: 0o600 });
  expect((await run(story, "text", [FIND, echo(5)]))[1]).toBe('{"a":5}');

  const endAll = (): ModelTurn => {
    trusted.book.expireAll();
    return echo(7);
  };
  const [, works, answer] = await run(story, "json", [FIND, echo(6), endAll]);
  expect(works).toBe('{"a":6}');
  expect(answer).toContain(`web: the tokens in ${path} have expired and cannot be renewed.`);
  expect(answer).toContain("Run /mcp auth web in Pi.");
  expect(await readFile(path, "utf8")).toBe(text);
  // Neither metadata nor a token was asked for.
  expect(trusted.requests).toEqual([]);
  expect(await story.opened()).toEqual([]);
  await expectNoSecret(story, { isStored: true });
});

test("client_credentials -> signs in without a user and stores nothing; a wrong secret -> the call says so", async () => {
  // Each way to write it down differs from the others.
  const secret = 'a secret: "100" %+&/\\';
  const oauth = { grantType: "client_credentials", clientId: "ci", clientSecret: "$env:CI_SECRET" };
  const story = await begin({ entry: { oauth } });
  const { trusted } = story;
  trusted.book.addClient({ id: "ci", secret });
  const CI_SECRET = secret;
  expect((await run(story, "text", [FIND, echo(8)], { CI_SECRET }))[1]).toBe('{"a":8}');
  expect(trusted.grants).toEqual(["client_credentials"]);

  const wrong = "another secret: 200 %+&";
  trusted.book.secrets.add(wrong);
  const [, answer] = await run(story, "json", [FIND, echo(9)], { CI_SECRET: wrong });
  expect(answer).toMatch(
    /^(Error: )?web: its authorization server no longer knows this client\..*clientSecret/s,
  );
  expect(await story.opened()).toEqual([]);
  await expectNoSecret(story, { isStored: false });
});

test("a server whose tools nobody has seen -> the search says that it needs a sign-in", async () => {
  const story = await begin();
  const [answer] = await run(story, "text", [call("ToolSearch", { query: "echo" })]);
  expect(answer).toContain("/mcp auth web");
  expect(story.trusted.requests).toEqual([]);
  expect(await story.opened()).toEqual([]);
});
