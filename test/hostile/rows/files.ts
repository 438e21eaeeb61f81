/** Attacks by configuration files of a clone that are too big or are not regular files. */
import { mkdir, truncate } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Arena } from "../support/arena.ts";
import { CLONE_CHECKS, type Place, type Row } from "../support/row.ts";
import { link, pipe } from "./laying.ts";
import { workerEnds } from "./seeing.ts";
import { sized } from "./sizes.ts";

/** The configuration files that the extension reads at the start; it imports from the last three. */
const PLACES = [
  ".mcp.json",
  ".pi/mcp.json",
  ".cursor/mcp.json",
  ".vscode/mcp.json",
  "opencode.json",
] as const;
/** Where servers are in a file, if not below `mcpServers`. */
const KEYS: Record<string, string> = { ".vscode/mcp.json": "servers", "opencode.json": "mcp" };

/** Makes the extension read the clone's files of other programs. */
const importAll = (place: Place): Promise<string> =>
  place.file(".config/mcp/mcp.json", {
    imports: ["cursor", "vscode", "claude-code", "opencode"],
    mcpServers: {},
  });

/** Reports each file of which the user reads nothing: the extension may not have looked at it. */
const untold =
  (paths: readonly string[]) =>
  ({ notices }: Arena): string[] => {
    const told = notices.map(({ message }) => message).join("\n");
    return paths.filter((path) => !told.includes(path)).map((path) => `nothing is told about ${path}`);
  };

const NOT_FILES: Record<string, (place: Place, path: string) => Promise<void>> = {
  "a pipe without a writer": pipe,
  "a link to /dev/zero": (place, path) => link("/dev/zero", place, path),
  "a link to itself": (place, path) => link(join(place.home.cwd, path), place, path),
  "a folder": async ({ home }, path) => void (await mkdir(join(home.cwd, path), { recursive: true })),
  "a file of 4 GB": async ({ home }, path) => truncate(await home.writeFile(path, ""), 4 * 2 ** 30),
};

/** `laid`: what is in the place of each file. */
const notFiles = (what: string, laid: Record<string, string>): Row => ({
  name: `a clone in which ${what}`,
  finding: "H2",
  alone: "home",
  trusted: true,
  checks: CLONE_CHECKS,
  lay: async (place) => {
    for (const [path, kind] of Object.entries(laid)) await NOT_FILES[kind]?.(place, path);
    await importAll(place);
  },
  servers: (place) => ({ mine: { ...place.hostile("healthy.mjs"), envFile: ".env" } }),
  act: async (arena) => {
    await arena.status();
  },
  check: untold(Object.keys(laid)),
});

const READ = [".mcp.json", ".pi/mcp.json", ".env", ".cursor/mcp.json", ".vscode/mcp.json"];

/**
 * One rule reads all files, and test/unit/workers/shared/files/read-regular.test.ts tries it with each kind: by default
 * each file is another kind.
 */
const NO_FILES: readonly Row[] = sized(
  [
    notFiles(
      Object.keys(NOT_FILES)
        .map((kind, i) => `${READ[i]} is ${kind}`)
        .join(", "),
      Object.fromEntries(Object.keys(NOT_FILES).map((kind, i) => [READ[i] as string, kind])),
    ),
  ],
  Object.keys(NOT_FILES).map((kind) =>
    notFiles(`each of ${READ.join(", ")} is ${kind}`, Object.fromEntries(READ.map((path) => [path, kind]))),
  ),
);

const many =
  (count: number, entry: (i: number) => unknown) =>
  (key: string): string =>
    JSON.stringify(
      { [key]: Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}`, entry(i)])) },
      null,
      1,
    );

/** Megabytes of texts above the limit of a project's file, which is 1 MiB. */
const [INTERPOLATIONS, COMMENT] = sized([2, 2], [5, 20]);

const SECRET = "hunter2-of-the-user";

interface Content {
  /** What a file has or is. */
  what: string;
  finding: string;
  put(place: Place, path: string): Promise<unknown>;
}

/** `text`: the content of a file with its servers below this key. */
const has = (what: string, finding: string, text: (key: string) => string): Content => ({
  what: `has ${what}`,
  finding,
  put: ({ home }, path) => home.writeFile(path, text(KEYS[path] ?? "mcpServers")),
});

const CONTENTS: readonly Content[] = [
  has(
    "8,000 entries",
    "M1",
    many(8_000, (i) => ({ command: "node", args: [`${i}.js`] })),
  ),
  has(
    "8,000 entries with mistakes",
    "M1",
    many(8_000, (i) => ({ command: i, args: "x", unknown: 1 })),
  ),
  has(
    "one entry with 20,000 variables",
    "own",
    many(1, () => ({
      command: "node",
      env: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`V${i}`, "$".repeat(20)])),
    })),
  ),
  has("JSON nested 200,000 deep", "own", (key) => `{"${key}": ${'{"a":'.repeat(200_000)}`),
  has(
    `a command of ${INTERPOLATIONS} MB of interpolations`,
    "own",
    many(1, () => ({ command: "node", args: ["${A:-".repeat(INTERPOLATIONS * 200_000)] })),
  ),
  {
    what: "is a link to a secret file of the user",
    finding: "own",
    put: async (place, path) => {
      const text = `{"mcpServers": {"a": "${SECRET}", "b": {"command": ["${SECRET}"]}}, "key": "${SECRET}"`;
      await link(await place.file(".aws/credentials.json", text), place, path);
    },
  },
  has(
    "the same entry 20,000 times",
    "M1",
    (key) => `{"${key}": {${Array.from({ length: 20_000 }, () => '"a": {"command": "node"}').join(",")}}}`,
  ),
  has(
    "16,000 entries",
    "M1",
    many(16_000, (i) => ({ command: "node", args: [`${i}.js`] })),
  ),
  has(
    `a comment of ${COMMENT} MB that never ends`,
    "own",
    (key) => `{"${key}": {} /*${" *".repeat(COMMENT * 500_000)}`,
  ),
];

/** Reports each text with the secret that the user or the model reads. */
const secretsIn = ({ notices, requests }: Arena): string[] =>
  [...notices.map(({ message }) => message), ...requests.map(({ body }) => body)]
    .filter((text) => text.includes(SECRET))
    .map((text) => `shown: ${text.slice(0, 200)}`);

/** `contents`: those of the first files. */
const oddFiles = (contents: readonly Content[]): Row => ({
  name: `a clone whose ${contents.map(({ what }, i) => `${PLACES[i]} ${what}`).join(", ")}: the user's own servers work`,
  finding: contents[0]?.finding ?? "own",
  alone: "home",
  ...(contents.length > 1 ? { trusted: true } : {}),
  checks: CLONE_CHECKS,
  lay: async (place) => {
    for (const [i, { put }] of contents.entries()) await put(place, PLACES[i] as string);
    if (contents.length > 1) await importAll(place);
  },
  act: async (arena) => {
    await arena.status();
  },
  check: (arena) => [
    ...workerEnds(arena),
    ...untold(PLACES.slice(0, contents.length))(arena),
    ...secretsIn(arena),
  ],
});

/** test/unit/workers/connection/config/bounds.test.ts reads each such text alone: by default one clone has several. */
const ODD: readonly Row[] = sized(
  [oddFiles(CONTENTS.slice(0, PLACES.length)), oddFiles(CONTENTS.slice(PLACES.length))],
  CONTENTS.map((content) => oddFiles([content])),
);

const OPENCODE_FILES = ["", ".opencode/"].flatMap((folder) => [
  `${folder}opencode.json`,
  `${folder}opencode.jsonc`,
]);

/** Each file with as many rules as one list may have: what counts is how often they are laid over a server. */
const RULED: Row = {
  name: "a clone with four files of OpenCode, each with 75 servers and 1,000 rules for all servers: the user's own servers work",
  thorough: true,
  finding: "own",
  alone: "home",
  trusted: true,
  checks: CLONE_CHECKS,
  lay: async (place) => {
    const named = (count: number, entry: (i: number) => [string, unknown]): Record<string, unknown> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => entry(i)));
    for (const [at, path] of OPENCODE_FILES.entries())
      await place.home.writeFile(path, {
        mcp: named(75, (i) => [`s${at}_${i}`, { type: "local", command: ["node"] }]),
        permission: named(LIMITS.toolRules, (i) => [`*_${at}_${i}`, i % 2 === 0 ? "ask" : "deny"]),
      });
    await importAll(place);
  },
  act: async (arena) => {
    await arena.status();
  },
  check: (arena) => [...workerEnds(arena), ...untold(["opencode.json"])(arena)],
};

export const FILES: readonly Row[] = [...NO_FILES, ...ODD, RULED];
