/**
 * Owns: servers that want a sign-in in print mode and in JSON mode, where nobody can be asked: a stored sign-in works
 * and is renewed, a machine signs in without a user, and a call to a signed-out server answers what to do. No browser.
 * @module-tag thorough
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type ModelRequest, type ModelTurn, toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { open } from "./rpc-support.ts";
import {
  begin,
  expectNoSecret,
  SERVER,
  type Story,
  startServers,
  stored,
  storeOf,
} from "./sign-in-support.ts";
import { call, ENTRY, model, once } from "./support.ts";

const find = (...servers: string[]): ModelTurn =>
  call("ToolSearch", { query: `select:${servers.map((server) => `${server}__echo`).join()}` });
const echo = (server: string, a: number): ModelTurn => call(`${server}__echo`, { a });
type Mode = "text" | "json";

/**
 * Runs Pi until it exits. Resolves with the answers of the tool calls, in order. The modes differ in what Pi writes only,
 * so the servers' stories share one run in each mode, and not each step is in both.
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
async function signIn(story: Story, ...servers: string[]): Promise<void> {
  const env = { ...story.env, BROWSER_AGREES: "1" };
  const { rpc, notice } = await open({ at: story.at, env });
  await notice(/need(s)? a sign-in/);
  for (const server of servers) {
    await rpc.command(`/mcp auth ${server}`);
    await notice(new RegExp(`^${server}: signed in, 1 tool\\.$`));
  }
  await rpc.stop();
  expect(await story.opened()).toHaveLength(servers.length);
}

/** Writes into the stored sign-in that its token ended long ago. */
async function endStored(story: Story): Promise<void> {
  const [path = ""] = await stored(story);
  const record = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  await writeFile(path, JSON.stringify({ ...record, obtainedAt: 1, expiresAt: 2 }));
}

// Each way to write it down differs from the others.
const CI_SECRET = 'a secret: "100" %+&/\\';
const WRONG_SECRET = "another secret: 200 %+&";

/** Five servers, each with an authorization server of its own: a sign-in, one that is gone, a file, a machine, nothing. */
const told = once(async () => {
  // Even a call that may begin a sign-in begins none where nobody can be asked.
  const settings = { autoAuth: true };
  const story = await begin({ settings });
  const { trusted, guarded, at } = story;
  const [gone, given, machine, unseen] = await Promise.all([1, 2, 3, 4].map(() => startServers()));
  if (!gone || !given || !machine || !unseen) throw new Error("a server is missing");
  const configure = (more: Record<string, unknown>): Promise<void> => {
    const mcpServers = { [SERVER]: { url: guarded.url }, gone: { url: gone.guarded.url }, ...more };
    return writeFile(join(at.agentDir, "mcp.json"), JSON.stringify({ mcpServers, settings }));
  };
  await configure({});
  await signIn(story, SERVER, "gone");

  const issued = given.trusted.issue({ client: "other", resource: given.guarded.url });
  const tokens = JSON.stringify({ access_token: issued.access_token, token_type: "Bearer" });
  const path = join(storeOf(story), "given", "tokens.json");
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, tokens, { mode: 0o600 });
  machine.trusted.book.addClient({ id: "ci", secret: CI_SECRET });
  machine.trusted.book.secrets.add(WRONG_SECRET);
  const oauth = { grantType: "client_credentials", clientId: "ci", clientSecret: "$env:CI_SECRET" };
  await configure({
    given: { url: given.guarded.url },
    machine: { url: machine.guarded.url, oauth },
    unseen: { url: unseen.guarded.url },
  });
  // A server ends its tokens while Pi runs, after the first call.
  const endAll = (): ModelTurn => {
    expect(trusted.grants).toEqual(["authorization_code"]);
    trusted.book.expireAll();
    return echo(SERVER, 2);
  };
  const text = await run(
    story,
    "text",
    [
      call("ToolSearch", { query: "echo" }),
      find(SERVER, "given", "machine"),
      echo(SERVER, 1),
      endAll,
      echo("given", 5),
      echo("machine", 8),
    ],
    { CI_SECRET },
  );
  const grants = { trusted: [...trusted.grants], machine: [...machine.trusted.grants] };
  await endStored(story);
  await rm(join(storeOf(story), "gone"), { recursive: true });
  const endGiven = (): ModelTurn => {
    given.trusted.book.expireAll();
    return echo("given", 7);
  };
  const json = await run(
    story,
    "json",
    [
      find(SERVER, "gone", "given", "machine"),
      echo(SERVER, 3),
      echo("gone", 4),
      echo("given", 6),
      endGiven,
      echo("machine", 9),
    ],
    { CI_SECRET: WRONG_SECRET },
  );
  return { story, gone, given, machine, unseen, path, tokens, text, json, grants };
});

test("a stored sign-in -> works; ended by its time or by the server -> renewed; gone -> the call says what to do", async () => {
  const { story, gone, text, json, grants } = await told();
  const { trusted } = story;
  expect(text.slice(2, 4)).toEqual(['{"a":1}', '{"a":2}']);
  expect(grants.trusted).toEqual(["authorization_code", "refresh_token"]);
  expect(json[1]).toBe('{"a":3}');
  expect(trusted.grants).toEqual(["authorization_code", "refresh_token", "refresh_token"]);
  expect(trusted.book.reuses).toBe(0);
  await expectNoSecret(story, { isStored: true });

  expect(json[2]).toContain("gone: it needs a sign-in. Run /mcp auth gone in Pi.");
  await expectNoSecret(story, { isStored: false, server: "gone", trusted: gone.trusted });
  expect(await story.opened()).toHaveLength(2);
  for (const server of [trusted, gone.trusted]) {
    expect(server.asked("/authorize")).toHaveLength(1);
    expect(server.asked("/register")).toHaveLength(1);
  }
});

test("tokens.json of another program -> works and is never written; ended -> the call says so", async () => {
  const { story, given, path, tokens, text, json } = await told();
  expect(text[4]).toBe('{"a":5}');
  expect(json[3]).toBe('{"a":6}');
  expect(json[4]).toContain(`given: the tokens in ${path} have expired and cannot be renewed.`);
  expect(json[4]).toContain("Run /mcp auth given in Pi.");
  expect(await readFile(path, "utf8")).toBe(tokens);
  // Neither metadata nor a token was asked for.
  expect(given.trusted.requests).toEqual([]);
  await expectNoSecret(story, { isStored: true, server: "given", trusted: given.trusted });
});

test("client_credentials -> signs in without a user and stores nothing; a wrong secret -> the call says so", async () => {
  const { story, machine, text, json, grants } = await told();
  expect(text[5]).toBe('{"a":8}');
  expect(grants.machine).toEqual(["client_credentials"]);
  expect(json[5]).toMatch(
    /^(Error: )?machine: its authorization server no longer knows this client\..*clientSecret/s,
  );
  expect(machine.trusted.asked("/authorize")).toEqual([]);
  await expectNoSecret(story, { isStored: false, server: "machine", trusted: machine.trusted });
});

test("a server whose tools nobody has seen -> the search says that it needs a sign-in", async () => {
  const { text, unseen } = await told();
  expect(text[0]).toContain("/mcp auth unseen");
  expect(unseen.trusted.requests).toEqual([]);
});
