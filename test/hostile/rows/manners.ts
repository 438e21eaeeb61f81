/** Attacks by the timing of a server over stdio, and by its resources. */
import { readFile } from "node:fs/promises";
import type { Arena } from "../support/arena.ts";
import { type Place, type Row, SERVER_CHECKS } from "../support/row.ts";
import { answered, answering, helloOf } from "./answering.ts";
import { isShort } from "./seeing.ts";

const HORSE = "correct-horse-battery-staple";
const WORK = [{ tool: "work" }];
/** The last notice about a server's tools that a session shows. */
const LAST_NOTICE = "further notices about its tools are in the log";
/** The pauses before a server is started again double from 1 s on; the server itself lives for 500 ms. */
const LEAST_PAUSES_MS = [1_400, 2_400];

const logOf = ({ place }: Arena): Promise<string> =>
  readFile(`${place.home.agentDir}/mcp-threads.log`, "utf8").catch(() => "");

/** Resolves with the time of each start of the server; ms since the epoch. */
const startsOf = async ({ place }: Arena): Promise<number[]> =>
  (await place.seen()).filter((line) => line.startsWith("start ")).map((line) => Number(line.slice(6)));

export const MANNERS: readonly Row[] = [
  {
    name: "a server that renames its tools every 100 ms: the notices to the user end",
    thorough: true,
    finding: "L4",
    // The notices of other rows count towards the session's limit.
    alone: "home",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("renames.mjs"),
    act: async (arena) => {
      const isOver = (): boolean => arena.notices.some(({ message }) => message.endsWith(LAST_NOTICE));
      if (!(await arena.until(isOver, 20_000))) throw new Error("no notice says that it is the last one");
    },
    check: ({ notices, place }) => {
      // The notices about this test's own edits of mcp.json do not count.
      const about = notices.filter(
        ({ message }) => message.includes(place.server) && !message.startsWith("mcp.json: "),
      );
      return about.length > 5 ? [`${about.length} notices, the last: ${about.at(-1)?.message}`] : [];
    },
  },
  {
    name: "a keep-alive server that ends after each start: the pauses between the starts double",
    finding: "L5",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => ({ ...hostile("drops.mjs"), lifecycle: "keep-alive" }),
    act: async (arena) => {
      const isThird = async (): Promise<boolean> => (await startsOf(arena)).length >= 3;
      if (!(await arena.until(isThird, 20_000))) throw new Error("it was not started a third time");
    },
    check: async (arena) => {
      // A pause includes the life of the earlier process, so a slow machine never makes the pause shorter.
      const [first = 0, second = 0, third = 0] = await startsOf(arena);
      const pausesMs = [second - first, third - second];
      const isDoubled = pausesMs.every((pauseMs, at) => pauseMs >= (LEAST_PAUSES_MS[at] ?? 0));
      return isDoubled ? [] : [`it was started again after ${pausesMs.join(" and ")} ms`];
    },
  },
  {
    name: "a server that answers with terminal escapes: no row and no notice holds them",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/call": JSON.stringify({
        content: [{ type: "text", text: "\u001b]0;owned\u0007\u001b[2J\u009b31m red \u202e" }],
      }),
    }),
    calls: WORK,
  },
  {
    name: "a server that writes a secret to stderr in two halves: the log does not hold it",
    finding: "L7",
    checks: SERVER_CHECKS,
    server: (place) => {
      const entry = place.hostile("leaks-in-two.mjs");
      return {
        ...entry,
        env: { ...(entry.env as object), SECRET: "sk-correct-horse-battery-staple" },
        debug: true,
      };
    },
    happened: "leaked",
    act: async (arena) => {
      await arena.until(async () => (await logOf(arena)).includes(" today"));
    },
    check: async (arena) => {
      const log = await logOf(arena);
      if (!log.includes("cannot log in")) return [`the log has no line of stderr: ${log.slice(-300)}`];
      return ["sk-correct-hors", "e-battery-staple"]
        .filter((half) => log.includes(half))
        .map((half) => `the log holds ${half}`);
    },
  },
  {
    name: "a server that prints its environment, with the tokens of others, to stderr and as a failure: neither log nor model get them",
    finding: "own",
    alone: "home",
    checks: SERVER_CHECKS,
    env: () => ({ OTHER_API_KEY: `sk-${HORSE}`, OTHER_DB: `postgres://me:pw-${HORSE}@db.example/x` }),
    server: ({ hostile }) => ({ ...hostile("leaks-environment.mjs"), debug: true }),
    happened: "tools/list",
    calls: WORK,
    act: async (arena) => {
      await arena.until(async () => (await logOf(arena)).includes("OTHER_API_KEY"));
    },
    check: async (arena) => {
      const told = { "the log": await logOf(arena), "the model": arena.requests.at(-1)?.body ?? "" };
      return Object.entries(told).flatMap(([who, words]) => [
        ...(words.includes("OTHER_API_KEY")
          ? []
          : [`${who} got nothing of the environment: ${words.slice(-300)}`]),
        ...(words.includes(HORSE) ? [`${who} got a secret of the environment`] : []),
      ]);
    },
  },
  {
    name: "a server that lists resources with paths, controls and one URI a thousand times",
    finding: "own",
    checks: [...SERVER_CHECKS, "runs"],
    server: (place) => answering(place, resourceBodies(place)),
    act: async (arena) => {
      const { server } = arena.place;
      await arena.prompt({ toolCalls: [{ name: "ToolSearch", args: { query: "get", server, limit: 20 } }] });
      const names = arena.requests.at(-1)?.toolNames.filter((name) => name.startsWith(server)) ?? [];
      await arena.prompt({ toolCalls: names.slice(0, 4).map((name) => ({ name, args: {} })) });
    },
    check: isShort,
  },
];

function resourceBodies({ canaryFile }: Place): Record<string, string> {
  const uris = [
    `file://${canaryFile}`,
    "../../../../etc/passwd",
    "file:///etc/../etc/passwd\u001b[2J",
    "x:\r\ny",
    "javascript:alert(1)",
    "",
    ...Array.from({ length: 1_000 }, () => "same://uri"),
  ];
  const resources = uris.map((uri, i) => ({
    uri,
    name: `../../canary ${i}\u001b[2J\u202e`,
    mimeType: "../canary",
  }));
  const contents = [
    { uri: `file://${canaryFile}`, name: "../../canary", mimeType: "text/../../canary", blob: "AAAA" },
    { uri: "../../../canary", text: "x", mimeType: "\u001b[2J" },
    { uri: null, blob: "not base64 !" },
  ];
  return {
    initialize: helloOf(),
    "resources/list": JSON.stringify({ resources }),
    "resources/templates/list": JSON.stringify({
      resourceTemplates: [{ uriTemplate: "x://{+a}{/b*}{?c,d}{".repeat(50), name: "bad \u001b[2J" }],
    }),
    "resources/read": JSON.stringify({ contents }),
  };
}
