/** The patterns of servers that a host may run, judged by the steps of a backtracking engine. */
import { describe, expect, it, test } from "vitest";
import { isLinear, PATTERN_CHARS } from "../../../../../../workers/cache/schema/patterns.ts";
import { amount } from "../../../../../support/long.ts";
import { createRandom } from "../../../../random.ts";
import { countSteps, TooManySteps } from "./backtracking.ts";

const SEED = 20_261_122;
const PATTERNS = amount(150, 400);

describe("isLinear", () => {
  it.each([
    ...["^[a-z0-9-]+$", String.raw`^\d{4}-\d{2}-\d{2}$`, "^https?://", "^[^/]+/[^/]+$", "^(foo|bar)$"],
    ...[String.raw`^[A-Z]{2,4}-\d+$`, "^#?([0-9a-f]{3}|[0-9a-f]{6})$", "^[GDZTKOFS]*$", String.raw`^AS\d+$`],
    ...["", ".", ".+", String.raw`\S`, String.raw`^\S+$`, String.raw`\S+`, String.raw`^[\s\S]*$`, "^$|^x+$"],
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    "^[a-z][a-z0-9-]{0,61}[a-z0-9]$",
    String.raw`^(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$`,
    String.raw`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`,
    String.raw`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$`,
    String.raw`^\+?[1-9]\d{1,14}$`,
    String.raw`^[\w.+-]+@[\w-]+\.[\w.-]+$`,
    String.raw`^[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*)*$`,
    "^(get|gets|getAll|put|post|patch)$",
    String.raw`\.(png|jpe?g|gif)$`,
    "^(?!-)[a-z0-9-]+$",
    String.raw`^[\p{L}\p{N}_-]+$`,
    String.raw`^-?\d+(\.\d+)?([eE][+-]?\d+)?$`,
    "^arn:aws[a-z-]*:[a-z0-9-]+:.+$",
    String.raw`^(?:"(?:[^"\\]|\\.)*"|[^",]*)$`,
    "^(?:(?!--).)*$",
  ])("%s, a pattern of real servers -> may be run", (source) => {
    expect(isLinear(source)).toBe(true);
  });

  it.each([
    ...["^(([a-z])+.)+$", "^(a+)+$", "^(a|a)*$", "^(a|ab|b)*$", "(a*)*b", "a+$", String.raw`\s+$`, "^(a?)*$"],
    ...["^a*a*$", "^.*a.*b$", "^(a?){30}a{30}$", "(?:a{0,50}){50}", ".*.*=.*", "^a*(?:ab?)*$", "x*y"],
    // The look-around cannot be bounded, or the construct is of a kind that is not judged.
    ...["^(?=(a+)+$)", "(?<!a*)b$", String.raw`^(.)\1$`, "(?i:a)", "^(?i:a+)$"],
    // In truth linear, but the rule does not prove it.
    ...[
      "^[^@]+@[^@]+\\.[a-z]+$",
      String.raw`^(\w+\s?)*$`,
      "^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]+$",
    ],
    ...["(", "a".repeat(PATTERN_CHARS + 1)],
  ])("%.60s -> left to the server", (source) => {
    expect(isLinear(source)).toBe(false);
  });

  it.each([
    ["groups", `${"(".repeat(450)}a${")".repeat(450)}`],
    ["alternatives in alternatives", `^${"(?:a|".repeat(150)}b${")".repeat(150)}$`],
    ["optional letters", `^${"[a-z]?".repeat(160)}$`],
    ["counts of counts", `^${"(?:".repeat(60)}a${"{9})".repeat(60)}$`],
    ["a count of all there are", "^(?:ab?){999999999}$"],
    ["classes", String.raw`\p{L}\P{Script=Greek}`.repeat(40)],
  ])("%s without end -> judged at once", (_name, source) => {
    expect(source.length).toBeLessThan(PATTERN_CHARS);
    expect([true, false]).toContain(isLinear(source));
  });
});

type Random = ReturnType<typeof createRandom>;

/** A small pattern in three letters, so that its parts often meet. */
function randomPattern(random: Random): string {
  const pick = (list: readonly string[]): string => list[random.below(list.length)] ?? "";
  const part = (depth: number): string => {
    const kind = random.below(depth > 0 ? 9 : 4);
    if (kind < 2) return pick(["a", "b", "c"]);
    if (kind < 4)
      return pick(["[ab]", "[^a]", ".", "[bc]", String.raw`\w`, String.raw`\b`, "(?!ab)", "[^ab]"]);
    const group = `(?:${Array.from({ length: 1 + random.below(3) }, () => sequence(depth - 1)).join("|")})`;
    return kind < 6 ? group : group + quantifier();
  };
  const quantifier = (): string =>
    pick(["*", "+", "?", "{2}", "{0,3}", "{1,2}", "{2,}", "*?", "+?", "{0,9}", "", ""]);
  const sequence = (depth: number): string =>
    Array.from({ length: 1 + random.below(3) }, () => {
      const one = part(depth);
      return one.startsWith("\\b") || one.startsWith("(?!") || one.startsWith("(?:")
        ? one
        : one + quantifier();
    }).join("");
  return pick(["^", "^", "^", ""]) + sequence(2) + pick(["$", "$", ""]);
}

/** Repetitions of these are the texts. */
const WORDS = ["a", "b", "ab", "ba", "bc", "aab", "abc", "bab", "aba", "cab"];
const SHORT = 120;
/** More steps than a pattern that may be run takes for one of the texts, and than a slow one is given. */
const LIMIT = 4_000_000;
const SLOW_LIMIT = 100_000;

/** Steps for a text of that length at which most patterns fail only at its end. */
const stepsFor = (source: string, word: string, chars: number, limit: number): number =>
  countSteps(source, `${word.repeat(Math.ceil(chars / word.length)).slice(0, chars)}!`, limit).steps;

const isUnbounded = (source: string): boolean => /[*+]|,\}/.test(source);

/** Four times the text takes that many times the steps: 4 where they are linear, 16 where they are quadratic. */
function growth(source: string, word: string, limit = LIMIT): number {
  try {
    const steps = stepsFor(source, word, 4 * SHORT, limit);
    // A pattern of bounded length stops growing, though maybe not yet here. Few steps prove nothing, hence the constant.
    return isUnbounded(source) ? steps / (stepsFor(source, word, SHORT, limit) + 500) : 0;
  } catch (error) {
    if (error instanceof TooManySteps) return Infinity;
    throw error;
  }
}

test(`${PATTERNS} random patterns, seed ${SEED} -> the steps of each that may be run grow with the text, not faster`, () => {
  const random = createRandom(SEED);
  const counts = { linear: 0, slow: 0, provenSlow: 0 };
  for (let i = 0; i < PATTERNS; i++) {
    const source = randomPattern(random);
    if (isLinear(source)) {
      counts.linear++;
      // The matcher is one: it finds what the engine finds.
      for (const text of ["abc", "aab!", "cabab", ""]) {
        expect(countSteps(source, text, LIMIT).matches, `${source} in ${text}`).toBe(
          new RegExp(source, "u").test(text),
        );
      }
      for (const word of WORDS) expect(growth(source, word), `${source} on ${word}`).toBeLessThan(6);
    } else if (counts.slow++ % 10 === 0 && WORDS.some((word) => growth(source, word, SLOW_LIMIT) > 6))
      counts.provenSlow++;
  }
  // Each kind must really occur, or the test proves nothing.
  expect(counts.linear).toBeGreaterThan(PATTERNS / 5);
  expect(counts.slow).toBeGreaterThan(PATTERNS / 5);
  expect(counts.provenSlow).toBeGreaterThan(PATTERNS / 100);
});
