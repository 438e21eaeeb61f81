/**
 * Owns: prompts as commands in the real Pi with a real server: over RPC, in print mode with and without a snapshot, and
 * in a real terminal with completion.
 */
import { expect, test } from "vitest";
import { type ModelRequest, messageText } from "../support/model.ts";
import { runPrint, startRpc } from "../support/pi-run.ts";
import { extensionErrors, notices, toDialog } from "../support/rpc-events.ts";
import { openTerminal } from "../support/terminal.ts";
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

test("pi -p, first without a snapshot, then with one -> the run waits for the answer to the prompt", async () => {
  const at = await home({ mcp: MCP, settings });
  for (const city of ["Paris", "Oslo"]) {
    const scripted = await model([{ text: `sunny in ${city}` }]);
    const prompt = `/mcp__everything__args-prompt ${city} state="two words"`;
    const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt });
    expect(run).toMatchObject({ code: 0, stdout: `sunny in ${city}\n`, stderr: "" });
    expect(scripted.requests.map(lastOfUser)).toEqual([`What's weather in ${city}, two words?`]);
  }
  const scripted = await model([{ text: "a pixel" }]);
  const drawn = await runPrint({
    home: at,
    model: scripted,
    extensions: ENTRY,
    prompt: "/mcp__drawing__draw",
  });
  expect(drawn.stdout).toBe("a pixel\n");
  expect(JSON.stringify(scripted.requests[0]?.messages)).toContain(
    `data:image/png;base64,${PIXEL.slice(0, 40)}`,
  );
  expect(lastOfUser(scripted.requests[0])).toContain("/What is this?");

  const silent = await model([]);
  const missing = await runPrint({
    home: at,
    model: silent,
    extensions: ENTRY,
    prompt: "/mcp__everything__args-prompt",
  });
  expect(missing.stderr).toBe(
    "/mcp__everything__args-prompt: the argument city is missing. Usage: city=… [state=…]\n",
  );
  const unknown = await runPrint({
    home: at,
    model: silent,
    extensions: ENTRY,
    prompt: "/mcp__everything__no",
  });
  expect(unknown.stderr).toBe("/mcp__everything__no: no server offers this prompt.\n");
  expect(silent.requests).toEqual([]);
});

test("RPC -> the commands are listed; values, a question for a missing one, an image", async () => {
  const at = await home({ mcp: MCP, settings });
  // The first start learns the prompts.
  await runPrint({
    home: at,
    model: await model([{ text: "ok" }]),
    extensions: ENTRY,
    prompt: "/mcp__drawing__draw",
  });
  const scripted = await model(() => ({ text: "done" }));
  const rpc = await startRpc({ home: at, model: scripted, extensions: ENTRY });
  onCleanup(() => rpc.stop());
  await rpc.ready(PATIENCE_MS);
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

test.each([60, 120])(
  "a terminal of %i columns -> commands, arguments and values are completed",
  async (columns) => {
    const at = await home({ mcp: MCP, settings });
    const scripted = await model(() => ({ text: "answered." }));
    const terminal = await openTerminal({ home: at, model: scripted, extension: ENTRY, columns });
    onCleanup(() => terminal.close());
    await terminal.until(/MCP 2\/2/);
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
    await terminal.press("Enter");
    await terminal.until(/^ answered\./m);
    expect(lastOfUser(scripted.requests.at(-1))).toBe("Please promote Kim to the head of the Support team.");
    expect(await readLog(at)).not.toContain("internal");
  },
);
