/**
 * Owns: questions of servers in the real Pi in a real terminal, narrow and wide: what a person reads, the review, Escape,
 * and a page whose whole address can be clicked.
 * @module-tag thorough
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { openTerminal } from "../support/terminal.ts";
import { call, ENTRY, fixtureServer, home, model, onCleanup } from "./support.ts";

const FORM = {
  message: "Who are you?\nThe name is written on the order.",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", title: "Your name" },
      size: { type: "string", title: "Size", enum: ["s", "m"], enumNames: ["Small", "Medium"], default: "m" },
    },
    required: ["name"],
  },
};
const URL_OF_PAGE = `https://\u0430pple.com/sign-in?state=${"x".repeat(150)}`;
const HREF = new URL(URL_OF_PAGE).href;

/** The number of links to the page that Pi has written to the terminal. */
const linksIn = async (written: string): Promise<number> =>
  (await readFile(written, "utf8")).split(`\u001b]8;;${HREF}\u001b\\`).length - 1;

test("60 columns, then 120 -> a form, its review, Escape, and a page of a look-alike host", async () => {
  const mcp = { mcpServers: { q: { ...fixtureServer("asks-user.mjs"), directTools: true } } };
  const made = await home({ mcp });
  const written = join(made.tmpDir, "written.log");
  // As over SSH, so that no browser of this machine is started.
  const remote = { SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22", PI_TUI_WRITE_LOG: written, BROWSER: "none" };
  const at = { ...made, env: (extra = {}) => made.env({ ...remote, ...extra }) };
  const script = [
    call("q__ask", { ask: FORM }),
    { text: "answered." },
    call("q__ask", { ask: FORM }),
    { text: "escaped." },
    call("q__ask", { ask: { mode: "url", message: "Sign in.", url: URL_OF_PAGE, elicitationId: "1" } }),
    { text: "opened." },
  ];
  const terminal = await openTerminal({
    home: at,
    model: await model([...script, ...script]),
    extension: ENTRY,
    columns: 60,
  });
  onCleanup(() => terminal.close());
  for (const columns of [60, 120]) {
    if (columns !== 60) await terminal.startAnew(columns);
    const linksBefore = await linksIn(written);

    await terminal.prompt("ask me");
    await terminal.untilRead(
      /MCP server q asks \(2 questions\):\s+│ Who are you\?\s+│ The name is written on the order\.\s+→ Answer\s+Decline/,
    );
    await terminal.press("Enter");
    await terminal.until(/q, 1 of 2:\s+│ Your name/);
    await terminal.prompt("Ann");
    await terminal.until(
      /q, 2 of 2:\s+│ Size\s+\(optional\)\s+Escape: back\s+→ Medium\s+Small\s+\(leave out\)/,
    );
    await terminal.press("Enter");
    await terminal.until(
      /Send this to MCP server q\?[\s\S]*→ Send\s+Your name: Ann\s+Size: Medium\s+Decline/,
    );
    await terminal.press("Enter");
    await terminal.until(/^ answered\./m);

    await terminal.prompt("again");
    await terminal.untilRead(/MCP server q asks[\s\S]*→ Answer/);
    await terminal.press("Escape");
    await terminal.until(/^ escaped\./m);

    await terminal.prompt("a page");
    const asked = (await terminal.untilRead(/→ Open it in the browser\s+I open it myself\s+Decline/)).join(
      "\n",
    );
    expect(asked).toMatch(/Host: xn--pple-43d\.com\n The name holds foreign letters/);
    // Each row of the address is a link to the whole address.
    expect((await linksIn(written)) - linksBefore).toBeGreaterThanOrEqual(
      Math.ceil(HREF.length / (columns - 2)),
    );
    await terminal.press("Enter");
    const screen = (await terminal.until(/^ opened\./m)).join("\n");
    expect(screen).toContain("No browser could be started.");
  }
});

test("a question is taken back while its answer is typed -> the rest and the Enter are no prompt", async () => {
  const made = await home({
    mcp: { mcpServers: { q: { ...fixtureServer("asks-user.mjs"), directTools: true } } },
  });
  const file = join(made.tmpDir, "go");
  const calls = [call("q__ask", { ask: FORM }), call("q__seen", { takesBack: true, file })];
  const scripted = await model([
    { toolCalls: calls.flatMap(({ toolCalls = [] }) => toolCalls) },
    { text: "taken back." },
    { text: "answered." },
  ]);
  const terminal = await openTerminal({ home: made, model: scripted, extension: ENTRY, columns: 80 });
  onCleanup(() => terminal.close());
  await terminal.prompt("ask me");
  await terminal.until(/MCP server q asks[\s\S]*→ Answer/);
  await terminal.press("Enter");
  await terminal.until(/q, 1 of 2:\s+│ Your name/);
  await terminal.type("x");
  await writeFile(file, "");
  // A person who types sees only later that the question is gone.
  while (!/q no longer waits for an answer/.test((await terminal.screen()).join("\n")))
    await terminal.type("x");
  await terminal.type("x");
  await terminal.press("Enter");
  await terminal.until(/^ taken back\./m);
  // Behind a pause the keys are Pi's again.
  const isTyped = async (): Promise<boolean> =>
    /^─{10,}\nz+\n─{10,}\n~/m.test((await terminal.screen()).join("\n"));
  while (!(await isTyped())) {
    await sleep(1_000);
    await terminal.type("z");
  }
  await terminal.press("Enter");
  await terminal.until(/^ answered\./m);
  const asked = scripted.requests.at(-1)?.messages.filter(({ role }) => role === "user") ?? [];
  expect(asked.map(({ content }) => JSON.stringify(content).replaceAll(/z+/g, "z"))).toEqual([
    expect.stringContaining("ask me"),
    expect.stringMatching(/"z"/),
  ]);
});
