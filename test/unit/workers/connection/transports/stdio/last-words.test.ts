import { expect, test } from "vitest";
import {
  lastWords,
  withLastWords,
} from "../../../../../../workers/connection/transports/stdio/last-words.ts";

const NODE_STACK = `Using transport strategy: http-first
node:internal/process/promises:394
      triggerUncaughtException(err, true /* fromPromise */);
      ^

TypeError: fetch failed
    at node:internal/deps/undici/undici:14900:13
    at async run (file:///x/cli.js:1:2) {
  [cause]: Error: getaddrinfo ENOTFOUND nowhere.invalid
      at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:122:26) {
    errno: -3008,
    code: 'ENOTFOUND',
    syscall: 'getaddrinfo',
    hostname: 'nowhere.invalid'
  }
}

Node.js v22.19.0
`;

const PYTHON_STACK = `Traceback (most recent call last):
  File "/x/server.py", line 3, in <module>
    main()
  File "/x/server.py", line 1, in main
    raise KeyError("API_KEY")
KeyError: 'API_KEY'
`;

test.each([
  ["nothing", "", { text: "", isAll: true }],
  ["one line", "no licence\n", { text: "no licence.", isAll: true }],
  ["a sentence", "Set API_KEY!\r\n", { text: "Set API_KEY!", isAll: true }],
  ["more lines than a person reads", "a\nb\nc\nd\ne\n", { text: "c\nd\ne.", isAll: false }],
  ["only braces", "{\n}\n", { text: "{\n}.", isAll: true }],
])("%s -> the last lines, ended as a sentence is", (_name, output, expected) => {
  expect(lastWords(output)).toEqual(expected);
});

test("a stack -> the causes, which stand before its frames and fields, and never its beginning", () => {
  expect(lastWords(NODE_STACK)).toEqual({
    text: "      triggerUncaughtException(err, true /* fromPromise */);\nTypeError: fetch failed\n  [cause]: Error: getaddrinfo ENOTFOUND nowhere.invalid.",
    isAll: false,
  });
  expect(lastWords(PYTHON_STACK).text).toBe(
    "    main()\n    raise KeyError(\"API_KEY\")\nKeyError: 'API_KEY'.",
  );
});

test("what npm writes of itself -> not in the place of its error", () => {
  const output = [
    "npm error could not determine executable to run",
    "npm notice",
    "npm notice New major version of npm available! 11.19.1 -> 12.2.1",
    "npm notice To update run: npm install -g npm@12.2.1",
    "npm notice",
    "npm error A complete log of this run can be found in: /home/me/.npm/_logs/1-debug-0.log",
  ].join("\n");
  expect(lastWords(output)).toEqual({
    text: "npm error could not determine executable to run.",
    isAll: false,
  });
});

test("a line without an end -> cut; what is left out is said", () => {
  const { text, isAll } = lastWords("x".repeat(10_000));
  expect([text.length, isAll]).toEqual([301, false]);
  expect(withLastWords("It ended.", "a\nb\nc\nd")).toBe(
    "It ended. Its last words (mcp-threads.log has all):\nb\nc\nd.",
  );
  expect(withLastWords("It ended.", "a")).toBe("It ended. It wrote:\na.");
  expect(withLastWords("It ended.", " \n")).toBe("It ended.");
});
