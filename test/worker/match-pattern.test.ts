/**
 * Owns: regular expressions over the tools: they match on a thread of their own, which ends when one takes too long.
 */
import { afterEach, describe, expect, it, test } from "vitest";
import { createRpc } from "../../src/runtime/keep-worker.ts";
import { type RuntimeThread, startThread } from "../../src/runtime/thread.ts";
import type { Matches } from "../../src/shared/protocol/calls.ts";
import { createPatternMatcher } from "../../workers/connection/session/match-pattern.ts";
import { family } from "../support/long.ts";
import { builtWorker } from "./support.ts";

const TEXTS = [
  "",
  "a",
  "aaa",
  "abc",
  "list_issues",
  "github__create_issue",
  "Read a File.",
  "v2.10-beta",
  "a\nb",
  "天气 forecast",
  "[x] {2}",
  "é É ß",
];

/** This deadline ends hangs only; no test waits for it. */
const deadlineMs = 60_000;

const patterns = createPatternMatcher();
const match = (
  pattern: string,
  columns: readonly string[][],
  signal = new AbortController().signal,
): Promise<Matches> =>
  patterns.match({ pattern, columns: columns.map((texts) => texts.join("\u0000")) }, signal);

describe("matches the same rows as a case-insensitive RegExp", () => {
  it.each([
    "",
    "A",
    "^a$",
    "(a|b)c",
    "a{1,2}$",
    "create|delete",
    "^github__.*issue$",
    "[a-c]{3}",
    "\\bfile\\b",
    "\\d+\\.\\d+",
    "a.b",
    "气",
    "É",
    "x{,3}",
    "list\\-x|\\_issues",
    "(?<name>a)b",
    "(a)\\1\\1",
    "(?<!_)create",
    "\\p{Script=Han}",
    "((a+)+)+$",
  ])("%j", async (source) => {
    const expression = new RegExp(source, source.includes("\\p{") ? "iu" : "i");
    const rows = TEXTS.flatMap((text, row) => (expression.test(text) ? [row] : []));
    expect(await match(source, [TEXTS])).toEqual({ rows });
  });

  test("several columns -> a row matches if one of its columns does", async () => {
    const columns = [
      ["fs__read", "fs__write"],
      ["read", "write"],
      ["Reads.", "Writes to a read-only file."],
    ];
    expect(await match("^read", columns)).toEqual({ rows: [0] });
    expect(await match("read", columns)).toEqual({ rows: [0, 1] });
    expect(await match("write.*read", columns)).toEqual({ rows: [1] });
    expect(await match("read$", columns)).toEqual({ rows: [0] });
  });
});

/** V8 refuses some patterns before the time limit, because their code is too large or its stack too deep. */
const TOO_MUCH = /^it (took longer than 200 ms|could not be tried: .*(too large|call stack size exceeded))/;

describe("refuses a pattern, with the reason and the place", () => {
  it.each([
    ["(a", 'Unterminated group at character 1: "("'],
    ["a)b", "Unmatched ')' at character 2: \"a)\""],
    ["x[z-a]y", 'Range out of order in character class at character 5: "x[z-a"'],
    ["*a", 'Nothing to repeat at character 1: "*"'],
    ["ab(c|d)a{3,2}", 'numbers out of order in {} quantifier at character 13: "ab(c|d)a{3,2}"'],
  ])("%j", async (source, problem) => {
    expect(await match(source, [TEXTS])).toEqual({ problem });
  });

  test("more than 500 characters -> refused", async () => {
    expect(await match("a".repeat(501), [TEXTS])).toEqual({ problem: "it is longer than 500 characters" });
  });

  it.each([
    ...family([
      ["^(([a-z])+.)+$", `${"a".repeat(60)}\n`],
      ["(a|a)*b", "a".repeat(60)],
      ["(a*)*b", "a".repeat(60)],
      ["(x+x+)+y", "x".repeat(60)],
    ]),
    // V8 refuses this one itself.
    ["((((((a?){50}){50}){50}){50}){50})\\x01", "b".repeat(250)],
  ])("%j, for which an engine needs years -> refused with the reason", async (source, text) => {
    expect(await match(source, [[text]])).toEqual({
      problem: expect.stringMatching(TOO_MUCH),
    });
    // The next pattern gets a new thread.
    expect(await match("^b$", [["a", "b"]])).toEqual({ rows: [1] });
  });

  test("a search is cancelled -> answered at once, the thread ends", async () => {
    const controller = new AbortController();
    const slow = match("(a|a)*b", [["a".repeat(60)]], controller.signal);
    controller.abort();
    expect(await slow).toEqual({ problem: "the search was cancelled" });
    expect(await match("a", [["a"]], controller.signal)).toEqual({ problem: "the search was cancelled" });
  });
});

describe("in the connection worker", () => {
  const threads: RuntimeThread[] = [];
  afterEach(async () => {
    for (const thread of threads.splice(0)) {
      await thread.terminate();
      await thread.exited;
    }
  });

  test("two patterns that never end at once -> the worker answers a ping before all of them", async () => {
    const thread = startThread({
      logFile: "/dev/null",
      url: builtWorker,
      onEvent: () => undefined,
    });
    threads.push(thread);
    const rpc = createRpc(thread);
    const done: string[] = [];
    const slow = Array.from({ length: 2 }, () =>
      rpc
        .request("matchTools", { pattern: "(a|a)*b", columns: ["a".repeat(60)] }, { deadlineMs })
        .then((matches) => {
          done.push("pattern");
          return matches;
        }),
    );
    await rpc.request("ping", {}, { deadlineMs });
    done.push("ping");
    for (const matches of await Promise.all(slow)) {
      expect(matches).toEqual({ problem: expect.stringContaining("it took longer than 200 ms") });
    }
    expect(done).toEqual(["ping", "pattern", "pattern"]);
  });
});
