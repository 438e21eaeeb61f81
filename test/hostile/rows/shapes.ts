/** Attacks by the form of the answers of a server over stdio. */
import { family } from "../../support/long.ts";
import { callOf } from "../support/arena.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { answered, aTool, helloOf, nested } from "./answering.ts";
import { count, isShort, workerEnds } from "./seeing.ts";
import { besideIfSmall, shown, sized } from "./sizes.ts";

const WORK = [{ tool: "work" }];
/** More than `LIMITS.imageChars`, and more images than `LIMITS.filesPerResult`. */
const IMAGE_MB = sized(5, 8);
const IMAGES = sized(1_000, 10_000);
/** Words and data of an error: hundreds of times what may be kept of them. */
const ERROR_MB = sized(1, 10);
const ERROR_DATA_MB = sized(1, 20);
/** Small, the pages end with the 200th; whole, they end with the 10,000th tool. */
const PAGE_TOOLS = sized(10, 100);
const INSTRUCTIONS_MB = sized(1, 50);
/** More than `LIMITS.scriptResultBytes`. */
const SCRIPT_MIB = sized(5, 16);

const HELLOS: readonly [what: string, more: object][] = [
  ["an unknown protocol version", { protocolVersion: "9999-99-99\u001b[2J" }],
  [
    "capabilities of unknown kinds",
    { capabilities: { __proto__: { a: 1 }, constructor: { a: 1 }, tools: 1 } },
  ],
  ["a name of 1 MB", { serverInfo: { name: "\u001b]0;x\u0007 ".repeat(200_000), version: "1" } }],
  // The SDK's schema of the answer refuses these.
  ...family<[string, object]>([
    ["no name", { serverInfo: null }],
    ["a protocol version that is a list", { protocolVersion: ["2025-06-18"] }],
    ["capabilities that are null", { capabilities: null }],
  ]),
];

export const SHAPES: readonly Row[] = [
  ...family<Row>([
    {
      name: "a server that answers with JSON nested 100,000 levels deep as schema and as result",
      finding: "own",
      checks: SERVER_CHECKS,
      server: answered({
        "tools/list": `{"tools":[${JSON.stringify(aTool("work"))},{"name":"deep","inputSchema":${nested(100_000, '{"type":"object","properties":{"a":', "{}", "}}")}}]}`,
        "tools/call": `{"content":[{"type":"text","text":"x"}],"structuredContent":${nested(100_000)}}`,
      }),
      calls: [{ tool: "work" }, { tool: "deep" }],
    },
    {
      name: "a server that answers with lists nested 1,000,000 levels deep",
      finding: "own",
      checks: SERVER_CHECKS,
      server: answered({
        "tools/call": `{"content":[],"structuredContent":{"a":${nested(1_000_000, "[", "", "]")}}}`,
      }),
      calls: WORK,
    },
  ]),
  {
    name: "a server that answers with error data nested 100,000 levels deep",
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({ "tools/call": `error {"code":-32000,"message":"no","data":${nested(100_000)}}` }),
    calls: WORK,
    check: isShort,
  },
  {
    name: "a server that answers wrong ids first and then answers the call twice",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("answers-twice.mjs"),
    act: async (arena) => {
      const { text } = await arena.use(arena.place.server, "work");
      if (text !== "right") throw new Error(`the answer was ${text.slice(0, 100)}`);
    },
  },
  {
    name: "a server that answers with 10,000 parts",
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
    name: `a server that answers with ${shown(IMAGES)} images and with images of a wrong size or type`,
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({ "tools/call": JSON.stringify({ content: wrongImages() }) }),
    calls: WORK,
  },
  {
    name: `a server that answers with an error message of ${ERROR_MB} MB`,
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/call": `error ${JSON.stringify({ code: -32000, message: `\u001b]0;x\u0007${"no ".repeat(ERROR_MB * 300_000)}` })}`,
    }),
    calls: WORK,
    check: isShort,
  },
  {
    name: `a server that answers with error data of ${ERROR_DATA_MB} MB`,
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      "tools/call": `error ${JSON.stringify({ code: -32000, message: "no", data: Array.from({ length: ERROR_DATA_MB * 100_000 }, () => "abcdefg") })}`,
    }),
    calls: WORK,
    check: isShort,
  },
  {
    name: `a server that refuses initialize with ${ERROR_MB} MB of words`,
    finding: "own",
    checks: SERVER_CHECKS,
    server: answered({
      initialize: `error ${JSON.stringify({ code: 1, message: "\u001b[2J no\u2028 ".repeat(ERROR_MB * 100_000) })}`,
    }),
    happened: "initialize",
    act: async (arena) => {
      const { server } = arena.place;
      const said = (await arena.status()).split("\n").find((line) => line.startsWith(`${server}: `)) ?? "";
      // Servers of other rows have lines of their own.
      if (said === "" || said.length > 10_000) throw new Error(`/mcp says ${said.length} characters of it`);
    },
  },
  {
    name: `a server that gives pages of ${PAGE_TOOLS} tools without end`,
    finding: "own",
    ...besideIfSmall,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("endless-pages.mjs", `${PAGE_TOOLS}`),
    happened: "twentieth page",
  },
  // The characters of all pages together have a limit.
  ...family<Row>([
    {
      name: "a server that gives pages of 10 MB without end: the client gives up the list before its memory is full",
      finding: "M5",
      beside: false,
      checks: SERVER_CHECKS,
      server: ({ hostile }) => hostile("heavy-pages.mjs"),
      happened: "third page",
      act: (arena) => arena.connected(),
      check: async (arena) => {
        // Four pages are longer than `LIMITS.listBytes`; a list may be asked for twice.
        const pages = await count(arena, "tools/list");
        return pages > 10 ? [`${pages} pages were asked for`] : workerEnds(arena);
      },
    },
    {
      name: "a server that gives each page another cursor of 10 MB",
      finding: "own",
      beside: false,
      checks: SERVER_CHECKS,
      server: ({ hostile }) => hostile("big-pages.mjs"),
      happened: "third page",
      check: workerEnds,
    },
  ]),
  {
    name: `a server that answers a codemode script with ${SCRIPT_MIB} MiB`,
    finding: "M9",
    alone: "home",
    checks: SERVER_CHECKS,
    // Pi copies the result into the script's own heap.
    mainMs: 200,
    piSettings: { defaultTools: ["ToolSearch", "codemode"], extensions: ["-builtin:mcp"] },
    server: ({ hostile }) => hostile("big-text.mjs", `${SCRIPT_MIB}`),
    act: async (arena) => {
      const code = `const result = await tools.${arena.place.server}__work({}); return typeof result;`;
      await arena.prompt(callOf("codemode", { code: "return 1" }));
      await arena.spent();
      await arena.prompt(callOf("codemode", { code }));
    },
  },
  {
    name: `a server with instructions of ${INSTRUCTIONS_MB} MB`,
    finding: "own",
    ...sized({}, { alone: "home" as const }),
    checks: SERVER_CHECKS,
    server: answered({
      initialize: helloOf({ instructions: "Call me first. ".repeat(INSTRUCTIONS_MB * 70_000) }),
    }),
    calls: WORK,
    check: workerEnds,
  },
  ...HELLOS.map(
    ([what, more]): Row => ({
      name: `a server that answers initialize with ${what}`,
      finding: "own",
      checks: SERVER_CHECKS,
      server: answered({ initialize: helloOf({ ...more }) }),
      happened: "initialize",
      act: async (arena) => {
        await arena.status();
      },
    }),
  ),
  {
    name: "a server that answers tools/list byte by byte",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("drips.mjs"),
    happened: "drips",
  },
];

/** Returns a PNG, in base64, whose header states a size that the data do not have. */
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
    image("A".repeat(IMAGE_MB * 1_000_000), "image/jpeg"),
    image(pngOf(10, 10), "image/../../../../evil"),
    image(pngOf(10, 10), 'image/png"\r\nx: y'),
    image(null, null),
    image({ length: 1e9 }, ["image/png"]),
    ...Array.from({ length: IMAGES }, () => image(pngOf(10, 10), "image/png")),
  ];
}
