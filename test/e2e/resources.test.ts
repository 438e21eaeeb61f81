/**
 * Owns: resources that a person hands to the model in the real Pi with a real server: in print mode, and in a real
 * terminal with completion.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { hasTmux } from "../support/has-program.ts";
import { type ModelRequest, messageText } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { openTerminal } from "../support/terminal.ts";
import { ENTRY, home, model, onCleanup, readLog, SERVERS } from "./support.ts";

/** Pi waits a moment before it asks for suggestions, and the worker has its time. */
const SUGGESTED_MS = 500;
const mcp = { mcpServers: { everything: SERVERS.everything } };

const lastOfUser = (request: ModelRequest | undefined): string => {
  const message = request?.messages.findLast(({ role }) => role === "user");
  return message ? messageText(message) : "";
};

test("pi -p without a snapshot -> the model gets the resource with the message, and is told of one that is missing", async () => {
  const scripted = await model([{ text: "read." }]);
  const prompt = "Compare @everything:demo://resource/dynamic/text/7 and @everything:demo://nothing, please.";
  const run = await runPrint({ home: await home({ mcp }), model: scripted, extensions: ENTRY, prompt });
  expect(run).toMatchObject({ code: 0, stdout: "read.\n" });
  expect(run.stderr).toMatch(/^@everything:demo:\/\/nothing could not be read: /);
  const text = lastOfUser(scripted.requests[0]);
  expect(text.startsWith(`${prompt}\n\n[@everything:demo://resource/dynamic/text/7]\n\n[Resource: `)).toBe(
    true,
  );
  expect(text).toContain("Resource 7: This is a plaintext resource");
  expect(text).toContain("[@everything:demo://nothing could not be read: ");
});

test.runIf(hasTmux())(
  "a terminal of 60 columns, then of 120 -> a resource is found behind an @, put in, and handed over; /mcp resources lists it",
  { tags: "thorough" },
  async () => {
    const at = await home({ mcp });
    const scripted = await model(() => ({ text: "answered." }));
    const terminal = await openTerminal({ home: at, model: scripted, extension: ENTRY, columns: 60 });
    onCleanup(() => terminal.close());
    for (const columns of [60, 120]) {
      if (columns !== 60) await terminal.startAnew(columns);
      await terminal.until(/MCP: .*1 server ready · /);
      // A worker that is slow to answer leaves the list away, until the next key.
      for (;;) {
        await terminal.type("explain @archit");
        await terminal.until(/explain @archit/);
        await sleep(SUGGESTED_MS);
        if (/→ \S*architecture\.md/.test((await terminal.screen()).join("\n"))) break;
        await terminal.press("C-u");
      }
      await terminal.press("Tab");
      await terminal.until(/@everything:demo:\S*architecture\.md/);
      await terminal.press("Enter");
      await terminal.until(/^ answered\./m);
      expect(lastOfUser(scripted.requests.at(-1))).toMatch(
        /^explain @everything:demo:\/\/resource\/static\/document\/architecture\.md ?\n\n\[@everything:/,
      );
      await terminal.prompt("/mcp resources everything ");
      // The first Enter may only accept a completion; a second Enter on an empty line does nothing.
      await terminal.press("Enter");
      await terminal.until(/Write such an @ into a message/);
      expect(await readLog(at)).not.toContain("internal");
    }
  },
);
