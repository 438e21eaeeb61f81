/**
 * Owns: the rule that a `state` is compared in a time that says nothing about where it differs. No run can show that rule
 * without a clock, so the sources are read.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const auth = join(import.meta.dirname, "..", "..", "workers", "connection", "auth");
const OWNER = join("model", "model.ts");

/** A state on one side of `===` and anything but `undefined`, `null` or a word in quotes on the other. */
const BARE = /\bstate\b[)\]]*\s*[!=]==\s*(?!\s|undefined\b|null\b|")|[!=]==\s*[\w.]*\bstate\b/;

const sources = (await readdir(auth, { recursive: true })).filter((name) => name.endsWith(".ts"));

test("a state is compared by timingSafeEqual, in one place", async () => {
  expect(await readFile(join(auth, OWNER), "utf8")).toMatch(/=> timingSafeEqual\(|\n\s+timingSafeEqual\(/);
  const texts = await Promise.all(
    sources
      .filter((name) => name !== OWNER)
      .map(async (name) => ({ name, text: await readFile(join(auth, name), "utf8") })),
  );
  expect(texts.filter(({ text }) => BARE.test(text)).map(({ name }) => name)).toEqual([]);
});

test.each([
  ["state === pending.state", true],
  ["received !== this.state", true],
  ['parameters.get("x") === state', true],
  ["state !== undefined && isSameState(state, waiter.state)", false],
  ["received !== null", false],
  ['status.state === "signed-in"', false],
])("%s -> found: %s", (source, isFound) => {
  expect(BARE.test(source)).toBe(isFound);
});
