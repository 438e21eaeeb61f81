/** Owns: which file a server is taken out of, when several files name it. */
import { expect, test } from "vitest";
import { type OwnFile, removedFrom } from "../../../../../workers/connection/session/setup.ts";

const SHARED = "/home/.config/mcp/mcp.json";
const MINE = "/agent/mcp.json";
const CLONE = "/clone/.mcp.json";
const PI = "/clone/.pi/mcp.json";
const ORIGINS = [
  [SHARED, "user"],
  [MINE, "user"],
  [CLONE, "project-file"],
  [PI, "project-pi"],
] as const;

const SERVER = { command: "x" };
const OVERRIDE = { enabled: false };
const WRONG = { command: 7 };

/** The files that exist, with what each says of the server `d`. */
const files = (entries: Readonly<Record<string, object | string>>): OwnFile[] =>
  ORIGINS.map(([file, origin]) => {
    const entry = entries[file];
    const text = typeof entry === "object" ? JSON.stringify({ mcpServers: { d: entry } }) : entry;
    return { source: { file, origin, required: false }, text };
  });

test.each<
  [
    what: string,
    entries: Record<string, object | string>,
    given: { wanted?: string; inEffect?: string },
    expected: string | undefined,
  ]
>([
  ["only the user's file", { [MINE]: SERVER }, { inEffect: MINE }, MINE],
  ["only the clone's file", { [CLONE]: SERVER }, { inEffect: CLONE }, CLONE],
  ["both, the clone's counts", { [MINE]: SERVER, [CLONE]: SERVER }, { inEffect: CLONE }, MINE],
  [
    "both, and the person was shown the clone's",
    { [MINE]: SERVER, [CLONE]: SERVER },
    { inEffect: CLONE, wanted: CLONE },
    CLONE,
  ],
  ["both files of the user", { [SHARED]: SERVER, [MINE]: SERVER }, { inEffect: MINE }, MINE],
  [
    "the user's file only changes the clone's server",
    { [MINE]: OVERRIDE, [CLONE]: SERVER },
    { inEffect: CLONE },
    CLONE,
  ],
  [
    "the project's own file only changes the clone's server",
    { [CLONE]: SERVER, [PI]: OVERRIDE },
    { inEffect: CLONE },
    CLONE,
  ],
  ["a mistake in the user's file", { [MINE]: WRONG }, {}, MINE],
  ["a mistake in each file", { [MINE]: WRONG, [CLONE]: WRONG }, {}, CLONE],
  ["a file that cannot be read", { [MINE]: "{", [CLONE]: SERVER }, { inEffect: CLONE }, CLONE],
  ["a wanted file that does not name it", { [MINE]: SERVER }, { inEffect: MINE, wanted: CLONE }, MINE],
  ["a wanted file that is not ours", { [MINE]: SERVER }, { inEffect: MINE, wanted: "/etc/passwd" }, MINE],
  ["no file", {}, {}, undefined],
])("%s -> %#", (_what, entries, given, expected) => {
  expect(removedFrom("d", files(entries), given)).toBe(expected);
});
