/**
 * Owns: tests of a clone whose configuration is a trap, in the real Pi: the start ends, the user's own servers work, the
 * keys arrive, and one notice names the mistake.
 */
import { execFile } from "node:child_process";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { hasTmux } from "../support/has-program.ts";
import { family } from "../support/long.ts";
import { notices } from "../support/rpc-events.ts";
import { openTerminal } from "../support/terminal.ts";
import { inTurn } from "./in-turn.ts";
import { live } from "./rpc-support.ts";
import { ENTRY, home, model, onCleanup, readLog, searchFor } from "./support.ts";

const turn = inTurn();
const own = { mcpServers: { own: live([], {}, { lifecycle: "eager" }) } };

/**
 * Name of the trap, a function that puts it at `.mcp.json`, and the notice to the user. The last test below opens a device
 * in any case, and read-regular.test.ts of test/unit tests each kind of file.
 */
const TRAPS = family<[string, (file: string) => Promise<unknown>, RegExp]>([
  ["a named pipe", (file) => promisify(execFile)("mkfifo", [file]), /it is a named pipe, not a regular file/],
  [
    "a link to a device without an end",
    (file) => symlink("/dev/zero", file),
    /it is a terminal or another device, not a regular file/,
  ],
]);

describe(".mcp.json of a clone", () => {
  test.each(TRAPS)(
    "%s -> the session starts, the user's server works, one notice",
    async (_what, make, told) => {
      const pi = await turn({ mcp: own, fill: (folder) => make(join(folder, "project", ".mcp.json")) });
      await pi.statusLine("MCP: 1 server ready · 1 tool");
      expect(await pi.notice(told)).toContain(join(pi.at.cwd, ".mcp.json"));
      await pi.prompt(searchFor("select:own__work"));
      expect(await pi.ask("own__work")).toMatchObject({ argv: [] });
      expect(notices(pi.rpc.events).filter(({ message }) => told.test(message))).toHaveLength(1);
    },
  );

  test("16,000 entries -> the user's server works, one notice of bounded length, the worker never hangs", async () => {
    const entries = Object.fromEntries(Array.from({ length: 16_000 }, (_, i) => [`s${i}`, i]));
    const files = { ".mcp.json": JSON.stringify({ mcpServers: entries }) };
    const pi = await turn({ mcp: own, files });
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    const text = await pi.notice(/has 16,000 servers/);
    expect(text.length).toBeLessThan(6_000);
    expect(text).toContain("and 11 more: /mcp shows what is wrong.");
    await pi.prompt(searchFor("select:own__work"));
    expect(await pi.ask("own__work")).toMatchObject({ argv: [] });
    expect(notices(pi.rpc.events).filter(({ message }) => message.includes(".mcp.json"))).toHaveLength(1);
    expect(await pi.status()).toContain("and 481 more mistakes");
    const log = await readLog(pi.at);
    expect(log).not.toMatch(/did not answer|ended unexpectedly/);
    expect(log.split("\n").filter((line) => line.includes(".mcp.json")).length).toBeLessThanOrEqual(21);
  });
});

/** The keys that the test types; Pi must get each of them. */
const KEYS = "abcdefghijklmnopqrst";

test.skipIf(!hasTmux())(
  ".mcp.json of a clone is a link to the terminal -> every key reaches Pi, Ctrl+C too",
  async () => {
    const at = await home({ mcp: own });
    await symlink("/dev/tty", join(at.cwd, ".mcp.json"));
    const scripted = await model([{ text: "answered." }]);
    const terminal = await openTerminal({ home: at, model: scripted, extension: ENTRY, columns: 250 });
    onCleanup(() => terminal.close());
    await terminal.until(/it is a terminal or another device, not a regular file/);
    await terminal.until(/MCP: 1 server ready · 1 tool/);
    for (const key of KEYS) await terminal.press(key);
    await terminal.until(new RegExp(KEYS));
    await terminal.press("C-c");
    await expect.poll(async () => (await terminal.screen()).join("\n")).not.toContain(KEYS);
    await terminal.prompt("go on");
    await terminal.until(/answered\./);
  },
);
