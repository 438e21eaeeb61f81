/**
 * Owns: a prompt of a server for the model in a real terminal, small and wide: what a person reads, the pages of a long one, the
 * answer that is read before the server gets it.
 * @module-tag thorough
 */
import { expect, test } from "vitest";
import { openTerminal } from "../support/terminal.ts";
import { call, ENTRY, fixtureServer, home, model, onCleanup } from "./support.ts";

const user = (text: string): object => ({ role: "user", content: { type: "text", text } });
const LINES = Array.from({ length: 60 }, (_, at) => `Fact ${at + 1} of the page.`);
const SHORT = { systemPrompt: "You are terse.", messages: [user("Colour of the sky?")], maxTokens: 20 };
const LONG = { messages: [user(`Sum this up:\n${LINES.join("\n")}`)], maxTokens: 100_000 };

test.each([
  [80, 24],
  [120, 40],
])(
  "%i columns, %i rows -> the whole prompt can be read, and the answer before it is given",
  async (columns, rows) => {
    const entry = { ...fixtureServer("asks-user.mjs"), directTools: true, sampling: true };
    const ask = (prompt: object) => call("q__ask", { ask: prompt, method: "sampling/createMessage" });
    const terminal = await openTerminal({
      home: await home({ mcp: { mcpServers: { q: entry } } }),
      model: await model([ask(SHORT), { text: "Blue." }, { text: "done." }, ask(LONG), { text: "refused." }]),
      extension: ENTRY,
      columns,
      rows,
    });
    onCleanup(() => terminal.close());

    await terminal.prompt("ask");
    const first = (await terminal.untilRead(/→ Send it\n/)).join("\n");
    expect(first).toMatch(
      /Send this of the MCP server q to \S+\/\S+\?\s+The answer has at most 20\s+tokens\./,
    );
    expect(first).toMatch(/System prompt:\n\s*│ You are terse\.\n\s*User:\n\s*│ Colour of the sky\?/);
    await terminal.press("Down");
    await terminal.press("Enter");
    const reply = (await terminal.untilRead(/→ Give it to the server/)).join("\n");
    expect(reply).toMatch(/Give this answer to the MCP server q\?\n[\s\S]*│ Blue\./);
    await terminal.press("Enter");
    await terminal.until(/^ done\./m);

    await terminal.prompt("ask more");
    const short = (await terminal.untilRead(/Show all of it/)).join("\n");
    expect(short).toMatch(/The answer has at most 1,000\s+tokens\./);
    for (let down = 0; down < 3; down++) await terminal.press("Down");
    await terminal.press("Enter");
    const seen: string[] = [];
    for (let page = 1; ; page++) {
      const screen = (
        await terminal.until(new RegExp(`Page ${page} of \\d+:[\\s\\S]*→ [\\s\\S]*navigate`))
      ).join("\n");
      seen.push(screen);
      if (screen.includes(`Page ${page} of ${page}:`)) break;
      await terminal.press("Enter");
    }
    for (const line of LINES) expect(seen.join("\n")).toContain(`│ ${line}`);
    // Enter on the last page is meant for the page before: it sends nothing.
    expect(seen.at(-1)).toMatch(/→ No\n/);
    await terminal.press("Enter");
    await terminal.until(/^ refused\./m);
  },
);
