/** Owns: what the command's console makes of its terminal. */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { createConsole } from "../../../src/cli/console/console.ts";

function consoleOn(columns: number | undefined) {
  const size = columns === undefined ? {} : { columns };
  const stdout = Object.assign(new PassThrough(), { isTTY: true, ...size });
  const stderr = Object.assign(new PassThrough(), { isTTY: true, ...size });
  const rest = { json: false, quiet: false, noColor: true };
  const console = createConsole({ stdin: new PassThrough(), stdout, stderr, env: {}, ...rest });
  return { console, stderr };
}

test.each([
  [undefined, 80],
  [0, 80],
  [40, 40],
])("a terminal of %s columns -> lines of %d", (columns, expected) => {
  const { console, stderr } = consoleOn(columns);
  expect(console.columns).toBe(expected);
  console.progress("x".repeat(100));
  expect(String(stderr.read())).toHaveLength(expected - 1);
});

test("a text with a newline on stderr -> its further lines are indented, so that none passes for a line of ours", () => {
  const { console, stderr } = consoleOn(80);
  console.warn("docs: no such file\npi-mcp-threads: all is well\r\nRun this: x");
  console.note("one\ntwo");
  expect(String(stderr.read())).toBe(
    "docs: no such file\n  pi-mcp-threads: all is well\n  Run this: x\none\n  two\n",
  );
});
