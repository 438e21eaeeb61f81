/** Attacks on the doctor by servers that it names or connects; questions.ts has a clone that wants it to connect somewhere. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Arena } from "../support/arena.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";

const reportOf = ({ place }: Arena): Promise<string> =>
  readFile(join(place.home.agentDir, "mcp-doctor.md"), "utf8");

/** Texts of a server are bounded, and a doctor that is flooded still has few lines. */
const MOST_CHARS = 20_000;

/** What the doctor said, by the name of the row's server. */
const told = new Map<string, string>();

const ask = async (arena: Arena, words: string): Promise<void> => {
  told.set(arena.place.server, await arena.status(words));
};

export const DOCTOR_ROWS: readonly Row[] = [
  {
    name: "a server that writes findings of the doctor to stderr: they stay words of that server",
    finding: "own",
    checks: SERVER_CHECKS,
    happened: "forged",
    server: ({ hostile }) => hostile("forges.mjs"),
    act: async (arena) => {
      await arena.connected();
      await ask(arena, "doctor");
    },
    check: async (arena) => {
      const lines = (told.get(arena.place.server) ?? "").split("\n");
      const report = await reportOf(arena);
      const own = lines.filter((line) => line.startsWith("error: ") && line.includes(arena.place.server));
      return [
        ...(own.length === 1 ? [] : [`the server has ${own.length} findings`]),
        ...lines.filter((line) => /^(error: neighbour|\s*To do: run curl|# forged)/.test(line)),
        ...(report.match(/```/g)?.length === 2 ? [] : ["the report's block ends too early"]),
        ...(/^(error \[\w+\] neighbour|# forged)/m.test(report) ? ["the report holds a forged line"] : []),
      ];
    },
  },
  {
    name: "a server that never answers: /mcp doctor with its name ends, and says so",
    finding: "own",
    checks: SERVER_CHECKS,
    happened: "silent",
    server: ({ hostile }) => ({ ...hostile("silent.mjs"), startupTimeoutMs: 2_000 }),
    act: (arena) => ask(arena, `doctor ${arena.place.server}`),
    check: ({ place }) => {
      const text = told.get(place.server) ?? "";
      return /error: .*within 2 s/.test(text) ? [] : [`the doctor said: ${text}`];
    },
  },
  {
    name: "a server that floods its stderr while the doctor looks: its words stay few",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-stderr.mjs"),
    act: (arena) => ask(arena, `doctor ${arena.place.server}`),
    check: async (arena) => {
      const text = `${told.get(arena.place.server)}${await reportOf(arena)}`;
      return text.length <= MOST_CHARS ? [] : [`the doctor said ${text.length} characters`];
    },
  },
];
