/** Attacks by configuration files of a clone that are too big or are not regular files. */
import { mkdir, truncate } from "node:fs/promises";
import { join } from "node:path";
import { CLONE_CHECKS, type Place, type Row } from "../support/row.ts";
import { link, pipe } from "./laying.ts";

/** The configuration files that the extension reads at the start. */
const PLACES = [".mcp.json", ".pi/mcp.json", ".env", ".cursor/mcp.json", ".vscode/mcp.json"] as const;

const FAKES: Record<string, (place: Place, path: string) => Promise<void>> = {
  "a pipe without a writer": pipe,
  "a link to /dev/zero": (place, path) => link("/dev/zero", place, path),
  "a link to itself": (place, path) => link(join(place.home.cwd, path), place, path),
  "a folder": async ({ home }, path) => void (await mkdir(join(home.cwd, path), { recursive: true })),
  "a file of 4 GB": async ({ home }, path) => truncate(await home.writeFile(path, ""), 4 * 2 ** 30),
};

/** Each row makes all files the same kind of fake, since a single fake file can already do the damage. */
const NO_FILES: readonly Row[] = Object.entries(FAKES).map(([what, lay]) => ({
  name: `a clone in which each of ${PLACES.join(", ")} is ${what}`,
  finding: "H2",
  alone: "home",
  trusted: true,
  checks: CLONE_CHECKS,
  lay: async (place) => {
    for (const path of PLACES) await lay(place, path);
    const imports = ["cursor", "vscode", "claude-code"];
    await place.file(".config/mcp/mcp.json", { imports, mcpServers: {} });
  },
  servers: (place) => ({ mine: { ...place.hostile("healthy.mjs"), envFile: ".env" } }),
  act: async (arena) => {
    await arena.status();
  },
}));

const many = (count: number, entry: (i: number) => unknown): string =>
  JSON.stringify(
    { mcpServers: Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}`, entry(i)])) },
    null,
    1,
  );

const SIZES: readonly [string, string, () => string][] = [
  ["8,000 entries", "M1", () => many(8_000, (i) => ({ command: "node", args: [`${i}.js`] }))],
  ["16,000 entries", "M1", () => many(16_000, (i) => ({ command: "node", args: [`${i}.js`] }))],
  ["8,000 entries with mistakes", "M1", () => many(8_000, (i) => ({ command: i, args: "x", unknown: 1 }))],
  [
    "one entry with 20,000 variables",
    "own",
    () =>
      many(1, () => ({
        command: "node",
        env: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`V${i}`, "$".repeat(20)])),
      })),
  ],
  [
    "the same entry 20,000 times",
    "M1",
    () => `{"mcpServers": {${Array.from({ length: 20_000 }, () => '"a": {"command": "node"}').join(",")}}}`,
  ],
  ["JSON nested 200,000 deep", "own", () => `{"mcpServers": ${'{"a":'.repeat(200_000)}`],
  ["a comment of 20 MB that never ends", "own", () => `{"mcpServers": {} /*${" *".repeat(10_000_000)}`],
  [
    "a command of 5 MB of interpolations",
    "own",
    () => many(1, () => ({ command: "node", args: ["${A:-".repeat(1_000_000)] })),
  ],
];

const CONFIGS: readonly Row[] = SIZES.map(([what, finding, text]) => ({
  name: `a clone whose .mcp.json has ${what}: the user's own servers work`,
  finding,
  alone: "home",
  checks: CLONE_CHECKS,
  files: () => ({ ".mcp.json": text() }),
  act: async (arena) => {
    await arena.status();
  },
  check: ({ notices }) =>
    notices.map(({ message }) => message).filter((message) => message.includes("worker ended unexpectedly")),
}));

export const FILES: readonly Row[] = [...NO_FILES, ...CONFIGS];
