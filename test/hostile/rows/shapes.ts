/** Attacks by the shape of what a server over stdio answers. */
import { callOf } from "../support/arena.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { answered, aTool, helloOf, nested } from "./answering.ts";
import { isShort, workerEnds } from "./seeing.ts";

const WORK = [{ tool: "work" }];

export const SHAPES: readonly Row[] = [
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
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("big-pages.mjs"),
    happened: "third page",
    check: workerEnds,
  },
  {
    name: "pages of 100 tools without end",
    finding: "own",
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
    act: (arena) => arena.connected(),
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
