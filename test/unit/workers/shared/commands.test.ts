/** Owns: how sentences name a command, in Pi and in a shell. */
import { afterEach, describe, expect, test } from "vitest";
import {
  advice,
  type CommandWord,
  commandFor,
  nameCommandsFor,
  signInAdvice,
} from "../../../../workers/shared/commands.ts";

afterEach(() => {
  nameCommandsFor("pi");
});

describe("commandFor", () => {
  test.each<[CommandWord, string | undefined, inPi: string, inShell: string]>([
    ["add", undefined, "/mcp add", "pi-mcp-threads add"],
    ["import", undefined, "/mcp import", "pi-mcp-threads import"],
    ["enable", "docs", "/mcp enable docs", "pi-mcp-threads enable docs"],
    ["disable", "docs", "/mcp disable docs", "pi-mcp-threads disable docs"],
    ["doctor", undefined, "/mcp doctor", "pi-mcp-threads doctor"],
    ["auth", "docs", "/mcp auth docs", "pi-mcp-threads login docs"],
    ["auth", undefined, "/mcp auth", "pi-mcp-threads login"],
    ["reconnect", "docs", "/mcp reconnect docs", "pi-mcp-threads list --refresh"],
    ["reconnect", undefined, "/mcp reconnect", "pi-mcp-threads list --refresh"],
  ])("%s %s -> %s, %s", (word, server, inPi, inShell) => {
    expect(commandFor(word, server)).toBe(inPi);
    nameCommandsFor("shell");
    expect(commandFor(word, server)).toBe(inShell);
  });
});

test.each([
  ["lists", "/mcp lists the servers.", "pi-mcp-threads list shows the servers."],
  ["edit", "/mcp edit opens your file.", "Correct your file."],
  ["search", "Search again with ToolSearch.", "pi-mcp-threads search finds tools."],
  ["askAgain", "/mcp trust asks again", "run the command in a terminal to be asked"],
] as const)("advice: %s -> %s, %s", (about, inPi, inShell) => {
  expect(advice(about)).toBe(inPi);
  nameCommandsFor("shell");
  expect(advice(about)).toBe(inShell);
});

test("signInAdvice -> where the command belongs is said in Pi", () => {
  expect(signInAdvice("docs")).toBe("Run /mcp auth docs in Pi.");
  nameCommandsFor("shell");
  expect(signInAdvice("docs")).toBe("Run pi-mcp-threads login docs.");
});
