/**
 * Owns: prompts as commands in the real Pi with a real server: over RPC, in print mode with and without a snapshot, and
 * in a real terminal with completion.
 */
import { expect, test } from "vitest";
import { hasTmux } from "../support/has-program.ts";
import { type ModelRequest, messageText } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { extensionErrors, notices, toDialog } from "../support/rpc-events.ts";
import { openTerminal } from "../support/terminal.ts";
import { inTurn } from "./in-turn.ts";
import { PATIENCE_MS } from "./rpc-support.ts";
import { ENTRY, fixtureServer, home, model, onCleanup, readLog, SERVERS } from "./support.ts";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const drawing = fixtureServer("prompts.mjs", {
  PROMPTS: JSON.stringify([{ name: "draw" }]),
  MESSAGES: JSON.stringify({
    draw: [
      { role: "user", content: { type: "text", text: "/What is this?" } },
      { role: "user", content: { type: "image", data: PIXEL, mimeType: "image/png" } },
    ],
  }),
});
// The library with which Pi resizes images is optional and not installed here.
const settings = { images: { autoResize: false } };
const MCP = { mcpServers: { everything: SERVERS.everything, drawing } };

const lastOfUser = (request: ModelRequest | undefined): string => {
  const message = request?.messages.findLast(({ role }) => role === "user");
  return message ? messageText(message) : "";
};

test("pi -p, first without a snapshot, then with one -> the run waits for the answer to each prompt", async () => {
  const at = await home({ mcp: MCP, settings });
  const weather = (city: string): string => `/mcp__everything__args-prompt ${city} state="two words"`;
  const cold = await model([{ text: "sunny in Paris" }]);
  const run = await runPrint({ home: at, model: cold, extensions: ENTRY, prompt: weather("Paris") });
  expect(run).toMatchObject({ code: 0, stdout: "sunny in Paris\n", stderr: "" });
  expect(cold.requests.map(lastOfUser)).toEqual(["What's weather in Paris, two words?"]);

  const warm = await model([{ text: "sunny in Oslo" }, { text: "a pixel" }]);
  const next = await runPrint({
    home: at,
    model: warm,
    extensions: ENTRY,
    // Pi takes one message after the other. It prints the answer to the last one.
    args: [weather("Oslo"), "/mcp__everything__args-prompt", "/mcp__everything__no"],
    prompt: "/mcp__drawing__draw",
  });
  // Two of the four messages could not be used.
  expect(next).toMatchObject({ code: 2, stdout: "a pixel\n" });
  expect(next.stderr).toBe(
    "/mcp__everything__args-prompt: the argument city is missing. Usage: city=… [state=…]\n" +
      "/mcp__everything__no: no server offers this prompt.\n",
  );
  expect(warm.requests.map(lastOfUser)).toEqual([
    "What's weather in Oslo, two words?",
    expect.stringContaining("/What is this?"),
  ]);
  expect(JSON.stringify(warm.requests[1]?.messages)).toContain(`data:image/png;base64,${PIXEL.slice(0, 40)}`);
});

test("RPC -> the commands are listed; values, a question for a missing one, an image", async () => {
  const pi = await inTurn()({ mcp: MCP, settings });
  // The first session learns the prompts.
  await pi.rpc.request({ type: "prompt", message: "/mcp__drawing__draw" });
  await pi.rpc.waitFor(({ type: kind }) => kind === "agent_settled", PATIENCE_MS);
  await pi.again();
  const { rpc, scripted } = pi;
  const listed = JSON.stringify(await rpc.request({ type: "get_commands" }));
  expect(listed).toContain('"mcp__everything__args-prompt"');
  expect(listed).toContain("A prompt with two arguments, one required and one optional");
  expect(listed).toContain('"mcp__drawing__draw"');

  const type = async (message: string): Promise<number> => {
    const since = rpc.events.length;
    await rpc.request({ type: "prompt", message });
    return since;
  };
  const ended = (since: number) =>
    rpc.waitFor(({ type: kind }) => kind === "agent_settled", PATIENCE_MS, since);
  await ended(await type("/mcp__everything__args-prompt city=Rome"));
  expect(lastOfUser(scripted.requests.at(-1))).toBe("What's weather in Rome?");

  const since = rpc.events.length;
  const running = rpc.request({ type: "prompt", message: "/mcp__everything__args-prompt" });
  const dialog = toDialog(await rpc.waitFor((event) => toDialog(event) !== undefined, PATIENCE_MS, since));
  expect(dialog).toMatchObject({ title: "everything asks for city: Name of the city" });
  rpc.send({ type: "extension_ui_response", id: dialog?.id, value: "Bern" });
  await running;
  await ended(since);
  expect(lastOfUser(scripted.requests.at(-1))).toBe("What's weather in Bern?");

  await ended(await type("/mcp__drawing__draw"));
  expect(JSON.stringify(scripted.requests.at(-1)?.messages)).toContain(
    `data:image/png;base64,${PIXEL.slice(0, 40)}`,
  );
  const before = scripted.requests.length;
  const [told] = notices(await rpc.command("/mcp__drawing__draw too much", PATIENCE_MS));
  expect(told?.message).toBe("/mcp__drawing__draw: the prompt takes no arguments.");
  expect(scripted.requests).toHaveLength(before);
  expect(extensionErrors(rpc.events)).toEqual([]);
});

test.runIf(hasTmux())(
  "a terminal of 60 columns, then of 120 -> commands, arguments and values are completed",
  { tags: "thorough" },
  async () => {
    // The second session knows the prompts, but only a connected server completes values.
    const eager = { lifecycle: "eager" };
    const mcpServers = { everything: { ...SERVERS.everything, ...eager }, drawing: { ...drawing, ...eager } };
    const at = await home({ mcp: { mcpServers }, settings });
    const scripted = await model(() => ({ text: "answered." }));
    const terminal = await openTerminal({ home: at, model: scripted, extension: ENTRY, columns: 60 });
    onCleanup(() => terminal.close());
    for (const columns of [60, 120]) {
      if (columns !== 60) await terminal.startAnew(columns);
      await terminal.until(/MCP: 2 servers ready/);
      // Without a snapshot the commands come a moment after the servers.
      for (;;) {
        await terminal.type("/mcp__every");
        await terminal.until(/\/mcp__every/);
        if (/mcp__everything__compl/.test((await terminal.screen()).join("\n"))) break;
        await terminal.press("C-u");
      }
      await terminal.press("C-u");
      await terminal.type("/mcp__everything__completable-prompt ");
      await terminal.until(/department=/);
      await terminal.type("department=S");
      await terminal.until(/Support/);
      await terminal.type("upport name=");
      await terminal.until(/Kim/);
      await terminal.type("Kim ");
      // While Pi still shows the list of before, Enter would choose from it.
      await terminal.until(/^(?![\s\S]*John)[\s\S]*Kim/);
      await terminal.press("Enter");
      await terminal.until(/^ answered\./m);
      expect(lastOfUser(scripted.requests.at(-1))).toBe(
        "Please promote Kim to the head of the Support team.",
      );
      expect(await readLog(at)).not.toContain("internal");
    }
  },
);
