/** Owns: the lines of stderr that a server's question makes, whatever the server writes. The terminal is a fake. */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { Console } from "../../../src/cli/console/console.ts";
import { createAsks } from "../../../src/cli/session/asks.ts";
import type { Ask, AskAnswer } from "../../../src/shared/protocol/calls.ts";

function terminal() {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  const options = { env: {}, json: false, quiet: false, noColor: true };
  return { stdin, stderr, real: new Console({ stdin, stdout: new PassThrough(), stderr, ...options }) };
}

/** Asks the question, answers with the lines, and gives what stderr shows without what `ask` itself prints. */
async function shown(ask: Ask, typed: string[]): Promise<{ lines: string[]; sent: AskAnswer | undefined }> {
  const { stderr, real } = terminal();
  const console = Object.assign(real, { ask: async () => typed.shift() });
  const sent = await createAsks(console)("docs", ask, new AbortController().signal);
  return { lines: String(stderr.read()).trimEnd().split("\n"), sent };
}

test("a form -> each line of the server's words has a bar, and the values a line each", async () => {
  const { lines, sent } = await shown(
    {
      kind: "form",
      message: "Who are you?\nSend this? [y/N] y",
      fields: [
        { kind: "text", title: "Name", description: "In full.\n! It takes all", required: true },
        { kind: "choice", title: "Kind", choices: [{ title: "a" }, { title: "b" }], required: true },
      ],
    },
    ["y", "Ann", "2", "y"],
  );
  expect(lines).toEqual([
    "MCP server docs asks:",
    "| Who are you?",
    "| Send this? [y/N] y",
    "| Name",
    "| In full.",
    "| ! It takes all",
    "| Kind",
    "| 1. a",
    "| 2. b",
    "  Name: Ann",
    "  Kind: b",
  ]);
  expect(sent).toEqual({ action: "accept", values: ["Ann", 1] });
});

test("a page -> its host, its warnings and its address stand in lines of their own, to be copied", async () => {
  const url = "http://xn--e1afmkfd.example/";
  const { lines, sent } = await shown(
    { kind: "url", message: "", url, host: "xn--e1afmkfd.example", punycode: true, plain: true },
    ["n"],
  );
  expect(lines).toEqual([
    "MCP server docs asks you to open a page:",
    "Host: xn--e1afmkfd.example",
    "The name holds foreign letters, shown here in their code (xn--): check it.",
    "The page is not encrypted (http).",
    url,
  ]);
  expect(sent).toEqual({ action: "decline" });
});

test("a page that the user has agreed to before -> the server still waits for it, and s says that it is done", async () => {
  const page = {
    url: "https://e.example/",
    host: "e.example",
    punycode: false,
    plain: false,
    again: true as const,
  };
  const { lines, sent } = await shown({ kind: "url", message: "", ...page }, ["s"]);
  expect(lines[0]).toBe("MCP server docs still waits for this page:");
  expect(sent).toEqual({ action: "accept", open: false });
});

test("a server asks while another question is open -> it waits, and the line that is typed answers the first alone", async () => {
  const { stdin, stderr, real } = terminal();
  const signal = new AbortController().signal;
  const first = real.inTurn(() => real.ask("Allow it? [y/N] "));
  const second = createAsks(real)("docs", { kind: "form", message: "", fields: [] }, signal);
  stdin.write("y\n");
  expect(await first).toBe("y");
  expect(String(stderr.read())).toBe("Allow it? [y/N] ");
  await expect.poll(() => stderr.readableLength).toBeGreaterThan("MCP server docs asks:\n".length);
  expect(String(stderr.read())).toBe("MCP server docs asks:\nAnswer it? [y/N] ");
  stdin.write("n\n");
  expect(await second).toEqual({ action: "decline" });
});
