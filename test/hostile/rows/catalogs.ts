/** Attacks by the number and size of tools, and by the cost of a search over them on the main thread. */
import { type Arena, callOf, searchOf } from "../support/arena.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { aTool, listing } from "./answering.ts";
import { aloneIfWhole, shown, sized } from "./sizes.ts";

/** Enough that a comparison of each name with an unknown one holds main up. */
const MANY_TOOLS = sized(3_000, 10_000);
/** More than `LIMITS.toolsPerServer`. */
const TOO_MANY_TOOLS = sized(11_000, 100_000);
/** A request to the model that held it would break the limit of the row. */
const HUGE_DESCRIPTION_MB = sized(3, 10);

/** Returns tools whose names have `length` characters and differ only in the last five. */
const alike = (count: number, length: number): Record<string, unknown>[] =>
  Array.from({ length: count }, (_, i) => aTool(`${"n".repeat(length - 5)}${String(i).padStart(5, "0")}`));

const select = (names: readonly string[]): ReturnType<typeof searchOf> =>
  searchOf(`select:${names.join(",")}`);

/** Returns five names with the server's prefix that no tool of the server has. */
const unknownNames = ({ place }: Arena, length: number): string[] =>
  Array.from({ length: 5 }, (_, i) => `${place.server}__${"n".repeat(length - 5)}x${i}xyz`);

const PUNCTUATION = ["_", "-", ".", "__", "-_", "_-", "--", "._", "_.", "-."];
/** Returns 10,000 tools whose names differ only in their punctuation. */
const punctuated = (): Record<string, unknown>[] =>
  Array.from({ length: 10_000 }, (_, i) => {
    const digits = String(i).padStart(4, "0").split("");
    return aTool(`read${digits.map((digit) => PUNCTUATION[Number(digit)]).join("file")}`);
  });

/** Returns a row in which the model asks for five names that differ from all tools only in their last characters. */
const unknownRow = (
  name: string,
  [count, length]: readonly [number, number],
  more: Partial<Row> = {},
): Row => ({
  name,
  finding: "H5",
  checks: SERVER_CHECKS,
  server: listing(alike(count, length)),
  act: async (arena) => {
    await arena.prompt(select(unknownNames(arena, length)));
  },
  ...more,
});

const SEARCHES: readonly Row[] = [
  unknownRow(
    `a server with ${shown(MANY_TOOLS)} names of 64 characters that share 54: the model asks for five unknown names`,
    [MANY_TOOLS, 57],
    aloneIfWhole,
  ),
  unknownRow(
    "a server with 100 names of 1,000 characters: the model asks for five unknown names",
    [100, 1_000],
  ),
  {
    name: "a server with 1,000 names that share 43 characters: the model calls an unknown name",
    finding: "H5",
    checks: SERVER_CHECKS,
    server: listing(alike(1_000, 48)),
    act: async (arena) => {
      const [name = ""] = unknownNames(arena, 48);
      await arena.prompt(callOf(name));
      await arena.prompt(select(unknownNames(arena, 48)));
    },
  },
  {
    name: "a server with 10,000 names that differ in punctuation: the model repeats one name 256 times in a query",
    finding: "H5",
    alone: "home",
    checks: SERVER_CHECKS,
    server: listing(punctuated()),
    act: async (arena) => {
      await arena.prompt(searchOf("readfilefilefile ".repeat(256)));
      const names = Array.from({ length: 60 }, (_, i) => `read${"_".repeat(i)}file-file.file`);
      await arena.prompt(select(names));
    },
  },
  {
    name: "a pattern in mcp({search, regex: true}) that backtracks or takes much time",
    finding: "M8",
    alone: "home",
    settings: { proxyTool: true },
    checks: SERVER_CHECKS,
    server: listing([
      ...alike(200, 60),
      aTool(`${"\u4e00".repeat(900)}`),
      aTool("words", { description: "a".repeat(2_000) }),
    ]),
    act: async (arena) => {
      const set = Array.from({ length: 450 }, (_, i) => String.fromCodePoint(0x4e00 + 2 * i)).join("");
      const patterns = [
        `(([^${set}]?){100}){4}\u0001`,
        "^((n+)+)+$",
        "(a|a)*b",
        "((a*)*)*\\d{500}",
        "(?=(a+))a*b",
      ];
      for (const search of patterns) await arena.prompt(callOf("mcp", { search, regex: true }));
    },
  },
];

/** Waits until the server was asked for its list after several changes of the list. */
const changed = async (arena: Arena): Promise<void> => {
  const isChanged = async (): Promise<boolean> => (await arena.place.seen()).includes("changed");
  if (!(await arena.until(isChanged))) throw new Error("the changed list was never asked for");
};

/** Returns a row in which the model calls tools and the user opens `/mcp tools` while the list changes. */
const changingRow = (
  name: string,
  { tools, ...more }: { tools: () => readonly Record<string, unknown>[] } & Pick<Row, "calls">,
): Row => ({
  name,
  finding: "M9",
  alone: "home",
  checks: SERVER_CHECKS,
  server: async (place) =>
    place.hostile("changes-list.mjs", await place.file("tools.json", JSON.stringify(tools()))),
  ...more,
  act: async (arena) => {
    await changed(arena);
    await arena.status("tools");
  },
});

const MANY: readonly Row[] = [
  {
    name: `a server with ${shown(TOO_MANY_TOOLS)} tools: the list is cut, and the user is told`,
    finding: "own",
    alone: "home",
    checks: SERVER_CHECKS,
    server: listing(Array.from({ length: TOO_MANY_TOOLS }, (_, i) => aTool(`tool_${i}`))),
    calls: [{ tool: "tool_7" }],
    check: async (arena) => {
      const told = [await arena.status(), ...arena.notices.map(({ message }) => message)].join("\n");
      return /100,?000|90,?000|10,?000/.test(told)
        ? []
        : [`the user is not told that tools are left out: ${told}`];
    },
  },
  changingRow("a server with 1,250 descriptions of 19.8 KB whose list changes five times a second", {
    tools: () =>
      Array.from({ length: 1_250 }, (_, i) =>
        aTool(`tool_${i}`, { description: `Tool ${i}: ${"many words ".repeat(1_800)}` }),
      ),
    calls: [{ tool: "tool_7" }, { tool: "tool_8" }],
  }),
  {
    name: `a server whose tool has a description of ${HUGE_DESCRIPTION_MB} MB`,
    finding: "M9",
    checks: SERVER_CHECKS,
    server: listing([
      aTool("work", {
        description: "words ".repeat(HUGE_DESCRIPTION_MB * 170_000),
        title: "t".repeat(1_000_000),
      }),
    ]),
    calls: [{ tool: "work" }],
    check: ({ requests }) => {
      const most = Math.max(...requests.map(({ body }) => body.length));
      return most > 2_000_000 ? [`a request to the model has ${most} characters`] : [];
    },
  },
  changingRow("a server with 10,000 tools whose list changes five times a second", {
    tools: () => Array.from({ length: 10_000 }, (_, i) => aTool(`tool_${i}`)),
    calls: [{ tool: "tool_7" }],
  }),
  {
    name: "a server with a tool name of 1 MB, an empty name and names that are not text",
    finding: "own",
    checks: SERVER_CHECKS,
    server: listing([
      aTool("n".repeat(1_000_000)),
      aTool(""),
      { ...aTool("x"), name: null },
      { ...aTool("x"), name: { toString: "x" } },
      null,
      "tool",
      [],
      aTool("work"),
    ]),
    calls: [{ tool: "work" }],
  },
];

export const CATALOGS: readonly Row[] = [...SEARCHES, ...MANY];
