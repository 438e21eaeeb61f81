/**
 * Owns: approval of tools in the real Pi: what would ask is refused in print mode on every way to a tool, the question
 * and its answers over RPC, and the dialog in a real terminal.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { hasTmux } from "../support/has-program.ts";
import { type ModelTurn, toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { openTerminal } from "../support/terminal.ts";
import { inTurn, type Turn } from "./in-turn.ts";
import { answering, type Opened, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, fixtureServer, home, model, onCleanup, once, root, searchFor } from "./support.ts";

const shapes = fixtureServer("shapes.mjs");
const PERMISSION = join(root, "test/fixtures/permission-extension.mjs");
const NOBODY =
  /s\/(search|read) was not called: "approve" needs the user's yes, and no one can be asked .* approve of s in .*mcp\.json/;

describe("print mode", () => {
  const destructive = { ...shapes, approve: "destructive" };

  test("a direct tool, a loaded tool, a script -> what may write is refused, with the setting; what reads runs", async () => {
    const defaultTools = ["read", "bash", "edit", "write", "ToolSearch", "codemode"];
    const at = await home({
      mcp: { mcpServers: { s: { ...destructive, directTools: ["search"] } } },
      settings: { defaultTools },
    });
    const code =
      'const [measured, searched] = await Promise.allSettled([tools.s__measure({}), tools.s__search({ q: "x" })]);' +
      "return JSON.stringify({ measured: measured.status, searched: String(searched.reason?.message) });";
    const scripted = await model([
      call("s__search", { q: "x" }),
      searchFor("select:s__read,s__measure"),
      { toolCalls: [...call("s__read", {}).toolCalls, ...call("s__measure", {}).toolCalls] },
      call("codemode", { code }),
      { text: "ok" },
    ]);
    await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    const last = scripted.requests.at(-1);
    const [direct, , loaded, measured, script] = last ? toolResultTexts(last) : [];
    expect([direct, loaded]).toEqual([expect.stringMatching(NOBODY), expect.stringMatching(NOBODY)]);
    expect(measured).toMatch(/^measure \{\}/);
    expect(script).toContain("fulfilled");
    expect(script).toContain("s/search was not called: ");
  });

  test("the proxy tool -> the same", async () => {
    const at = await home({ mcp: { mcpServers: { s: destructive }, settings: { proxyTool: true } } });
    const scripted = await model([
      // Without a snapshot the plan may come after the first request, which then declares ToolSearch.
      ({ toolNames }) =>
        toolNames.includes("mcp") ? call("mcp", { search: "measure" }) : searchFor("measure"),
      call("mcp", { tool: "s__search", args: { q: "x" } }),
      call("mcp", { tool: "s__measure" }),
      { text: "ok" },
    ]);
    await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    const last = scripted.requests.at(-1);
    const [, refused, measured] = last ? toolResultTexts(last) : [];
    expect(refused).toMatch(NOBODY);
    expect(measured).toMatch(/^measure \{\}/);
  });
});

/** A file as a person writes it. */
const WRITTEN = (server: object): string => `{
  // my servers
  "mcpServers": {
    "s": {
      "command": ${JSON.stringify(Reflect.get(server, "command"))},
      "args": ${JSON.stringify(Reflect.get(server, "args"))},
      "directTools": true,
      "approve": { "*": "destructive" }, // careful
    },
  },
}
`;

const turn = inTurn();

/** A session that knows the six tools of `s`. */
async function knowing(options: Turn): Promise<Opened> {
  const pi = await turn(options);
  await pi.statusLine("MCP: 1 server ready · 6 tools");
  return pi;
}

/** The first session, for several tests: its server `s` asks for what may write. */
const asking = once(async () => {
  const pi = await knowing({ mcp: WRITTEN(shapes) });
  return { ...pi, file: pi.at.mcpFile };
});

const searches = (...words: string[]): ModelTurn => ({
  toolCalls: words.flatMap((q) => call("s__search", { q }).toolCalls),
});

describe("over RPC", () => {
  test("two calls at a time -> one question after the other; once and no count for one call each", async () => {
    const pi = await asking();
    const { titles, texts } = await answering(pi, [searches("one", "two")], "Allow once", "No");
    expect(titles).toEqual([
      'Run search of the MCP server s?\nq: "one"',
      'Run search of the MCP server s?\nq: "two"',
    ]);
    // The refused call may end first.
    const [refused, ran] = texts.toSorted();
    expect(ran).toBe('search {"q":"one"}');
    expect(refused).toMatch(/^s\/search was not called: the user said no\. Do not call it again/);
    const reads = await answering(pi, [call("s__measure", {})]);
    expect([reads.texts[0], reads.asked]).toEqual([expect.stringMatching(/^measure/), 0]);
  });

  test("a run that is stopped while the question is open -> the question is gone, and the next one is asked", async () => {
    const pi = await asking();
    const from = pi.rpc.events.length;
    const stopped = pi.prompt(searches("stopped"));
    const dialog = await pi.dialog(from);
    await pi.rpc.request({ type: "abort" });
    await stopped;
    // An answer that comes too late lets nothing run.
    pi.answer(dialog, { value: "Always allow this tool" });
    const { texts, titles } = await answering(pi, [searches("next")], "No");
    expect(titles).toEqual(['Run search of the MCP server s?\nq: "next"']);
    expect(texts[0]).toMatch(/the user said no/);
    expect(await readFile(pi.file, "utf8")).toBe(WRITTEN(shapes));
  });

  test("for this session, for the first of three calls -> the others run unasked; the file stays", async () => {
    const pi = await asking();
    const read = (path: string) => call("s__read", { path }).toolCalls;
    const turn = { toolCalls: [...read("a"), ...read("b"), ...read("c")] };
    const { texts, asked } = await answering(pi, [turn], "Allow this tool for this session");
    expect(texts).toEqual(["a", "b", "c"].map((path) => `read {"path":"${path}"}`));
    expect(asked).toBe(1);
    expect(await readFile(pi.file, "utf8")).toBe(WRITTEN(shapes));
  });

  test("always -> a rule in the user's file beside its comments, and never asked again", async () => {
    const pi = await asking();
    const { texts } = await answering(pi, [searches("x")], "Always allow this tool");
    expect(texts[0]).toBe('search {"q":"x"}');
    const rule = '"approve": { "*": "destructive", "search": "allow" }, // careful';
    await expect
      .poll(() => readFile(pi.file, "utf8"), { timeout: PATIENCE_MS })
      .toBe(WRITTEN(shapes).replace(/"approve".*/, rule));
    const again = await answering(pi, [searches("y")]);
    expect([again.texts, again.asked]).toEqual([['search {"q":"y"}'], 0]);
  });

  test("all tools of the server, for one call -> another tool runs unasked; a rule about its argument asks all the same", async () => {
    const approve = { "*": "ask", "search(q=*secret*)": "ask" };
    const pi = await knowing({ mcp: { mcpServers: { s: { ...shapes, approve, directTools: true } } } });
    const answer = "Allow all tools of this server for this session";
    const { texts } = await answering(pi, [call("s__read", { path: "a" })], answer);
    expect(texts).toEqual(['read {"path":"a"}']);
    const other = await answering(pi, [searches("x")]);
    expect([other.texts, other.asked]).toEqual([['search {"q":"x"}'], 0]);
    const each = await answering(pi, [searches("a Secret")], "No");
    expect(each.asked).toBe(1);
    expect(each.texts[0]).toMatch(/the user said no/);
  });

  test("another extension blocks the call in tool_call -> it is blocked, and nobody is asked", {
    tags: "thorough",
  }, async () => {
    const mcp = { mcpServers: { s: { ...shapes, approve: "always", directTools: true } } };
    const pi = await knowing({ mcp, settings: { extensions: ["-builtin:mcp", PERMISSION] } });
    const blocked = await answering(pi, [searches("x")]);
    expect([blocked.texts[0], blocked.asked]).toEqual([
      expect.stringContaining("s__search was not approved"),
      0,
    ]);
    const { texts } = await answering(pi, [call("s__measure", {})], "Allow once");
    expect(texts[0]).toMatch(/^measure/);
  });
});

test.skipIf(!hasTmux())(
  "60 columns, then 120 -> the question fits, all arguments page by page, Escape means no",
  { tags: "thorough" },
  async () => {
    const at = await home({
      mcp: { mcpServers: { s: { ...shapes, approve: "always", directTools: true } } },
    });
    const words = Array.from({ length: 150 }, (_, i) => `word${i}`).join(" ");
    const read = { toolCalls: [{ name: "s__read", args: { path: words } }] };
    const script = [read, { text: "first." }, read, { text: "second." }];
    const terminal = await openTerminal({
      home: at,
      model: await model([...script, ...script]),
      extension: ENTRY,
      columns: 60,
      rows: 30,
    });
    onCleanup(() => terminal.close());
    for (const columns of [60, 120]) {
      if (columns !== 60) await terminal.startAnew(columns);
      await terminal.until(/MCP: .*1 server ready · 6 tools/);
      await terminal.prompt("go");
      const short = await terminal.untilRead(/Run read of the MCP server s\?[\s\S]*Show all arguments/);
      expect(short.some((line) => line.startsWith(' path: "word0 word1') && line.endsWith("…"))).toBe(true);
      await terminal.press("Escape");
      await terminal.until(/first\./);
      expect((await terminal.screen()).join("\n")).toContain("the user said no");

      await terminal.prompt("again");
      await terminal.untilRead(/Run read of the MCP server s\?[\s\S]*Show all arguments/);
      for (let i = 0; i < 5; i++) await terminal.press("Down");
      await terminal.press("Enter");
      let text = "";
      for (let page = 1; ; page++) {
        const screen = await terminal.until(new RegExp(`Page ${page} of \\d+:[^]*(Next page|Allow once)`));
        const from = screen.findIndex((line) => line.includes(`Page ${page} of `)) + 1;
        text += screen.slice(from, screen.indexOf("", from)).join("");
        if (screen.some((line) => line.includes("Allow once"))) break;
        await terminal.press("Enter");
      }
      expect(text.replace(/\s/g, "")).toBe(`path:"${words}"`.replace(/\s/g, ""));
      await terminal.press("Down");
      await terminal.press("Enter");
      expect((await terminal.until(/second\./)).join("\n")).toContain("read {");
    }
  },
);
