// Sends one message that is within every limit of size and takes long to read: `heavy.mjs <kind> <number>`. `connect` kinds
// come with the handshake or the list of tools, the others with a call.
import { seen, send, serve, text, tool } from "./lib.mjs";

const [kind, number] = [process.argv[2], Number(process.argv[3])];
const write = (line, then) => process.stdout.write(`${line}\n`, then);
/** JSON of an object with this many keys, no two alike. */
const keys = (count) => `{${Array.from({ length: count }, (_, i) => `"k${i.toString(36)}":0`).join(",")}}`;
const list = (item, count) => `[${Array(count).fill(item).join(",")}]`;
const answer = (id, result) => write(`{"jsonrpc":"2.0","id":${id},"result":${result}}`, () => seen(kind));
const BLOCKS = `"content":[{"type":"text","text":"heavy done"}]`;

/** A schema of `nodes` nodes. */
const schema = (nodes) => `{"type":"object","properties":{"a":{"enum":${list("0", nodes)}}}}`;

const CALLS = {
  keys: (id) => answer(id, `{${BLOCKS},"structuredContent":${keys(number)}}`),
  meta: (id) => answer(id, `{${BLOCKS},"_meta":${keys(number)}}`),
  parts: (id) => answer(id, `{"content":${list('{"type":"odd"}', number)}}`),
  links: (id) =>
    answer(
      id,
      `{"content":[${Array.from({ length: number }, (_, i) => `{"type":"resource_link","uri":"x:${i}","name":"n"}`).join(",")}]}`,
    ),
  error: (id) =>
    write(`{"jsonrpc":"2.0","id":${id},"error":{"code":1,"message":"refused","data":${keys(number)}}}`, () =>
      seen(kind),
    ),
  notification: (id) => {
    write(
      `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${keys(number)}}}`,
    );
    answer(id, `{${BLOCKS}}`);
  },
  request: (id) => {
    write(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":${keys(number)}}`);
    answer(id, `{${BLOCKS}}`);
  },
  // RFC 8259, section 7: each character of a key may be written as an escape.
  escaped: (id) => {
    write(`{"jsonrpc":"2.0","\\u006dethod":"notifications/x","params":"${"x".repeat(number)}"}`, () =>
      seen(kind),
    );
    answer(id, `{${BLOCKS}}`);
  },
  deep: (id) => {
    write(
      `{"jsonrpc":"2.0","method":"notifications/x","params":${"[".repeat(number)}${"]".repeat(number)}}`,
      () => seen(kind),
    );
    answer(id, `{${BLOCKS}}`);
  },
};

const marks = ({ id }) =>
  answer(
    id,
    `{"contents":[{"uri":"x:a","text":"a${"\u0301".repeat(number)}"}],"messages":[{"role":"user","content":{"type":"text","text":"a${"\u0301".repeat(number)}"}}]}`,
  );

const ANSWERS = {
  // For a message of the person, which Pi draws itself.
  marks: { "resources/read": marks, "prompts/get": marks },
  capabilities: {
    initialize: ({ id }) =>
      answer(
        id,
        `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},${keys(number).slice(1)},"serverInfo":{"name":"h","version":"1"}}`,
      ),
  },
  tools: {
    "tools/list": ({ id }) =>
      answer(
        id,
        `{"tools":[{"name":"work","inputSchema":{"type":"object"}},${Array.from({ length: Math.ceil(number / 19_000) }, (_, i) => `{"name":"t${i}","inputSchema":${schema(19_000)}}`).join(",")}]}`,
      ),
  },
  names: {
    "tools/list": ({ id }) =>
      answer(
        id,
        `{"tools":[{"name":"work","inputSchema":{"type":"object"}},${Array.from({ length: number }, (_, i) => `{"name":"t${i}"}`).join(",")}]}`,
      ),
  },
};

serve(
  {
    "tools/call": ({ id }) => (CALLS[kind] ? CALLS[kind](id) : void send({ id, result: text("heavy done") })),
    ...ANSWERS[kind],
  },
  [tool("work")],
);
