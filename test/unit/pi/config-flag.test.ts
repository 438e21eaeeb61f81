/** Owns: which configuration file the command line names; the command line is read as Pi reads it. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { configFileOf, flagOnCommandLine } from "../../../src/pi/config-flag.ts";

it.each<[string[], string | undefined]>([
  [[], undefined],
  [["-p", "go"], undefined],
  [["--mcp-config", "a.json", "-p"], "a.json"],
  [["--mcp-config=a.json"], "a.json"],
  [["--mcp-config=a=b.json"], "a=b.json"],
  [["--mcp-config", "a.json", "--mcp-config=b.json"], "b.json"],
  [["--mcp-config"], undefined],
  [["--mcp-config", "-p"], undefined],
  [["--mcp-config", "@file"], undefined],
  [["--mcp-configs", "a.json"], undefined],
])("%j -> %s", (argv, expected) => {
  expect(flagOnCommandLine(argv)).toBe(expected);
});

it.each<[unknown, string | undefined]>([
  [undefined, undefined],
  ["", undefined],
  [true, undefined],
  ["a.json", resolve("/work/a.json")],
  ["/b/a.json", resolve("/b/a.json")],
  ["~/a.json", join(homedir(), "a.json")],
  ["~", homedir()],
  ["~a.json", resolve("/work/~a.json")],
])("configFileOf(%j) -> %s", (flag, expected) => {
  expect(configFileOf(flag, "/work")).toBe(expected);
});
