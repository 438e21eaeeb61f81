/**
 * Owns: `/mcp off` and `/mcp on` in the real Pi: a server that is off for a session is nowhere, no file changes, and no byte
 * of a declaration; a resumed session keeps it off, a new one has it.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { messageText } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { waitGone } from "../support/processes.ts";
import { notices } from "../support/rpc-events.ts";
import { type InTurn, inTurn } from "./in-turn.ts";
import { live, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, home, model, searchFor } from "./support.ts";

const turn = inTurn();
const SERVERS = { one: live(["one"]), two: live(["two"]), three: live(["three"], {}, { enabled: false }) };

const command = async (pi: InTurn, text: string): Promise<string> =>
  notices(await pi.rpc.command(text, PATIENCE_MS))
    .map(({ message }) => message)
    .join("\n");

const sessionFile = async ({ rpc }: InTurn): Promise<string> =>
  ((await rpc.request({ type: "get_state" }, PATIENCE_MS)).data as { sessionFile: string }).sessionFile;

/** Name -> its declaration in the newest request. */
const toolsOf = ({ scripted }: InTurn): Record<string, string> =>
  Object.fromEntries(
    (scripted.requests.at(-1)?.tools ?? []).map((one) => [one.function.name, JSON.stringify(one)]),
  );

test("off -> refused by name, found by no search, its process ends, the model is told in one line and no declared byte changes; on -> it works again", async () => {
  const pi = await turn({ mcp: { mcpServers: SERVERS } });
  await pi.prompt(searchFor("select:one__work"), searchFor("select:two__work"));
  const { pid } = await pi.ask("one__work");
  const declared = toolsOf(pi);
  const written = await readFile(join(pi.at.agentDir, "mcp.json"), "utf8");

  expect(await command(pi, "/mcp off one")).toContain("one is switched off for this session.");
  expect(await waitGone([pid], PATIENCE_MS)).toEqual([]);
  const [refused] = await pi.prompt(call("one__work", {}));
  expect(refused).toMatchObject({ isError: true });
  const told = (pi.scripted.requests.at(-1)?.messages ?? []).map(messageText).join("\n");
  expect(told).toMatch(
    /one is switched off for this session\. Only the user can switch it on: \/mcp on one\./,
  );
  expect(told).toMatch(/Note of the MCP extension.*Gone: one\./);
  const [found] = await pi.prompt(searchFor("work"));
  expect(found?.text).not.toContain("one__work");
  const [chosen] = await pi.prompt(searchFor("select:one__work"));
  expect(chosen?.text).toContain("switched off for this session");
  expect(await command(pi, "/mcp tools")).not.toContain("one__work");
  expect(await command(pi, "/mcp reconnect one")).toContain("/mcp on one");
  expect(await pi.status()).toMatch(/^one: off for this session/m);
  expect((await pi.ask("two__work")).argv).toEqual(["two"]);

  expect(await command(pi, "/mcp on one")).toContain("one is switched on for this session.");
  await pi.prompt(searchFor("select:one__work"));
  expect((await pi.ask("one__work")).argv).toEqual(["one"]);
  // One that its file disables, too.
  await command(pi, "/mcp on three");
  await pi.prompt(searchFor("select:three__work"));
  expect((await pi.ask("three__work")).argv).toEqual(["three"]);
  expect(toolsOf(pi)).toMatchObject(declared);
  expect(await readFile(join(pi.at.agentDir, "mcp.json"), "utf8")).toBe(written);
  expect(await command(pi, "/mcp off gone")).toContain("No server named gone is configured.");
});

test("a session that is resumed keeps it off from its first request on; a new one has it, and finds its snapshot", async () => {
  const pi = await turn({ mcp: { mcpServers: SERVERS } });
  await pi.prompt(searchFor("select:one__work"), searchFor("select:two__work"));
  await command(pi, "/mcp off one");
  await pi.prompt();
  const file = await sessionFile(pi);
  await pi.again();
  await pi.prompt(searchFor("select:one__work"));
  expect((await pi.ask("one__work")).argv).toEqual(["one"]);
  await pi.again(undefined, file);
  const [first] = await pi.prompt(searchFor("select:one__work"));
  expect(first?.text).toContain("switched off for this session");
  const [refused] = await pi.prompt(call("one__work", {}));
  expect(refused).toMatchObject({ isError: true });
  expect((await pi.ask("two__work")).argv).toEqual(["two"]);
  expect(await pi.status()).toMatch(/^one: off for this session/m);
  // What lasts ends what does not.
  await command(pi, "/mcp enable one");
  await pi.again(undefined, file);
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(/^one: (?:connect|idle)/m);
});

test("print mode: what one run switches off, the run that goes on with its session does not have", async () => {
  const at = await home({ mcp: { mcpServers: SERVERS } });
  const run = async (prompt: string, args: string[]) => {
    const scripted = await model([searchFor("work"), { text: "done" }]);
    const ran = await runPrint({
      home: at,
      model: scripted,
      extensions: [ENTRY],
      prompt,
      args,
      timeoutMs: PATIENCE_MS,
    });
    expect(ran).toMatchObject({ code: 0, timedOut: false });
    return { ran, told: JSON.stringify(scripted.requests) };
  };
  await run("go", []);
  const off = await run("/mcp off one", ["-c"]);
  expect(off.ran.stderr).toContain("one is switched off for this session.");
  const on = await run("go", ["-c"]);
  expect(on.told).toContain("two__work");
  expect(on.told.split("two__work").length).toBeGreaterThan(on.told.split("one__work").length);
  expect((await run("go", [])).told).toContain("one__work");
});
