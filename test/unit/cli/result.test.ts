/** Owns: a server's result on stdout and stderr, block by block, as text and as JSON. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { printResult } from "../../../src/cli/commands/call.ts";
import type { CallResult } from "../../../src/shared/protocol/calls.ts";
import { tempFolder } from "../temp-folder.ts";
import { captureConsole } from "./captured-console.ts";

afterEach(() => vi.unstubAllEnvs());

/** The answer of the worker to a result that the server sent. */
const answer = (sent: object): CallResult => ({
  content: [{ type: "text", text: "what the model reads" }],
  isError: false,
  durationMs: 1,
  scriptResult: new TextEncoder().encode(JSON.stringify(sent)),
});
const PNG = { type: "image", mimeType: "image/png", data: Buffer.from("\u0089PNG").toString("base64") };
const URI = "demo://a.md";

test("texts follow each other, each on lines of its own; a resource gives its text, a link its address", async () => {
  const content = [
    { type: "text", text: "one\n" },
    { type: "resource", resource: { uri: URI, text: "# Two" } },
    { type: "resource_link", name: "three", uri: URI },
  ];
  const { console, stdout, stderr } = captureConsole();
  await printResult(answer({ content, structuredContent: { four: 4 } }), console);
  expect(stdout()).toBe(`one\n# Two\nthree: ${URI}\n`);
  expect(stderr()).toBe("");
});

test("no text -> the structured content", async () => {
  const { console, stdout } = captureConsole();
  await printResult(answer({ content: [], structuredContent: { four: 4 } }), console);
  expect(JSON.parse(stdout())).toEqual({ four: 4 });
});

test("JSON -> one document, as the server sent it, and nothing is saved", async () => {
  const sent = {
    content: [{ type: "resource", resource: { uri: URI, mimeType: "text/markdown", text: "# Two" } }, PNG],
    structuredContent: { four: 4 },
    isError: true,
  };
  const { console, stdout, stderr } = captureConsole({ json: true });
  await printResult(answer(sent), console);
  expect(JSON.parse(stdout())).toEqual(sent);
  expect(stderr()).toBe("");
});

test("an image -> saved with its ending, and stderr names it", async () => {
  vi.stubEnv("TMPDIR", await tempFolder());
  const { console, stdout, stderr } = captureConsole();
  await printResult(answer({ content: [PNG, { type: "text", text: "a picture" }] }), console);
  const path = /^image \(image\/png, [\d.]+ K?B(?:ytes)?\): (\S+\.png)$/m.exec(stderr())?.[1] ?? "";
  expect((await readFile(path)).toString("base64")).toBe(PNG.data);
  expect(stdout()).toBe("a picture\n");
  await rm(dirname(path), { recursive: true });
});

test("an image that cannot be saved -> stderr says why, the texts are printed, and code 73", async () => {
  const file = join(await tempFolder(), "file");
  await writeFile(file, "");
  vi.stubEnv("TMPDIR", join(file, "below"));
  const { console, stdout, stderr } = captureConsole();
  const printed = printResult(answer({ content: [PNG, { type: "text", text: "a picture" }] }), console);
  await expect(printed).rejects.toMatchObject({
    exitCode: 73,
    message: "1 file of the result could not be saved.",
    remedy: "--json prints all of a result.",
  });
  expect(stdout()).toBe("a picture\n");
  expect(stderr()).toMatch(/^image \(image\/png, .*\) could not be saved: ENOTDIR/);
});
