/** Owns: how sentences name a command, in Pi and in a shell. */

import { afterEach, describe, expect, test } from "vitest";
import {
  advice,
  asReason,
  behindName,
  type CommandWord,
  commandFor,
  nameCommandsFor,
  signInAdvice,
  withName,
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
    ["reconnect", "docs", "/mcp reconnect docs", "pi-mcp-threads list"],
    ["reconnect", undefined, "/mcp reconnect", "pi-mcp-threads list"],
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
  ["later", "try again later with /mcp reconnect.", "try again later."],
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

test.each([
  ["the command was not found.", "db: the command was not found."],
  ["db: the command was not found.", "db: the command was not found."],
  ["db exited with code 1.", "db exited with code 1."],
  ["db/query did not run.", "db/query did not run."],
  ["dbs are many.", "db: dbs are many."],
  ["", "db: "],
])("withName(db, %j) -> %j", (text, sentence) => {
  expect(withName("db", text)).toBe(sentence);
});

test.each([
  ["db: the command was not found.", "the command was not found."],
  ["db exited with code 1.", "it exited with code 1."],
  ["no answer", "no answer"],
  ["dbs are many", "dbs are many"],
])("asReason(db, %j) -> %j", (text, reason) => {
  expect(asReason("db", text)).toBe(reason);
});

test.each([
  ["printed a line", "db printed a line"],
  [
    "does not list its resources: db: resources/list failed",
    "db does not list its resources: resources/list failed",
  ],
  ["db: ping got no answer", "db: ping got no answer"],
  ["says db: yes", "db says db: yes"],
])("behindName(db, %j) -> %j", (text, note) => {
  expect(behindName("db", text)).toBe(note);
});
