/** Owns: how the text behind a prompt's command is read. */
import { expect, test } from "vitest";
import type { SnapshotPrompt } from "../../../../src/shared/snapshot/contract.ts";
import { readArguments, usageOf, wordsOf, wrongWords } from "../../../../src/ui/prompts/use-prompt.ts";

const PROMPT: SnapshotPrompt = {
  command: "mcp__s__p",
  prompt: "p",
  arguments: [{ name: "topic", required: true }, { name: "style" }, { name: "__proto__" }],
};
const TWO: SnapshotPrompt = { ...PROMPT, arguments: [{ name: "topic" }, { name: "style" }] };

test.each<[string, string, Record<string, string>]>([
  ["nothing", "  ", {}],
  ["named, in any order", "style=short topic=cats", { style: "short", topic: "cats" }],
  ["named with quotes", `topic="two words" style='it is'`, { topic: "two words", style: "it is" }],
  ["a quote in quotes", String.raw`topic="say \"hi\" \\ \n"`, { topic: String.raw`say "hi" \ \n` }],
  ["an apostrophe within a word", "don't", { topic: "don't" }],
  ["in the order of the prompt", "cats short", { topic: "cats", style: "short" }],
  ["words beyond the last argument", "cats short and  sweet", { topic: "cats", style: "short and sweet" }],
  ["named and in order", "short topic=cats", { style: "short", topic: "cats" }],
  ["an equals sign in a value", "https://x/?a=b", { topic: "https://x/?a=b" }],
  ["an empty value", 'topic="" style=x', { topic: "", style: "x" }],
  ["an open quote holds the rest", 'topic="two words', { topic: "two words" }],
  ["the last value of a name counts", "topic=a topic=b", { topic: "b" }],
  ["tabs and line ends separate", "cats\tshort\n", { topic: "cats", style: "short" }],
])("%s: %j", (_what, typed, values) => {
  expect(readArguments(typed, TWO)).toEqual(values);
});

test("a prompt without arguments -> no values, whatever is typed", () => {
  expect(readArguments("a b=c", { command: "c", prompt: "p" })).toEqual({});
});

test.each<[string, string, SnapshotPrompt, RegExp | undefined]>([
  ["named and in order", "short topic=cats", TWO, undefined],
  ["an equals sign further on in a text", "cats why is a=b", TWO, undefined],
  ["an equals sign in a quoted value", '"a=b" short', TWO, undefined],
  ["an address", "https://x/?a=b", TWO, undefined],
  ["a name that no argument has", "foo=1", TWO, /^the prompt has no argument foo\. It takes topic, style; /],
  ["such a name behind a value", "cats foo=1", TWO, /^the prompt has no argument foo\./],
  ["a word too many", "topic=two style=x words", TWO, /^"words" belongs to no argument\. .* need quotes\.$/],
  ["a prompt without arguments", "a", { command: "c", prompt: "p" }, /^the prompt takes no arguments\.$/],
])("wrongWords, %s: %j", (_what, typed, prompt, wrong) => {
  if (wrong) expect(wrongWords(typed, prompt)).toMatch(wrong);
  else expect(wrongWords(typed, prompt)).toBeUndefined();
});

test("an argument with the name of a member of every object -> a value of its own", () => {
  const values = readArguments("__proto__=x", PROMPT);
  expect(Object.entries(values)).toEqual([["__proto__", "x"]]);
  expect(Object.getPrototypeOf(values)).toBe(Object.prototype);
});

test("wordsOf -> where each word starts, and whether it is still being typed", () => {
  expect(wordsOf("a b ")).toMatchObject([
    { at: 0, isOpen: false },
    { at: 2, isOpen: false },
  ]);
  expect(wordsOf('a b="c ')).toMatchObject([{ at: 0 }, { at: 2, text: "b=c ", isOpen: true }]);
});

test("usage -> optional arguments in brackets", () => {
  expect(usageOf(TWO)).toBe("[topic=…] [style=…]");
  expect(usageOf(PROMPT)).toBe("topic=… [style=…] [__proto__=…]");
});
