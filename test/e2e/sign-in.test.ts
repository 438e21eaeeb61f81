/**
 * Owns: sign-ins in the real Pi over RPC, where another program answers the dialogs: by a pasted address or code, by
 * Cancel, by nothing; the end of a sign-in; and a call that starts one and waits for it.
 */
import { expect, test } from "vitest";
import { browse } from "../support/browser.ts";
import type { PiHome } from "../support/pi-run.ts";
import { notices, type RpcDialog, type RpcNotice } from "../support/rpc-events.ts";
import { dialogsOf, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import {
  begin,
  changedExtension,
  expectNoSecret,
  type Story,
  type StoryOptions,
  startServers,
  stored,
} from "./sign-in-support.ts";
import { call, ENTRY, onCleanup } from "./support.ts";

interface Host extends Story, Opened {
  at: Opened["at"];
  /** Runs `/mcp auth web` or another command, while the test answers its dialogs. Resolves with its notices. */
  command(text: string): Running;
}

interface Running {
  /** The `nth` dialog of the command, from 0. */
  dialog(nth: number): Promise<RpcDialog>;
  ended: Promise<RpcNotice[]>;
}

interface HostOptions extends StoryOptions {
  /** Default: the built extension. */
  extension?: (at: PiHome) => Promise<string>;
}

/** Starts Pi over RPC with a server that nobody has signed in to. */
async function host({ extension = async () => ENTRY, ...options }: HostOptions = {}): Promise<Host> {
  const story = await begin(options);
  const { at, env } = story;
  const opened = await open({ at, env, extensions: [await extension(at)] });
  const { rpc } = opened;
  onCleanup(async () => expect(rpc.strayLines).toEqual([]));
  // Servers that are refused at about the same time have one notice.
  await opened.notice(/^MCP server web needs a sign-in: \/mcp auth web$|^2 MCP servers need a sign-in: /);
  const command = (text: string): Running => {
    const since = rpc.events.length;
    const dialog = async (nth: number): Promise<RpcDialog> => {
      await rpc.waitFor(() => dialogsOf(rpc, since).length > nth, PATIENCE_MS, since);
      return dialogsOf(rpc, since)[nth] as RpcDialog;
    };
    return { dialog, ended: rpc.command(text, PATIENCE_MS).then(notices) };
  };
  return { ...story, ...opened, command };
}

/** Keeps what Pi has said so far, and looks for secrets in all of it. */
async function expectSaidNoSecret(pi: Host, isStored: boolean): Promise<void> {
  const { rpc } = pi;
  pi.said.push({ name: "the RPC transcript", text: JSON.stringify(rpc.events) });
  pi.said.push({ name: "stderr", text: rpc.stderr });
  await expectNoSecret(pi, { isStored });
}

/** The address that the dialog shows to a program: a line of its own. */
function addressIn({ title }: RpcDialog): string {
  const address = title.split("\n").find((line) => line.startsWith("http"));
  if (address === undefined) throw new Error(`no address in ${title}`);
  return address;
}

/** Opens the address in a browser that cannot reach this machine, and answers the address on which it ends. */
async function lastAddress(dialog: RpcDialog): Promise<URL> {
  // Where the answer names no issuer, the path tells the sign-ins apart.
  const { url } = await browse(addressIn(dialog), (at) => at.pathname.startsWith("/callback"));
  return new URL(url);
}

const infos = (text: string): RpcNotice => ({ message: text, level: "info" });
const SIGNED_IN = infos("web: signed in, 1 tool.");
const CANCELLED = infos("web: the sign-in is cancelled.");
const NEEDS = "web: it needs a sign-in. Run /mcp auth web in Pi.";
/** Without a search, as a later session does with a tool that it knows. */
const echo = (a: number) => call("web__echo", { a });
const find = call("ToolSearch", { query: "select:web__echo" });

test("a pasted address -> signed in with one line; a call works; /mcp logout ends it; a pasted code, where the answer need not name the authorization server -> signed in", async () => {
  // The answer of its authorization server does not name the issuer.
  const code = await startServers({
    iss: false,
    metadata: ({ authorization_response_iss_parameter_supported: _, ...rest }) => rest,
  });
  const pi = await host({
    beside: { code },
    // So that the authorization server issues a secret for the client as well.
    behaviour: {
      metadata: (usual) => ({ ...usual, token_endpoint_auth_methods_supported: ["client_secret_basic"] }),
    },
  });
  const { dialog, ended } = pi.command("/mcp auth web");
  const first = await dialog(0);
  expect(first).toMatchObject({ method: "input", placeholder: "address or code" });
  // A program over RPC may show the title of a dialog only in part.
  expect(notices(pi.rpc.events).map(({ message }) => message)).toContain(
    `The sign-in page of web:\n${addressIn(first)}`,
  );
  await expect
    .poll(async () => (await pi.opened()).map((started) => started.at(-1)))
    .toEqual([addressIn(first)]);
  pi.answer(first, { value: "" });
  pi.answer(await dialog(1), { value: "http://127.0.0.1/callback?code=made-up&state=of-another" });
  const last = await dialog(2);
  pi.answer(last, { value: ` ${(await lastAddress(last)).href}\n` });
  const said = await ended;
  expect(said.filter(({ level }) => level === "warning").map(({ message }) => message)).toEqual([
    expect.stringMatching(/^web: Nothing was pasted\./),
    expect.stringMatching(/^web: ./),
  ]);
  expect(said.filter(({ level }) => level === "info").slice(1)).toEqual([SIGNED_IN]);
  expect(await pi.status()).toMatch(
    /^web: connected \(http, 1 tool, MCP [\d-]+, signed in, expires in \d+ min, renews itself\)/m,
  );
  const [, echoed] = await pi.prompt(find, echo(1));
  expect(echoed).toMatchObject({ text: '{"a":1}', isError: false });
  expect([...pi.trusted.book.secrets].filter((secret) => secret.startsWith("secret-"))).toHaveLength(1);
  await expectSaidNoSecret(pi, true);

  expect(await pi.command("/mcp logout web").ended).toContainEqual(infos("web is signed out."));
  expect(await stored(pi)).toEqual([]);
  expect(pi.trusted.asked("/revoke").length).toBeGreaterThan(0);
  const [refused] = await pi.prompt(echo(2));
  expect(refused).toMatchObject({ text: expect.stringContaining(NEEDS), isError: true });

  const second = pi.command("/mcp-auth code");
  const only = await second.dialog(0);
  pi.answer(only, { value: (await lastAddress(only)).searchParams.get("code") ?? "" });
  expect((await second.ended).at(-1)).toEqual(infos("code: signed in, 1 tool."));
  await pi.rpc.stop();
  await expectSaidNoSecret(pi, false);
  await expectNoSecret(pi, { isStored: true, server: "code", trusted: code.trusted });
});

const codeIn = ({ title }: RpcDialog): string => /enter this code: (\S+)/.exec(title)?.[1] ?? "";

test("a code for another device -> its page and the code; the user agrees there -> signed in; Cancel; a link instead", {
  tags: "thorough",
}, async () => {
  const pi = await host({ behaviour: { device: (usual) => usual }, entry: { oauth: { deviceCode: true } } });
  const { trusted } = pi;
  const { dialog, ended } = pi.command("/mcp auth web");
  const first = await dialog(0);
  const options = ["Go on waiting", "Sign in with a link instead"];
  expect(first).toMatchObject({ method: "select", options });
  expect(first.title.split("\n")).toEqual([
    "To sign in to web, open this page on any device:",
    `${trusted.origin}/device`,
    `and enter this code: ${codeIn(first)}`,
    "Or open the page that has the code already:",
    `${trusted.origin}/device?user_code=${codeIn(first)}`,
    `The code comes from ${new URL(trusted.origin).host}. Agree on that page only if it shows this code.`,
  ]);
  expect(notices(pi.rpc.events).map(({ message }) => message)).toContain(
    `The sign-in page of web, with the code ${codeIn(first)}:\n${trusted.origin}/device`,
  );
  pi.answer(first, { value: "Go on waiting" });
  expect(codeIn(await dialog(1))).toBe(codeIn(first));
  expect(trusted.book.answerDevice(codeIn(first), "agreed")).toBe(true);
  expect((await ended).at(-1)).toEqual(SIGNED_IN);
  expect(await pi.opened()).toEqual([]);
  const [, echoed] = await pi.prompt(find, echo(7));
  expect(echoed).toMatchObject({ text: '{"a":7}', isError: false });
  await expectSaidNoSecret(pi, true);

  await pi.command("/mcp logout web").ended;
  const cancelled = pi.command("/mcp auth web");
  pi.answer(await cancelled.dialog(0), { cancelled: true });
  expect((await cancelled.ended).at(-1)).toEqual(CANCELLED);
  const linked = pi.command("/mcp auth web");
  pi.answer(await linked.dialog(0), { value: "Sign in with a link instead" });
  const link = await linked.dialog(1);
  pi.answer(link, { value: (await lastAddress(link)).href });
  expect((await linked.ended).at(-1)).toEqual(SIGNED_IN);
  expect(trusted.grants.at(-1)).toBe("authorization_code");
  await pi.rpc.stop();
  await expectSaidNoSecret(pi, true);
});

test("Cancel -> nothing is stored and nothing listens; the browser's own answer signs in and leaves the dialog", async () => {
  const pi = await host();
  const cancelled = pi.command("/mcp login web");
  const open = await cancelled.dialog(0);
  pi.answer(open, { cancelled: true });
  expect((await cancelled.ended).at(-1)).toEqual(CANCELLED);
  expect(await stored(pi)).toEqual([]);
  await expect(browse(addressIn(open))).rejects.toThrow("fetch failed");

  const { dialog, ended } = pi.command("/mcp auth");
  const left = await dialog(0);
  expect((await browse(addressIn(left))).status).toBe(200);
  expect((await ended).at(-1)).toEqual(SIGNED_IN);
  // The program may answer the dialog that Pi has left.
  pi.answer(left, { value: "http://127.0.0.1/callback?code=late" });
  const [, echoed] = await pi.prompt(find, echo(3));
  expect(echoed).toMatchObject({ text: '{"a":3}', isError: false });
  await pi.rpc.stop();
  await expectSaidNoSecret(pi, true);
});

test("several servers, another issuer -> the host chooses, is asked, refuses, agrees", {
  tags: "thorough",
}, async () => {
  const issuer = "https://issuer.example/tenant";
  const pi = await host({
    behaviour: { iss: issuer, metadata: (usual) => ({ ...usual, issuer }) },
    others: ["docs"],
  });
  await pi.notice(/^MCP server docs needs a sign-in|^2 MCP servers need a sign-in: .*\bdocs\b/);
  for (const confirmed of [false, true]) {
    const { dialog, ended } = pi.command("/mcp auth");
    const choice = await dialog(0);
    expect(choice).toMatchObject({ method: "select", options: ["web", "docs"] });
    pi.answer(choice, { value: "web" });
    const question = await dialog(1);
    expect(question).toMatchObject({ method: "select", title: expect.stringContaining(issuer) });
    expect(pi.trusted.asked("/register")).toEqual([]);
    pi.answer(question, { value: question.options?.[confirmed ? 1 : 0] ?? "" });
    if (confirmed) {
      // The name that was agreed to is not that of the page.
      const page = await dialog(2);
      expect(page.title).toContain("at the page of another server");
      pi.answer(page, { value: page.options?.[1] ?? "" });
      pi.answer(await dialog(3), { value: (await lastAddress(await dialog(3))).href });
    }
    expect((await ended).at(-1)).toEqual(confirmed ? SIGNED_IN : CANCELLED);
    expect(await stored(pi)).toHaveLength(confirmed ? 1 : 0);
  }
  await pi.rpc.stop();
  await expectSaidNoSecret(pi, true);
});

test("no answer -> the sign-in ends by its time limit, and the next one begins", {
  tags: "thorough",
}, async () => {
  // Pi itself passes no limits on.
  const impatient = (at: PiHome): Promise<string> => changedExtension(at, "=5*6e4", "=1");
  const pi = await host({ extension: impatient });
  for (const command of ["/mcp auth web", "/mcp auth"]) {
    const { dialog, ended } = pi.command(command);
    const unanswered = await dialog(0);
    expect((await ended).at(-1)).toEqual({
      message: "web: the sign-in was not finished in time. Run /mcp auth web again.",
      level: "error",
    });
    await expect(browse(addressIn(unanswered))).rejects.toThrow("fetch failed");
  }
  expect(await stored(pi)).toEqual([]);
});

test("autoAuth -> a call starts the sign-in and waits for it; after Cancel calls fail and ask no more", {
  tags: "thorough",
}, async () => {
  const pi = await host({ settings: { autoAuth: true } });
  // The tool is known only after a first sign-in.
  const first = pi.command("/mcp auth web");
  await browse(addressIn(await first.dialog(0)));
  await first.ended;
  await pi.prompt(find);
  await pi.command("/mcp logout web").ended;

  const since = pi.rpc.events.length;
  const calls = pi.prompt(echo(4));
  const asked = await pi.dialog(since);
  expect(pi.rpc.events.slice(since).some(({ type }) => type === "tool_execution_end")).toBe(false);
  pi.answer(asked, { value: (await lastAddress(asked)).href });
  expect(await calls).toMatchObject([{ text: '{"a":4}', isError: false }]);
  expect(notices(pi.rpc.events.slice(since)).at(-1)).toEqual(SIGNED_IN);

  await pi.command("/mcp logout web").ended;
  const later = pi.rpc.events.length;
  const refused = pi.prompt(echo(5));
  pi.answer(await pi.dialog(later), { cancelled: true });
  expect(await refused).toMatchObject([{ text: expect.stringContaining(NEEDS), isError: true }]);
  expect(await pi.prompt(echo(6))).toMatchObject([{ text: expect.stringContaining(NEEDS), isError: true }]);
  expect(dialogsOf(pi.rpc, later)).toHaveLength(1);
  await pi.rpc.stop();
  await expectSaidNoSecret(pi, false);
});
