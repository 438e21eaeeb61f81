/** Owns: what the panel's tests share: a reading of the session, keys, and a picture without colours. */
import type { ServerDetails } from "../../../../src/shared/protocol/person.ts";
import { draw } from "../../../../src/ui/panel/draw/draw.ts";
import { onKey } from "../../../../src/ui/panel/model/model.ts";
import {
  type Effect,
  START,
  type State,
  type ToolList,
  type ToolRow,
  type World,
  withView,
} from "../../../../src/ui/panel/model/state.ts";
import type { Key } from "../../../../src/ui/screen/list.ts";
import { makeReport, makeStatus } from "../../server-status.ts";

export const NOW = 1_800_000_000_000;

export const makeWorld = (rest: Partial<World> = {}): World => ({
  ...makeReport(),
  costs: new Map(),
  details: new Map(),
  tools: new Map(),
  tokensOf: () => undefined,
  chosen: new Map(),
  schema: undefined,
  log: undefined,
  report: undefined,
  tried: undefined,
  index: [],
  decisions: undefined,
  loaded: new Set(),
  unread: [],
  home: "/home/ann",
  now: NOW,
  ...rest,
});

export function makeTools(keys: readonly string[], rest: Partial<ToolRow> = {}): ToolList {
  const rows = keys.map(
    (key): ToolRow => ({
      key,
      name: `files__${key}`,
      description: `It does ${key}. Then it ends.`,
      exposure: "search",
      place: undefined,
      text: key.toLowerCase(),
      ...rest,
    }),
  );
  return { rows, at: new Map(keys.map((key, i) => [key, i])) };
}

export const makeDetails = (rest: Partial<ServerDetails> = {}): ServerDetails => ({
  runs: "npx -y server-filesystem .",
  file: "/home/ann/.pi/agent/mcp.json",
  line: 7,
  overrides: [],
  env: ["DEBUG", "TOKEN"],
  lifecycle: "lazy",
  approve: "settings",
  toolPrefix: "server",
  ownPrefix: false,
  presets: { approve: "never", toolPrefix: "server" },
  timeouts: ["call 30 s"],
  connectedAt: NOW - 300_000,
  tools: {
    names: ["read", "write", "delete"],
    exposures: ["direct", "search", "hidden"],
    rules: [-1, -1, -1],
    places: [],
  },
  ...rest,
});

export const PLAIN = { fg: (_colour: string, text: string) => text, bold: (text: string) => text };

/** The state in which this server is chosen in the first view. */
const at = (server: string, state: State): State =>
  withView(state, { name: "servers", list: { filter: "", key: `server ${server}`, at: 0 } });

/** Presses the keys one after another. A word in quotes, such as `"abc"`, is typed; `@abc` chooses that server. */
export function press(
  keys: string,
  world: World,
  {
    from = START,
    page = 5,
    lines = 0,
    column,
  }: { from?: State; page?: number; lines?: number; column?: number | undefined } = {},
): { state: State; effects: Effect[] } {
  const effects: Effect[] = [];
  let state = from;
  for (const word of keys.split(" ").filter((one) => one !== "")) {
    if (word.startsWith("@")) {
      state = at(word.slice(1), state);
      continue;
    }
    const key = word.startsWith('"') ? { text: word.slice(1, -1) } : (word as Key);
    const step = onKey(state, key, { world, page, lines, column });
    state = step.state;
    if (step.effect) effects.push(step.effect);
  }
  return { state, effects };
}

/** The screen as text, without the borders' cells at the right end. */
export const picture = (state: State, world: World, width = 60, height = 19): string =>
  `\n${draw(state, world, { width, height, theme: PLAIN })
    .map((line) => line.trimEnd())
    .join("\n")}\n`;

export const USUAL: World = makeWorld({
  servers: [
    makeStatus("github", {
      transport: "http",
      toolCount: 42,
      resourceCount: 3,
      direct: true,
      protocol: "2026-07-28",
      source: "/home/ann/.pi/agent/mcp.json",
      description: "Issues, pull requests and code of github.com",
      signIn: { state: "signed-in", expiresAt: NOW + 42 * 60_000, renews: true },
    }),
    makeStatus("files", { pid: 4711, protocol: "2025-11-25", source: "/home/ann/.pi/agent/mcp.json" }),
    makeStatus("linear", {
      transport: "http",
      state: "needs-auth",
      toolsKnown: false,
      signIn: { state: "needed" },
    }),
    makeStatus("browser", {
      state: "failed",
      toolsKnown: false,
      error: {
        code: "spawn_failed",
        message: 'browser: the command "npx" was not found.',
        remedy: "Check command, cwd and PATH in mcp.json.",
      },
    }),
    makeStatus("old", { state: "disabled", toolCount: 0, source: "/home/ann/.config/mcp/mcp.json" }),
  ],
  questions: [{ server: "site", hash: "1", question: 'site: make "serve", from /home/ann/site/.mcp.json' }],
  refused: [{ name: "shady", reason: "you refused it in this folder" }],
  problems: [
    {
      severity: "error",
      file: "/home/ann/.pi/agent/mcp.json",
      line: 12,
      column: 5,
      key: "mcpServers.x.args",
      message: "expected a list, found a string",
      remedy: 'Write ["-y", "server"].',
    },
  ],
  costs: new Map([
    ["github", { declared: 1_240, all: 18_300, declaredTools: 4, isWhole: true }],
    ["files", { declared: 0, all: 960, declaredTools: 0, isWhole: true }],
  ]),
});
