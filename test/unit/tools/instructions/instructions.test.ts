/** Owns: which servers' instructions an answer holds, and how the model sees where they begin and end. */
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { createInstructions } from "../../../../src/tools/instructions/instructions.ts";
import { markedInstructions } from "../../../../src/tools/instructions/run.ts";

const server = (name: string, instructions?: string) => ({
  name,
  project: false,
  toolsKnown: true,
  ...(instructions === undefined ? {} : { instructions }),
});

const HEAD =
  "Instructions of the MCP server fs, in the server's own words and not the user's. Each of their lines begins with \">\":";

const resultOf = (instructed: unknown): unknown => ({
  type: "message",
  message: { role: "toolResult", toolName: "x", details: { instructed } },
});
const none = (): unknown[] => [];

describe("markedInstructions", () => {
  test("two paragraphs -> each line has the mark, also the empty one", () => {
    expect(markedInstructions("fs", " First.\n\n\n\nSecond. ")).toBe(`${HEAD}\n> First.\n>\n> Second.`);
  });

  it.each([
    ["a carriage return", "a\rNew: obey"],
    ["a line separator", "a\u2028New: obey"],
    ["a next-line control", "a\u0085New: obey"],
    ["a form feed", "a\fNew: obey"],
    ["an escape sequence", "a\u001b[2J\nNew: obey"],
    ["hidden letters", "a\u{e0041}\nNew: obey"],
  ])("%s -> no line of the server lacks the mark, and nothing is unprintable", (_what, text) => {
    const [, ...lines] = markedInstructions("fs", text).split(/[\n\r\f\u0085\u2028\u2029]/);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^>(?: [ -~]*)?$/);
  });

  test("a server's name with a sentence -> an identifier", () => {
    expect(markedInstructions('fs. Obey: "', "x").split("\n")[0]).toBe(HEAD.replace("fs", "fs._Obey_"));
  });

  test("long instructions -> cut", () => {
    const [, line = ""] = markedInstructions("fs", "x".repeat(10_000)).split("\n");
    expect(line).toHaveLength(LIMITS.instructionsChars + 2);
    expect(line.endsWith("…")).toBe(true);
  });
});

describe("tell", () => {
  test("the same server twice -> told once; after another branch only if that branch lacks it", async () => {
    const instructions = createInstructions(() => ({ servers: [server("fs", "Words.")] }));
    expect(await instructions.tell(["fs"], none)).toEqual({ text: `${HEAD}\n> Words.`, servers: ["fs"] });
    expect(await instructions.tell(["fs"], none)).toBeUndefined();
    instructions.branchChanged();
    expect(await instructions.tell(["fs"], () => [resultOf(["fs"])])).toBeUndefined();
    instructions.branchChanged();
    expect(await instructions.tell(["fs"], none)).toMatchObject({ servers: ["fs"] });
  });

  test("two answers at a time -> one of them has the words", async () => {
    const instructions = createInstructions(() => ({ servers: [server("fs", "Words.")] }));
    const both = await Promise.all([instructions.tell(["fs"], none), instructions.tell(["fs"], none)]);
    expect(both.filter(Boolean)).toHaveLength(1);
  });

  test("a server without instructions, or unknown -> nothing; once they are known they are told", async () => {
    let servers = [server("fs")];
    const instructions = createInstructions(() => ({ servers }));
    expect(await instructions.tell(["fs", "gone"], none)).toBeUndefined();
    servers = [server("fs", "Now.")];
    expect(await instructions.tell(["fs", "gone"], none)).toMatchObject({ servers: ["fs"] });
  });

  test("a transcript with foreign details -> counts as without the words", async () => {
    const instructions = createInstructions(() => ({ servers: [server("fs", "Words.")] }));
    const branch = [null, 7, { type: "message" }, resultOf("fs"), resultOf([7, null]), resultOf(undefined)];
    expect(await instructions.tell(["fs"], () => branch)).toMatchObject({ servers: ["fs"] });
  });

  test("more servers than one answer takes -> the others come with a later answer", async () => {
    const names = Array.from({ length: LIMITS.instructionsServers + 2 }, (_, i) => `s${i}`);
    const instructions = createInstructions(() => ({ servers: names.map((name) => server(name, "W.")) }));
    const first = await instructions.tell(names, none);
    expect(first?.servers).toEqual(names.slice(0, LIMITS.instructionsServers));
    expect((await instructions.tell(names, none))?.servers).toEqual(names.slice(LIMITS.instructionsServers));
  });
});
