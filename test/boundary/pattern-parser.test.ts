/** Owns: the parser of patterns, built without its tables of Unicode, takes what the whole one takes. */
import { RegExpParser } from "@eslint-community/regexpp";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { idTables } from "../../scripts/build/sources.ts";

const PROPERTIES = [
  ..."Lu L Letter General_Category=Lu gc=Nd gc=Wrong Script=Greek sc=Grek scx=Latn Script_Extensions=Han Script=Nowhere".split(
    " ",
  ),
  ..."ASCII Alphabetic Emoji White_Space Any Nowhere lu Script Script= =Lu ASCII=Yes RGI_Emoji Basic_Emoji".split(
    " ",
  ),
];
const NAMES = ["(?<a>.)", "(?<é>.)\\k<é>", "(?<a𝒜>.)", "(?<1>.)", "(?<->.)", "(?<$_>.)"];

async function builtParser(): Promise<typeof RegExpParser> {
  const { outputFiles } = await build({
    stdin: {
      contents: 'export { RegExpParser } from "@eslint-community/regexpp";',
      resolveDir: import.meta.dirname,
    },
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
    minifySyntax: true,
    plugins: [idTables],
  });
  const text = outputFiles[0]?.text ?? "";
  expect(text).not.toContain("Anatolian_Hieroglyphs");
  const url = `data:text/javascript,${encodeURIComponent(text)}`;
  return ((await import(/* @vite-ignore */ url)) as { RegExpParser: typeof RegExpParser }).RegExpParser;
}

const takes = (Parser: typeof RegExpParser, pattern: string, flag: "u" | "v"): boolean => {
  try {
    new Parser().parsePattern(pattern, 0, pattern.length, {
      unicode: flag === "u",
      unicodeSets: flag === "v",
    });
    return true;
  } catch {
    return false;
  }
};

test.each(["u", "v"] as const)(
  "each pattern, flag %s -> taken or refused as by the whole parser",
  async (flag) => {
    const Built = await builtParser();
    const patterns = [...PROPERTIES.map((property) => `[\\p{${property}}x]|\\p{${property}}`), ...NAMES];
    const verdicts = (Parser: typeof RegExpParser) =>
      patterns.map((pattern) => [pattern, takes(Parser, pattern, flag)]);
    expect(verdicts(Built)).toEqual(verdicts(RegExpParser));
    expect(verdicts(Built).filter(([, taken]) => taken).length).toBeGreaterThan(10);
  },
);
