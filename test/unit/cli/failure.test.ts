/** Owns: sentences of the worker in the words of the command line. */
import { expect, test } from "vitest";
import { inWordsHere } from "../../../src/cli/console/failure.ts";

test.each([
  [
    "/mcp trust shows what would run and asks.",
    "A command that names the server, in a terminal, shows what would run and asks.",
  ],
  ["/mcp trust asks again about servers.", "run the command in a terminal to be asked."],
  ["/mcp doctor once more in a moment.", "pi-mcp-threads doctor once more in a moment."],
  ["/mcp add, or write it.", "pi-mcp-threads add, or write it."],
  ["Correct it (/mcp enable x).", "Correct it (pi-mcp-threads enable x)."],
  ["https://example.com/mcp says: no", "https://example.com/mcp says: no"],
  ["http://[::1]/mcp tools failed", "http://[::1]/mcp tools failed"],
])("%s -> %s", (text, expected) => {
  expect(inWordsHere(text)).toBe(expected);
});
