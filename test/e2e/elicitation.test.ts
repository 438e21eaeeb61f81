/**
 * Owns: questions of servers in the real Pi over RPC: a form and a page of a real server, a user who declines, a call that
 * is cancelled, a server that nags, and print mode.
 */
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runPrint } from "../support/pi-run.ts";
import { notices, type RpcDialog, toolEnds } from "../support/rpc-events.ts";
import { dialogsOf, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, fixtureServer, home, model, once, readLog, SERVERS, searchFor } from "./support.ts";

/** What every server is told of this client. */
const SKILLS = { extensions: { "io.modelcontextprotocol/skills": {} } };
const NAME = {
  message: "Who are you?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
};
const PAGE = {
  mode: "url",
  message: "Sign in.",
  url: "https://example.com/sign-in?secret=1",
  elicitationId: "1",
};
const mcp = {
  mcpServers: {
    q: { ...fixtureServer("asks-user.mjs"), directTools: true },
    mute: { ...fixtureServer("asks-user.mjs"), directTools: true, elicitation: false },
    real: { ...SERVERS.everything, directTools: true },
  },
};

/** A browser that writes the address that it is given into a file. */
async function withBrowser(): Promise<{
  at: Opened["at"];
  env: Record<string, string>;
  opened: () => Promise<string>;
}> {
  const at = await home({ mcp });
  const [program, file] = [join(at.dir, "browser"), join(at.dir, "opened")];
  await writeFile(program, `#!/bin/sh\nprintf '%s\\n' "$1" >> '${file}'\n`);
  await chmod(program, 0o755);
  return { at, env: { BROWSER: program }, opened: () => readFile(file, "utf8").catch(() => "") };
}

const session = once(async () => {
  const browser = await withBrowser();
  return { ...browser, ...(await open({ at: browser.at, env: browser.env })) };
});

/** Answers the dialogs of one prompt with these values, in order; a dialog beyond them stays open. */
function answering(opened: Opened, values: readonly string[]): void {
  const left = [...values];
  // Pi tells the other program of no dialog that it has closed.
  opened.rpc.answerUi({ cancelled: true });
  opened.rpc.answerUi(() => {
    const value = left.shift();
    return value === undefined ? undefined : value === "Escape" ? { cancelled: true } : { value };
  });
}

async function asked(
  opened: Opened,
  ask: object,
  ...values: string[]
): Promise<{ got: unknown; dialogs: RpcDialog[] }> {
  const since = opened.rpc.events.length;
  answering(opened, values);
  const [end] = await opened.prompt(call("q__ask", { ask }));
  return { got: JSON.parse(end?.text ?? "null"), dialogs: dialogsOf(opened.rpc, since) };
}

test("a form -> a dialog for each field, the review, and the answer", async () => {
  const at = await session();
  const { got, dialogs } = await asked(at, NAME, "Answer", "Ann", "Send");
  expect(got).toEqual([{ action: "accept", content: { name: "Ann" } }]);
  expect(dialogs.map(({ title }) => title)).toEqual([
    "MCP server q asks (1 question):\n│ Who are you?",
    "q:\n│ name\nEscape: back",
    "Send this to MCP server q? Choose a line to change it.",
  ]);
});

test.each([
  ["Decline", "decline"],
  ["Escape", "cancel"],
])("%s -> %s, and nothing is sent", async (answer, action) => {
  const at = await session();
  expect((await asked(at, NAME, answer)).got).toEqual([{ action }]);
});

test("server-everything's form with every kind of field -> the server accepts the answer", async () => {
  const at = await session();
  at.rpc.answerUi(({ method, title, options = [] }) => {
    if (method === "input") return { value: title.includes("│ String\n") ? "Ann" : "" };
    if (options.includes("Done")) return { value: "Done" };
    return { value: options[0] ?? "" };
  });
  const [end] = await at.prompt(call("real__trigger-elicitation-request", {}));
  expect(end?.isError).toBe(false);
  const raw = JSON.parse(/Raw result: (\{[\s\S]*\})/.exec(end?.text ?? "")?.[1] ?? "null");
  expect(raw).toEqual({
    action: "accept",
    content: {
      name: "Ann",
      firstLine: "It was a dark and stormy night.",
      integer: 42,
      number: 3.14,
      untitledSingleSelectEnum: "Monica",
      untitledMultipleSelectEnum: ["Guitar"],
      titledSingleSelectEnum: "hero-1",
      titledMultipleSelectEnum: ["fish-1"],
      legacyTitledEnum: "pet-1",
    },
  });
});

test("a page -> opened after a yes only, by the browser", async () => {
  const at = await session();
  expect((await asked(at, PAGE, "Decline")).got).toEqual([{ action: "decline" }]);
  expect(await at.opened()).toBe("");
  const { got, dialogs } = await asked(at, PAGE, "Open it in the browser");
  expect(got).toEqual([{ action: "accept" }]);
  expect(dialogs.map(({ title }) => title)).toEqual([
    `MCP server q asks you to open a page:\n│ Sign in.\nHost: example.com\n${PAGE.url}`,
  ]);
  await expect.poll(at.opened, { timeout: PATIENCE_MS }).toBe(`${PAGE.url}\n`);
});

test("server-everything's page by the error -32042 -> the user is asked, and the model is told to wait", async () => {
  const at = await session();
  const args = { url: "https://example.com/a", errorPath: true };
  answering(at, ["Open it in the browser"]);
  const [end] = await at.prompt(call("real__trigger-url-elicitation", args));
  expect(end).toMatchObject({ isError: true });
  expect(end?.text).toContain(
    "real needs the user to open a page before trigger-url-elicitation works. The user has been sent to that page.",
  );
  expect(end?.text).not.toContain("modelcontextprotocol.io");
  // The server answers the repeated call with a question of its own.
  answering(at, ["Decline"]);
  const [again] = await at.prompt(call("real__trigger-url-elicitation", args));
  expect(again?.text).toContain("User declined");
});

test("a call is cancelled while its dialog is open -> the dialog closes, and the next question works", async () => {
  const at = await session();
  answering(at, []);
  const since = at.rpc.events.length;
  const running = at.prompt(call("q__ask", { ask: NAME }));
  await at.dialog(since);
  await at.rpc.request({ type: "abort" });
  const [end] = await running;
  expect(end?.isError).toBe(true);
  await at.notice(/^q no longer waits for an answer\.$/, since);
  expect((await asked(at, NAME, "Answer", "Bob", "Send")).got).toEqual([
    { action: "accept", content: { name: "Bob" } },
  ]);
});

test("a server that asks again after each no -> three dialogs, then it is declined unseen until the turn ends", async () => {
  const at = await session();
  const since = at.rpc.events.length;
  answering(
    at,
    Array.from({ length: 50 }, () => "Decline"),
  );
  const [end] = await at.prompt(call("q__ask", { ask: NAME, times: 50 }));
  expect(JSON.parse(end?.text ?? "null")).toEqual(Array.from({ length: 50 }, () => ({ action: "decline" })));
  expect(dialogsOf(at.rpc, since)).toHaveLength(3);
  expect((await asked(at, NAME, "Decline")).dialogs).toHaveLength(1);
});

test('"elicitation": false -> the server is told that nobody answers, and asks in vain', async () => {
  const at = await session();
  const since = at.rpc.events.length;
  const [end] = await at.prompt(call("mute__ask", { ask: NAME }));
  expect(end?.text).toBe('[{"action":"cancel"}]');
  const [seen] = await at.prompt(call("mute__seen", {}));
  expect(JSON.parse(seen?.text ?? "null").capabilities).toEqual(SKILLS);
  expect(dialogsOf(at.rpc, since)).toEqual([]);
  const [other] = await at.prompt(call("q__seen", {}));
  expect(JSON.parse(other?.text ?? "null").capabilities).toEqual({
    ...SKILLS,
    elicitation: { form: {}, url: {} },
  });
});

test("nothing above was shown to the user as an error", async () => {
  const at = await session();
  const errors = notices(at.rpc.events).filter(({ level }) => level === "error");
  expect(errors).toEqual([]);
  expect(toolEnds(at.rpc.events).length).toBeGreaterThan(10);
});

// The last test of this Pi, because it ends it.
test("print mode -> no server is told that it may ask, and one that asks is cancelled at once; it calls a server that offers less to a client without questions -> a later session with a person finds all its tools", {
  tags: "thorough",
}, async () => {
  const { at, rpc } = await session();
  expect(await rpc.stop()).toMatchObject({ code: 0 });
  const calls = [call("q__ask", { ask: NAME }), call("q__seen", {}), call("real__echo", { message: "hi" })];
  const script = await model([...calls, { text: "done." }]);
  const run = await runPrint({ home: at, model: script, extensions: ENTRY, prompt: "go" });
  expect(run.stdout).toContain("done.");
  const texts = JSON.stringify(script.requests.at(-1));
  expect(texts).toContain("cancel");
  expect(texts.replaceAll("\\", "")).toContain(`{"capabilities":${JSON.stringify(SKILLS)},`);
  expect(texts).toContain("Echo: hi");
  expect(await readLog(at)).toContain("q asks the user something although it was not told that it may");

  const later = await open({ at });
  const [found] = await later.prompt(searchFor("select:real__trigger-elicitation-request"));
  expect(found?.text).toContain("real__trigger-elicitation-request(");
});
