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
