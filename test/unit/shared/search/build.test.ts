/** What is read of a tool for the index. */
import { describe, expect, test } from "vitest";
import { FIELDS, type Scanned, scan } from "../../../../src/shared/search/build.ts";
import { type SearchTool, toolFields } from "../../../../src/shared/search/weights.ts";
import { isStopWord, tokenize } from "../../../../src/shared/search/words.ts";
import { amount } from "../../../support/long.ts";
import { createRandom } from "../../random.ts";

/** Term -> its uses in each field of one tool. */
type Counted = Map<string, number[]>;

function counted({ terms, term, start, counts }: Scanned, tool: number): Counted {
  const found: Counted = new Map();
  for (let entry = start[tool] ?? 0; entry < (start[tool + 1] ?? 0); entry++) {
    const text = terms[term[entry] ?? -1] ?? "?";
    expect(found.has(text)).toBe(false);
    found.set(text, [...counts.subarray(entry * FIELDS.length, (entry + 1) * FIELDS.length)]);
  }
  return found;
}

/** The same counts, made text by text. */
function expected(tool: SearchTool): { terms: Counted; lengths: number[]; name: string[] } {
  const texts = toolFields(tool);
  const terms: Counted = new Map();
  const lengths = FIELDS.map(() => 0);
  const name = new Set<string>();
  FIELDS.forEach((field, at) => {
    for (const { term, kind } of tokenize(texts[field])) {
      if (isStopWord(term)) continue;
      const counts = terms.get(term) ?? FIELDS.map(() => 0);
      terms.set(term, counts);
      counts[at] = (counts[at] ?? 0) + 1;
      if (kind !== "part") continue;
      lengths[at] = (lengths[at] ?? 0) + 1;
      if (field === "name") name.add(term);
    }
  });
  return { terms, lengths, name: [...name] };
}

function check(tools: readonly SearchTool[]): void {
  const scanned = scan(tools);
  tools.forEach((tool, id) => {
    const wanted = expected(tool);
    expect(counted(scanned, id)).toEqual(wanted.terms);
    expect(scanned.lengths.map((of) => of[id])).toEqual(wanted.lengths);
    expect(scanned.nameTerms[id]?.map((term) => scanned.terms[term])).toEqual(wanted.name);
  });
}

const CATALOGS = amount(120, 300);

const tool = (description: string, rest: Partial<SearchTool> = {}): SearchTool => ({
  server: "s",
  name: "getHTTPResponse2",
  description,
  inputSchema: { type: "object", properties: { page_size: { type: "number", description } } },
  serverDescription: "Reads and writes files.",
  ...rest,
});

describe("scan", () => {
  test.each<[string, string]>([
    ["nothing", ""],
    ["words and stop words", "Reads the file, then reads it again. MCP tools."],
    [
      "words held together",
      "read_file read-file read__file read-_file read--file it's C++ C# a.b/c ./x -a a- '",
    ],
    ["one word twice, held together and alone", "GitHub gitHub github git hub git-hub"],
    ["names that objects have", "constructor __proto__ toString hasOwnProperty"],
    ["other scripts", "日本語のテキスト über straße ’s ﬁle Ｆｕｌｌ Зелёный a日b"],
    ["more tokens than are kept, in short words", "a_b ".repeat(1_000)],
    ["more tokens than are kept, in one word", "aB".repeat(2_000)],
    ["just below where texts are read as a whole", "aB-".repeat(666)],
    ["just above it", "aB-".repeat(667)],
    ["a word that is data", `${"x".repeat(41)} ${"x".repeat(40)} ${"ab-".repeat(30)}`],
  ])("%s", (_name, text) => check([tool(text), tool(text, { server: "other" }), tool(`x${text}`)]));

  test("no tools -> nothing", () => {
    expect(scan([])).toMatchObject({ terms: [], nameTerms: [] });
  });

  test("a tool with more terms than the arrays have room for at first", () => {
    const words = Array.from({ length: 500 }, (_, i) => `w${i}x`).join(" ");
    check([tool(words), tool(words), tool("few")]);
  });

  test(`${CATALOGS} catalogs of random texts`, () => {
    const random = createRandom(7);
    const pieces = [
      "read",
      "File",
      "HTTP",
      "2",
      "_",
      "-",
      ".",
      "/",
      "'",
      "+",
      " ",
      " ",
      ", ",
      "é",
      "本",
      "the",
      "s",
    ];
    const text = (): string =>
      Array.from({ length: random.below(40) }, () => pieces[random.below(pieces.length)]).join("");
    for (let i = 0; i < CATALOGS; i++) {
      check(
        Array.from({ length: 1 + random.below(4) }, () =>
          tool(text(), { server: text(), name: text(), serverDescription: text() }),
        ),
      );
    }
  });
});
