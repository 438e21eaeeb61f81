/** Attacks by what a server over stdio writes: the size, the shape and the order of its messages. */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { toolResultTexts } from "../../support/model.ts";
import { type Arena, callOf } from "../support/arena.ts";
import { type Entry, type Place, type Row, SERVER_CHECKS } from "../support/row.ts";
import { answering, aTool, helloOf, nested } from "./answering.ts";

const WORK = [{ tool: "work" }];
/** More than the model is shown of any result. */
const RESULT_CHARS = 60_000;

const answered =
  (bodies: Record<string, string> | ((place: Place) => Record<string, string>)) =>
  (place: Place): Promise<Entry> =>
    answering(place, typeof bodies === "function" ? bodies(place) : bodies);

const isShort = (arena: Arena): string[] => {
  const long = arena.requests.flatMap(toolResultTexts).filter(({ length }) => length > RESULT_CHARS);
  return long.map(({ length }) => `the model was shown a result of ${length} characters`);
};

const workerEnds = ({ notices }: Arena): string[] =>
  notices
    .map(({ message }) => message)
    .filter((message) => /worker ended unexpectedly|out of memory/.test(message));

const count = async ({ place }: Arena, what: string): Promise<number> =>
  (await place.seen()).filter((line) => line === what).length;

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

const FLOODS: readonly Row[] = [
  {
    name: "tools/list of 60 MiB that is 20 million empty objects",
    finding: "C2",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-list.mjs", "60", "{}"),
    happened: "sent",
    watchMs: 1_000,
    act: (arena) => arena.connected(),
    check: workerEnds,
  },
  {
    name: "a result of 60 MiB that is 20 million empty objects",
    finding: "C2",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-result.mjs", "60", "{}"),
    calls: WORK,
    watchMs: 3_000,
    check: workerEnds,
  },
  {
    name: "structured content of 60 MiB that is 30 million numbers",
    finding: "C2",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-result.mjs", "60", "0", "structured"),
    calls: WORK,
    watchMs: 3_000,
    check: workerEnds,
  },
  {
    name: "a result of 60 MiB of plain text, which is no attack: the model gets its start and end",
    finding: "C2",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("big-text.mjs", "60"),
    act: async (arena) => {
      const { text } = await arena.use(arena.place.server, "work");
      if (!text.includes("first words") || !text.includes("last words"))
        throw new Error(`not the result: ${text.slice(0, 300)}`);
    },
    check: isShort,
  },
  {
    name: "a server that asks without end and never reads an answer",
    finding: "M5",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("asks-never-reads.mjs"),
    happened: "asks",
    act: async (arena) => {
      const pid = Number((await arena.place.seen()).find((line) => line.startsWith("pid "))?.slice(4));
      if (!(await arena.until(() => isGone(pid), 20_000)))
        throw new Error("the server still asks after 20 s");
    },
    check: workerEnds,
  },
  {
    name: "a flood on stderr",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-stderr.mjs"),
    calls: WORK,
  },
  {
    name: "garbage that never ends its line",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("garbage-without-end.mjs"),
  },
  {
    name: "empty lines without end",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("empty-lines.mjs"),
    calls: WORK,
  },
  {
    name: "200,000 responses to requests that were never made",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("unasked-responses.mjs"),
    calls: WORK,
  },
  {
    name: "100,000 steps of progress in one call",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-progress.mjs"),
    calls: WORK,
  },
  ...[
    ["notifications/tools/list_changed", "{}"],
    ["notifications/message", '{"level":"error","data":"\\u001b]0;title\\u0007 a line"}'],
    ["notifications/resources/updated", '{"uri":"x"}'],
    ["notifications/cancelled", '{"requestId":1}'],
    ["__proto__", '{"__proto__":{"polluted":true}}'],
  ].map(
    ([method = "", params = ""]): Row => ({
      name: `30,000 notifications of ${method}`,
      finding: "own",
      checks: SERVER_CHECKS,
      server: ({ hostile }) => hostile("floods-notifications.mjs", "30000", method, params),
      happened: "sent",
    }),
  ),
  {
    name: "batches of 200,000 messages, of none, and of batches",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("batches.mjs"),
    happened: "sent",
  },
  {
    name: "1,600 requests of its own with ids of every kind",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("asks-for-everything.mjs"),
    calls: WORK,
  },
];

const SHAPES: readonly Row[] = [
  {
    name: "JSON nested 100,000 deep as list, as schema, as result and as error data",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/list": `{"tools":[${JSON.stringify(aTool("work"))},{"name":"deep","inputSchema":${nested(100_000, '{"type":"object","properties":{"a":', "{}", "}}")}}]}`,
      "tools/call": `{"content":[{"type":"text","text":"x"}],"structuredContent":${nested(100_000)}}`,
    }),
    calls: [{ tool: "work" }, { tool: "deep" }],
  },
  {
    name: "error data nested 100,000 deep",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({ "tools/call": `error {"code":-32000,"message":"no","data":${nested(100_000)}}` }),
    calls: WORK,
    check: isShort,
  },
  {
    name: "lists nested 1,000,000 deep as a result",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/call": `{"content":[],"structuredContent":{"a":${nested(1_000_000, "[", "", "]")}}}`,
    }),
    calls: WORK,
  },
  {
    name: "each answer twice, and before it answers to wrong ids",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("answers-twice.mjs"),
    act: async (arena) => {
      const { text } = await arena.use(arena.place.server, "work");
      if (text !== "right") throw new Error(`the answer was ${text.slice(0, 100)}`);
    },
  },
  {
    name: "a result with 10,000 parts",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/call": JSON.stringify({
        content: Array.from({ length: 10_000 }, (_, i) => ({ type: "text", text: `part ${i} \u001b[2J` })),
      }),
    }),
    calls: WORK,
    check: isShort,
  },
  {
    name: "10,000 images, and images whose data tell a wrong size or type",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({ "tools/call": JSON.stringify({ content: wrongImages() }) }),
    calls: WORK,
  },
  {
    name: "an error message of 10 MB",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/call": `error ${JSON.stringify({ code: -32000, message: `\u001b]0;x\u0007${"no ".repeat(3_000_000)}` })}`,
    }),
    calls: WORK,
    check: isShort,
  },
  {
    name: "error data of 20 MB",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/call": `error ${JSON.stringify({ code: -32000, message: "no", data: Array.from({ length: 2_000_000 }, () => "abcdefg") })}`,
    }),
    calls: WORK,
    check: isShort,
  },
  {
    name: "an initialize that is refused with 10 MB of words",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      initialize: `error ${JSON.stringify({ code: 1, message: "\u001b[2J no\u2028 ".repeat(1_000_000) })}`,
    }),
    happened: "initialize",
    act: async (arena) => {
      const status = await arena.status();
      if (status.length > 20_000) throw new Error(`/mcp says ${status.length} characters`);
    },
  },
  {
    name: "cursors of 10 MB, always another one",
    finding: "own",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("big-pages.mjs"),
    happened: "third page",
    check: workerEnds,
  },
  {
    name: "pages of 100 tools without end",
    finding: "own",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("endless-pages.mjs"),
    happened: "twentieth page",
  },
  {
    name: "pages of 10 MB of schemas without end: the list is given up before the worker is full",
    finding: "M5",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("heavy-pages.mjs"),
    happened: "third page",
    act: async (arena) => {
      // Until it is no longer asked for more.
      let asked = -1;
      await arena.until(async () => {
        const before = asked;
        asked = await count(arena, "tools/list");
        await sleep(1_500);
        return asked === before;
      }, 20_000);
    },
    check: workerEnds,
  },
  {
    name: "a result of 16 MiB, which a codemode script reads",
    finding: "M9",
    alone: true,
    checks: SERVER_CHECKS,
    // Pi copies what a script reads into the script's own heap.
    mainMs: 200,
    piSettings: { defaultTools: ["ToolSearch", "codemode"], extensions: ["-builtin:mcp"] },
    server: ({ hostile }) => hostile("big-text.mjs", "16"),
    act: async (arena) => {
      const code = `const result = await tools.${arena.place.server}__work({}); return typeof result;`;
      await arena.prompt(callOf("codemode", { code: "return 1" }));
      await arena.spent();
      await arena.prompt(callOf("codemode", { code }));
    },
  },
  {
    name: "instructions of 50 MB",
    finding: "own",
    alone: true,
    checks: SERVER_CHECKS,
    server: answered({ initialize: helloOf({ instructions: "Call me first. ".repeat(3_500_000) }) }),
    calls: WORK,
    check: workerEnds,
  },
  ...[
    ["a protocol version nobody knows", { protocolVersion: "9999-99-99\u001b[2J" }],
    ["a protocol version that is a list", { protocolVersion: ["2025-06-18"] }],
    ["capabilities that are null", { capabilities: null }],
    [
      "capabilities of unknown kinds",
      { capabilities: { __proto__: { a: 1 }, constructor: { a: 1 }, tools: 1 } },
    ],
    ["a name of 1 MB", { serverInfo: { name: "\u001b]0;x\u0007 ".repeat(200_000), version: "1" } }],
    ["no name", { serverInfo: null }],
  ].map(
    ([what, more]): Row => ({
      name: `an initialize with ${what}`,
      finding: "own",
      checks: SERVER_CHECKS,
      server: answered({ initialize: helloOf(more as Record<string, unknown>) }),
      happened: "initialize",
      act: async (arena) => {
        await arena.status();
      },
    }),
  ),
  {
    name: "an answer to tools/list that comes byte by byte",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("drips.mjs"),
    happened: "drips",
  },
];

/** A PNG whose header tells a size that its data do not have. */
function pngOf(width: number, height: number): string {
  const bytes = Buffer.alloc(33);
  Buffer.from("89504e470d0a1a0a0000000d49484452", "hex").copy(bytes);
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes.toString("base64");
}

function wrongImages(): Record<string, unknown>[] {
  const image = (data: unknown, mimeType: unknown) => ({ type: "image", data, mimeType });
  return [
    image(pngOf(2 ** 31, 2 ** 31), "image/png"),
    image(pngOf(0, 0), "image/png"),
    image("not base64 at all \u001b[2J", "image/png"),
    image("", "image/png"),
    image("A".repeat(8_000_000), "image/jpeg"),
    image(pngOf(10, 10), "image/../../../../evil"),
    image(pngOf(10, 10), 'image/png"\r\nx: y'),
    image(null, null),
    image({ length: 1e9 }, ["image/png"]),
    ...Array.from({ length: 10_000 }, () => image(pngOf(10, 10), "image/png")),
  ];
}

const LIFES: readonly Row[] = [
  {
    name: "tools that are renamed every 100 ms, so that names collide: the user is not told for ever",
    finding: "L4",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("renames.mjs"),
    act: () => sleep(7_000),
    check: ({ notices, place }) => {
      const about = notices.filter(({ message }) => message.includes(place.server));
      return about.length > 5 ? [`${about.length} notices in 7 s, the last: ${about.at(-1)?.message}`] : [];
    },
  },
  {
    name: "a keep-alive server that ends right after it has connected: it is not started every second",
    finding: "L5",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => ({ ...hostile("drops.mjs"), lifecycle: "keep-alive" }),
    act: () => sleep(10_000),
    check: async (arena) => {
      const starts = await count(arena, "start");
      // After 0, 1, 3 and 7 s, where each pause is twice the one before, and one to learn the tools.
      return starts > 6 ? [`${starts} starts in 10 s`] : [];
    },
  },
  {
    name: "a result with terminal escapes: the user's row and the notices do not carry them",
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
    name: "a secret on stderr in two halves: the log does not hold it",
    finding: "L7",
    alone: true,
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
    act: () => sleep(500),
    check: async ({ place }) => {
      const log = await readFile(`${place.home.agentDir}/mcp-threads.log`, "utf8").catch(() => "");
      if (!log.includes("cannot log in")) return [`the log has no line of stderr: ${log.slice(-300)}`];
      return ["sk-correct-hors", "e-battery-staple"]
        .filter((half) => log.includes(half))
        .map((half) => `the log holds ${half}`);
    },
  },
  {
    name: "a resource list with paths, controls and one URI a thousand times",
    finding: "own",
    checks: [...SERVER_CHECKS, "runs"],
    server: (place) => answering(place, resourceBodies(place)),
    act: async (arena) => {
      const { server } = arena.place;
      await arena.prompt({ toolCalls: [{ name: "ToolSearch", args: { query: "get", server, limit: 20 } }] });
      const names = arena.requests.at(-1)?.toolNames.filter((name) => name.startsWith(server)) ?? [];
      for (const name of names.slice(0, 4)) await arena.prompt({ toolCalls: [{ name, args: {} }] });
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

export const MESSAGES: readonly Row[] = [
  {
    name: "no attack at all: a server like any other",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("healthy.mjs"),
    calls: [{ tool: "echo", args: { text: "x" } }],
  },
  {
    name: "no attack at all, in a Pi of its own",
    finding: "own",
    alone: true,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("healthy.mjs"),
    calls: [{ tool: "echo", args: { text: "x" } }],
  },
  ...FLOODS,
  ...SHAPES,
  ...LIFES,
];
