/** Attacks by the number and size of tools, and by the cost of a search over them on the main thread. */
import { family } from "../../support/long.ts";
import { type Arena, callOf, searchOf } from "../support/arena.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { aTool, listing } from "./answering.ts";
import { besideOrHome, shown, sized } from "./sizes.ts";

/** Enough that a comparison of each name with an unknown one holds main up. */
const MANY_TOOLS = sized(3_000, 10_000);
/** More than `LIMITS.toolsPerServer`. */
const TOO_MANY_TOOLS = sized(11_000, 100_000);
/** Their descriptions together are longer than `LIMITS.snapshotBytes`, unless each is cut. */
const LONG = 640;
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
    besideOrHome,
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
    thorough: true,
    finding: "H5",
    beside: false,
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
      // Each of them takes all the time that it gets; the worker's own tests try more.
      const backtracks = family(["^((n+)+)+$", "(a|a)*b", "((a*)*)*\\d{500}", "(?=(a+))a*b"]);
      for (const search of [`(([^${set}]?){100}){4}\u0001`, ...backtracks])
        await arena.prompt(callOf("mcp", { search, regex: true }));
    },
  },
];

/** Where the cores are slow, the client asks for a list that changes all the time more seldom. */
const CHANGED_MS = 90_000;

/** Waits until the server was asked for its list after several changes of the list. */
const changed = async (arena: Arena): Promise<void> => {
  const isChanged = async (): Promise<boolean> => (await arena.place.seen()).includes("changed");
  if (!(await arena.until(isChanged, CHANGED_MS))) throw new Error("the changed list was never asked for");
};

/** Each list costs the client as much as the first one. */
const MORE_CHANGES = sized(5, 15);

/** Returns a row in which the model calls tools and the user opens `/mcp tools` while the list changes. */
const changingRow = (
  name: string,
  {
    tools,
    ...more
  }: { tools: () => readonly Record<string, unknown>[] } & Pick<
    Row,
    "alone" | "calls" | "check" | "thorough"
  >,
): Row => ({
  name,
  finding: "M9",
  checks: SERVER_CHECKS,
  server: async (place) =>
    place.hostile(
      "changes-list.mjs",
      await place.file("tools.json", JSON.stringify(tools())),
      `${MORE_CHANGES}`,
    ),
  ...more,
  act: async (arena) => {
    await changed(arena);
    await arena.status("tools");
  },
});

const longDescriptions = (count: number): Record<string, unknown>[] =>
  Array.from({ length: count }, (_, i) =>
    aTool(`long_${i}`, { description: `Tool ${i}: ${"many words ".repeat(1_800)}` }),
  );
const manyTools = (count: number): Record<string, unknown>[] =>
  Array.from({ length: count }, (_, i) => aTool(`tool_${i}`));

const isTold = async (arena: Arena): Promise<string[]> => {
  const told = [await arena.status(), ...arena.notices.map(({ message }) => message)].join("\n");
  return /100,?000|90,?000|10,?000/.test(told)
    ? []
    : [`the user is not told that tools are left out: ${told}`];
};

const TOO_MANY: Row = {
  name: `a server with ${shown(TOO_MANY_TOOLS)} tools: the list is cut, and the user is told`,
  finding: "own",
  alone: "home",
  checks: SERVER_CHECKS,
  server: listing(manyTools(TOO_MANY_TOOLS)),
  calls: [{ tool: "tool_7" }],
  check: isTold,
};

/** By default the server with too many tools also changes them: each change costs the client the whole list again. */
const CHANGING: readonly Row[] = sized(
  [
    changingRow(`a server with ${LONG} descriptions of 19.8 KB whose list changes five times a second`, {
      thorough: true,
      alone: "home",
      tools: () => longDescriptions(LONG),
      calls: [{ tool: "long_7" }, { tool: "long_8" }],
    }),
    changingRow(
      `a server with ${shown(TOO_MANY_TOOLS)} tools whose list changes five times a second: it is cut, and the user is told`,
      {
        alone: "home",
        tools: () => manyTools(TOO_MANY_TOOLS),
        calls: [{ tool: "tool_7" }],
        check: isTold,
      },
    ),
  ],
  [
    TOO_MANY,
    changingRow("a server with 1,250 descriptions of 19.8 KB whose list changes five times a second", {
      alone: "home",
      tools: () => longDescriptions(1_250),
      calls: [{ tool: "long_7" }, { tool: "long_8" }],
    }),
    changingRow("a server with 10,000 tools whose list changes five times a second", {
      alone: "home",
      tools: () => manyTools(10_000),
      calls: [{ tool: "tool_7" }],
    }),
  ],
);

const MANY: readonly Row[] = [
  ...CHANGING,
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
