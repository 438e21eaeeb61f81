/**
 * Owns: one MCP server over stdio for all benches: newline-delimited JSON-RPC, no dependencies.
 * Must not: be slow unless a bench asks for it; the benches measure the client.
 * Called by: mcp.json files of the benches, with these variables, each optional:
 *   TOOLS_FILE  a JSON array of tools as `tools/list` gives them
 *   SEEN_FILE   gets a line with name and time (milliseconds since the epoch) of each event: `initialized`,
 *               `listed`, `sent <id>` (the last byte of a payload has left), `ended` (exited without a kill)
 *   SKILLS      so many skills (SEP-2640), each with three files
 *   DELAY_FILE  while this file exists, its number delays the answer to `initialize`, in milliseconds
 *
 * Two more tools: `echo` answers its arguments; `payload {id, kind, bytes}` answers a result of about this size.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { TOOLS_FILE, SEEN_FILE, DELAY_FILE, SKILLS = "0" } = process.env;
const LINE =
  "lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore";

const OWN_TOOLS = [
  {
    name: "echo",
    description: "Answers what it was given.",
    inputSchema: { type: "object", properties: { text: { type: "string" } } },
  },
  {
    name: "payload",
    description: "Answers a result of a given kind and size.",
    inputSchema: {
      type: "object",
      properties: {
        id: { type: "string" },
        kind: { type: "string", enum: ["text", "line", "structured"] },
        bytes: { type: "integer" },
      },
      required: ["id", "kind", "bytes"],
    },
  },
];

const tools = [...OWN_TOOLS, ...(TOOLS_FILE ? JSON.parse(readFileSync(TOOLS_FILE, "utf8")) : [])];

const seen = (what) => {
  if (SEEN_FILE) appendFileSync(SEEN_FILE, `${what} ${performance.timeOrigin + performance.now()}\n`);
};

process.on("exit", () => seen("ended"));

const record = (index) => ({ index, name: `record ${index}`, labels: ["a", "b"], text: LINE });
/** Makes as many records as fill about `bytes` bytes of JSON. */
const records = (bytes) =>
  Array.from({ length: Math.ceil(bytes / JSON.stringify(record(10_000)).length) }, (_, i) => record(i));

function payload({ id, kind, bytes }) {
  if (kind === "structured") return { content: [], structuredContent: { id, records: records(bytes) } };
  const text =
    kind === "line"
      ? JSON.stringify({ id, records: records(bytes) })
      : `id=${id} ${`${LINE}\n`.repeat(Math.ceil(bytes / (LINE.length + 1))).slice(0, bytes)}`;
  return { content: [{ type: "text", text }] };
}

const call = ({ name, arguments: args }) =>
  name === "payload"
    ? payload(args)
    : { content: [{ type: "text", text: `${name} got ${JSON.stringify(args ?? {})}` }] };

const skill = (number) => {
  const root = `skill://bench/skill-${number}`;
  const files = ["SKILL.md", "references/a.md", "scripts/b.sh"];
  return {
    uri: `${root}/SKILL.md`,
    frontmatter: {
      name: `skill-${number}`,
      description: `Does the task ${number} of issues, files and messages.`,
    },
    resources: files.map((file) => ({
      uri: `${root}/${file}`,
      digest: `sha256:${"0".repeat(64)}`,
      size: 2_000,
    })),
  };
};
const skills = Array.from({ length: Number(SKILLS) }, (_, number) => skill(number));
const extensions =
  skills.length > 0 ? { extensions: { "io.modelcontextprotocol/skills": {} }, resources: {} } : {};

const handlers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, ...extensions },
    serverInfo: { name: "bench", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": call,
  "skills/list": () => ({ skills, ttlMs: 300_000, cacheScope: "public" }),
  "resources/list": () => ({ resources: [] }),
};

const delayMs = () => (DELAY_FILE && existsSync(DELAY_FILE) ? Number(readFileSync(DELAY_FILE, "utf8")) : 0);

function answer(id, method, params) {
  const handler = handlers[method];
  const outcome = handler
    ? { result: handler(params ?? {}) }
    : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`, () => {
    if (method === "tools/list") seen("listed");
    if (params?.name === "payload") seen(`sent ${params.arguments.id}`);
  });
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "notifications/initialized") seen("initialized");
  if (id === undefined) return;
  const waitMs = method === "initialize" ? delayMs() : 0;
  if (waitMs > 0) setTimeout(answer, waitMs, id, method, params);
  else answer(id, method, params);
});
