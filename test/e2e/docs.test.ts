/**
 * Owns: the commands for Pi that the documentation shows, each typed into the real Pi: over RPC with servers of the names in the
 * pages, and those for a shell in print mode. Whatever asks a person is cancelled.
 * @module-tag thorough
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { commandsFor } from "../support/doc-commands.ts";
import { ensurePi } from "../support/pi-host.ts";
import { runPrint } from "../support/pi-run.ts";
import { extensionErrors, notices, type RpcEvent, toDialog } from "../support/rpc-events.ts";
import { open, PATIENCE_MS } from "./rpc-support.ts";
import { startServers } from "./sign-in-support.ts";
import { ENTRY, home, model, once, root, SERVERS } from "./support.ts";

const COMMANDS = await commandsFor("test/e2e/docs.test.ts");
const IN_SESSION = COMMANDS.filter((command) => command.startsWith("/mcp"));

/** What stands in brackets, in the words of what must be given. */
const IN_BRACKETS: Readonly<Record<string, string>> = {
  server: "<server>",
  name: "<name>",
  arguments: "<arguments>",
  "command or url": "<url>",
};

/** A form without what may be left out, and with it. */
function forms(form: string): string[] {
  const [, before = "", inside = "", after = ""] =
    /^([^[]*)\[((?:[^[\]]|\[[^\]]*\])*)\](.*)$/.exec(form) ?? [];
  if (inside === "") return [form.trim()];
  return ["", IN_BRACKETS[inside] ?? inside].flatMap((one) => forms(`${before}${one}${after}`));
}

const ECHOES = join(root, "test", "fixtures", "servers", "echoes.mjs");

/** These are for remote servers. */
const SIGNS = /^\/mcp(?:-auth| (?:auth|login|logout|unauth)) /;

/** A command that can be typed, with names of what is there. */
function filled(form: string): string {
  const name = /^\/mcp (?:tool|try) /.test(form)
    ? "everything__echo"
    : /^\/mcp add /.test(form)
      ? "mine"
      : "everything";
  const command = form
    .replaceAll("<server>", SIGNS.test(form) ? "linear-work" : "everything")
    .replaceAll(/<prompt>|<skill>/g, "args-prompt")
    .replace(" name=value", " city=Paris")
    .replace("<name>", name)
    .replace("<command>", process.execPath)
    .replace("<arguments>", ECHOES)
    .replace("<url>", "https://example.com/mcp");
  return /^\/mcp add mine$/.test(command) ? "/mcp add memory" : command;
}

/** A server that is taken out is there for no later command, and one that is switched off offers no prompts. */
const ORDER = [/^\/mcp__/, /^\/mcp(?! remove)/, /^\/mcp remove/];
const rank = (command: string): number => ORDER.findIndex((fits) => fits.test(command));
const TYPED = [...new Set(IN_SESSION.flatMap(forms).map(filled))].toSorted((a, b) => rank(a) - rank(b));

const session = once(async () => {
  const { guarded } = await startServers();
  const remote = { url: guarded.url };
  const mcp = {
    mcpServers: {
      everything: SERVERS.everything,
      "linear-work": remote,
      "linear-home": remote,
      team: remote,
    },
  };
  const pi = await open({ mcp, trusted: true, env: { BROWSER: "none" } });
  pi.rpc.answerUi({ cancelled: true });
  await pi.notice(/needs sign-in|sign-in/);
  await pi.rpc.command("/mcp reconnect everything", PATIENCE_MS);
  return pi;
});

test("the pages show many commands, and no word of a form is left", () => {
  expect(TYPED.length).toBeGreaterThan(40);
  expect(TYPED.filter((command) => /[<>[\]]/.test(command))).toEqual([]);
  expect(forms("/mcp hub [stop [name]]").map(filled)).toEqual([
    "/mcp hub",
    "/mcp hub stop",
    "/mcp hub stop everything",
  ]);
});

test.each(TYPED)("%s -> no wrong word and no failure", async (command) => {
  const { rpc } = await session();
  const since = rpc.events.length;
  await rpc.command(command, PATIENCE_MS);
  // What a prompt of a server begins goes on after its command.
  const shown = (event: RpcEvent): boolean => toDialog(event) !== undefined || event.method === "notify";
  await rpc.waitFor((event) => shown(event) || event.type === "agent_settled", PATIENCE_MS, since);
  const events = rpc.events.slice(since);
  expect(extensionErrors(events)).toEqual([]);
  const wrong = notices(events).filter(
    ({ level, message }) =>
      // The state of a server is told when it changes, whatever is typed meanwhile.
      level !== "info" && !message.endsWith(": cancelled.") && !/^(?:\d+ )?MCP servers? /.test(message),
  );
  expect(wrong).toEqual([]);
});

test.each(COMMANDS.filter((command) => command.startsWith("pi -p ")))("%s -> code 0", async (command) => {
  const [, prompt = ""] = /^pi -p "(.*)"$/.exec(command) ?? [];
  const scripted = await model([{ text: "ok" }]);
  const at = await home({ mcp: { mcpServers: { everything: SERVERS.everything } } });
  const words = prompt.replace("/mcp__...", "/mcp__everything__simple-prompt");
  const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: words });
  expect(run).toMatchObject({ code: 0 });
});

test("Pi's own commands fail at a comment in mcp.json, as docs/configuration.md says", async () => {
  const own = COMMANDS.filter((command) => command.startsWith("pi mcp "));
  expect(own.toSorted()).toEqual(["pi mcp add", "pi mcp list"]);
  const at = await home({ mcp: '{\n  // mine\n  "mcpServers": {}\n}\n' });
  const { cli } = await ensurePi();
  for (const words of [["list"], ["add", "x", "--", "node"]]) {
    const options = { cwd: at.cwd, env: at.env() };
    const run = promisify(execFile)(process.execPath, [cli, "mcp", ...words], options);
    const { code, stdout, stderr } = await run.then(
      () => ({ code: 0, stdout: "", stderr: "" }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    );
    expect(code).not.toBe(0);
    expect(`${stdout}${stderr}`).toContain("Expected property name");
  }
});
