/**
 * Owns: tests of the question whether a project's server may run, which the real Pi asks over RPC. The question shows
 * everything that runs and which of the user's variables go where. Allow is possible only after all of it was shown.
 */
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { hasTmux } from "../support/has-program.ts";
import type { PiHome } from "../support/pi-run.ts";
import type { RpcDialog } from "../support/rpc-events.ts";
import { openTerminal } from "../support/terminal.ts";
import { dialogsOf, live, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { ENTRY, home, model, onCleanup, once, searchFor } from "./support.ts";

const files = (servers: Record<string, unknown>) => ({ ".mcp.json": { mcpServers: servers } });
const hasRun = (at: PiHome): Promise<boolean> =>
  stat(join(at.cwd, "ran")).then(
    () => true,
    () => false,
  );

/**
 * A command far longer than a screen, with its effect in the middle. Each `last` makes a new command with a new
 * question.
 */
const FILLER = Array.from({ length: 120 }, (_, i) => `echo line${i}`);
const long = (last = "docs"): { command: string; args: string[] } => ({
  command: "sh",
  args: ["-c", [...FILLER.slice(0, 60), "touch ran", ...FILLER.slice(60), `exec ${last}`].join("; ")],
});
const LONG = long();
const LATER = "Not now";
/** Returns a variable in the form of mcp.json. */
const variable = (name: string): string => `$\{${name}}`;

const pageOf = ({ title }: RpcDialog): string => title.slice(title.indexOf("\n") + 1);

/** One Pi for the tests that need only a project's file about which the user was never asked. */
const shared = once(() => open({ files: files({}) }));

/** Replaces the project's file of the shared Pi, once the user's `own` server runs. `from` is the first record of the test. */
async function withFile(
  servers: Record<string, unknown>,
  own: Record<string, unknown> = {},
): Promise<Opened & { from: number }> {
  const pi = await shared();
  await pi.at.writeFile(".mcp.json", {});
  await pi.at.writeMcp({});
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toContain("No servers are configured.");
  await rm(join(pi.at.cwd, "ran"), { force: true });
  const from = pi.rpc.events.length;
  await pi.at.writeMcp({ mcpServers: own });
  if (Object.keys(own).length > 0) await pi.statusLine("MCP: 1 server ready · 1 tool", from);
  await pi.at.writeFile(".mcp.json", { mcpServers: servers });
  return { ...pi, from };
}

/** Turns the pages up to the last one. Resolves with the last dialog and the text of all pages. */
async function readAll(pi: Opened & { from: number }): Promise<{ last: RpcDialog; text: string }> {
  let last = await pi.dialog(pi.from);
  let text = pageOf(last);
  while (last.options?.includes("Next page")) {
    const since = pi.rpc.events.length;
    pi.answer(last, { value: "Next page" });
    last = await pi.dialog(since);
    text += pageOf(last);
  }
  return { last, text };
}

test("headers, a token and a default -> the question says which variables are sent where", {
  tags: "thorough",
}, async () => {
  const docs = {
    url: "https://docs.example.com/mcp",
    headers: {
      "X-Client": "$env:AWS_SECRET_ACCESS_KEY",
      Accept: "text/html",
      "X-B": `v${variable("B:-x$env:C")}`,
    },
    bearerToken: "Bearer-less $env:GITHUB_TOKEN",
  };
  const pi = await withFile({ docs });
  const asked = await pi.dialog(pi.from);
  expect(asked.title).toBe(
    "This project wants to run an MCP server.\n" +
      "docs: https://docs.example.com/mcp (headers X-Client (from $AWS_SECRET_ACCESS_KEY), " +
      "X-B (text with $C, $B, or a default), Accept (9 characters); token (text with $GITHUB_TOKEN)), " +
      "sends $AWS_SECRET_ACCESS_KEY, $C, $B, $GITHUB_TOKEN of your environment to https://docs.example.com, " +
      `from ${join(pi.at.cwd, ".mcp.json")}`,
  );
  pi.answer(asked, { value: LATER });
});

test("a question longer than a screen -> asked page by page; only the last page offers Allow, which runs the server", async () => {
  const pi = await withFile({ long: LONG });
  const first = await pi.dialog(pi.from);
  expect(first.title).toMatch(
    /^This project wants to run an MCP server\. Page 1 of [2-9]:\nlong: sh -c "echo line0; /,
  );
  expect(first.options).toEqual(["Next page", "Refuse", LATER]);
  const { last, text } = await readAll(pi);
  expect(text).toBe(`long: sh -c "${LONG.args[1]}", from ${join(pi.at.cwd, ".mcp.json")}`);
  expect(last.options).toEqual([LATER, "Refuse", "Allow", "Previous page"]);
  expect(await hasRun(pi.at)).toBe(false);
  pi.answer(last, { value: "Allow" });
  await expect.poll(() => hasRun(pi.at)).toBe(true);
});

test.skipIf(!hasTmux())(
  "60 columns, 24 rows -> each page fits the screen, and Enter on every page runs nothing",
  { tags: "thorough" },
  async () => {
    const words = `${"w".repeat(200)} 日本語`;
    const at = await home({ files: files({ long: { ...LONG, args: [...LONG.args, words] } }) });
    const scripted = await model([]);
    const terminal = await openTerminal({
      home: at,
      model: scripted,
      extension: ENTRY,
      columns: 60,
      rows: 24,
    });
    onCleanup(() => terminal.close());
    let text = "";
    for (let page = 1; ; page++) {
      const screen = await terminal.until(new RegExp(`Page ${page} of \\d+:[^]*(Next page|Allow)`));
      const from = screen.findIndex((line) => line.includes(`Page ${page} of `)) + 1;
      text += screen.slice(from, screen.indexOf("", from)).join("");
      if (screen.some((line) => line.includes("Allow"))) break;
      await terminal.press("Enter");
    }
    // The comparison ignores blanks, since lines break at blanks.
    expect(text.replace(/\s/g, "")).toBe(
      `long: sh -c "${LONG.args[1]}" "${words}", from ${join(at.cwd, ".mcp.json")}`.replace(/\s/g, ""),
    );
    await terminal.press("Enter");
    await terminal.prompt("go");
    await terminal.until(/go/);
    expect(await hasRun(at)).toBe(false);
  },
);

test("a client that answers Allow on the first of several pages -> nothing runs", async () => {
  const pi = await withFile({ long: long("first") });
  pi.answer(await pi.dialog(pi.from), { value: "Allow" });
  // The search waits for every server that is starting.
  await pi.prompt(searchFor("select:long__work"));
  expect(await pi.status()).toContain("waits for your consent: long: sh -c ");
  expect(await hasRun(pi.at)).toBe(false);
  expect(dialogsOf(pi.rpc, pi.from)).toHaveLength(1);
});

test("Refuse on the first page -> the server is refused, with a notice", async () => {
  const pi = await withFile({ long: long("refused") });
  pi.answer(await pi.dialog(pi.from), { value: "Refuse" });
  await pi.notice(/^MCP server long is not started: it was refused;/, pi.from);
  expect(await hasRun(pi.at)).toBe(false);
});

test("a question over the limit -> never asked, never run, and a notice names the file and the remedy", async () => {
  const huge = { command: "sh", args: ["-c", `touch ran; ${"echo line; ".repeat(2_000)}`] };
  const pi = await withFile({ huge, own: live() });
  const told = await pi.notice(/^MCP server huge is not started/, pi.from);
  expect(told).toMatch(
    /takes at least \d+ characters to tell, and more than 8000 are not asked for; make its entry in .*\.mcp\.json/,
  );
  const asked = await pi.dialog(pi.from);
  expect(asked.title).toContain("own: ");
  expect(await pi.status()).toContain("MCP server huge is not started");
  expect(await hasRun(pi.at)).toBe(false);
  expect(LIMITS.consentChars).toBe(8_000);
  pi.answer(asked, { value: LATER });
});

test("a project's server with the name of the user's own -> the question says so; until the answer the user's own server runs", async () => {
  const pi = await withFile({ docs: live(["theirs"]) }, { docs: live(["mine"]) });
  const asked = await pi.dialog(pi.from);
  expect(asked.title).toContain("live.mjs theirs, in place of your own server of this name, from ");
  await pi.prompt(searchFor("select:docs__work"));
  expect((await pi.ask("docs__work")).argv).toEqual(["mine"]);
  pi.answer(asked, { value: LATER });
});

test("a name and arguments that act on a terminal or look like other lines -> one line, each text in its quotes", async () => {
  const name = "docs: npx -y docs, from /etc\n\u001b[2KAllow\u2028\u202e\u200b";
  const pi = await withFile({
    [name]: { command: "n\u0440x", args: ["a      b", "\ufe0f", "\u3164"] },
  });
  const asked = await pi.dialog(pi.from);
  const [heading, question, ...others] = asked.title.split("\n");
  expect(heading).toBe("This project wants to run an MCP server.");
  expect(others).toEqual([]);
  expect(question).toBe(
    '"docs: npx -y docs, from /etc\\n\\u001b[2KAllow\\u{2028}\\u{202e}\\u{200b}": ' +
      `"n\\u{440}x" "a \\u{20}×5b" "\\u{fe0f}" "\\u{3164}", from ${join(pi.at.cwd, ".mcp.json")}`,
  );
  pi.answer(asked, { value: LATER });
});

test("many servers at once -> all can be put off in one answer, and /mcp trust asks again", async () => {
  const servers = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`s${i}`, live([`${i}`])]));
  const pi = await withFile(servers);
  const first = await pi.dialog(pi.from);
  expect(first.options).toEqual([LATER, "Refuse", "Allow", "Not now for all 30 servers"]);
  pi.answer(first, { value: "Not now for all 30 servers" });
  expect((await pi.status()).match(/waits for your consent/g)).toHaveLength(30);
  expect(dialogsOf(pi.rpc, pi.from)).toHaveLength(1);
  const since = pi.rpc.events.length;
  await pi.rpc.command("/mcp trust", 40_000);
  expect((await pi.dialog(since)).title).toContain("s0: ");
});
