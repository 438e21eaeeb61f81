/**
 * Owns: every way that a text of a server takes to the model or to a person, with every class of characters that act on a
 * terminal or that nobody sees. A new way is a row of `WAYS`, a new class a line of `CLASSES`.
 */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { errorLineOf, markedInstructions, signatureLine } from "../../src/report/search.ts";
import { renderResources, renderStatus, renderTools } from "../../src/report/status.ts";
import { describeTool, renderTool } from "../../src/report/tool.ts";
import { type CallResult, decode } from "../../src/shared/protocol/calls.ts";
import { createMcpTool } from "../../src/tools/definition.ts";
import { questionText } from "../../src/ui/asks/words.ts";
import { MODERN } from "../support/modern-http.ts";
import {
  currentCatalog,
  fixture,
  fixtures,
  forRows,
  type Started,
  start,
  startHttp,
  textOf,
} from "./support.ts";

/** Name -> what hides or acts. Each group stands in one text of one server. */
const CLASSES = {
  "what nobody sees": {
    tags: "\u{e0041}\u{e007f}",
    "zero-width space": "\u200b",
    joiner: "\u200d",
    "non-joiner": "\u200c",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "variation selector": "\ufe01",
    "supplementary variation selector": "\u{e0101}",
    "soft hyphen": "\u00ad",
    "grapheme joiner": "\u034f",
    filler: "\u3164",
    "Mongolian separator": "\u180e",
    "musical mark": "\u{1d173}",
    "joiner of hieroglyphs": "\u{13430}",
  },
  "what turns letters": {
    override: "\u202e",
    embedding: "\u202a",
    isolate: "\u2066",
    "left-to-right mark": "\u200e",
    "Arabic mark": "\u061c",
  },
  "what acts on a terminal": {
    colour: "\u001b[31m",
    screen: "\u001b[2J",
    title: "\u001b]0;t\u0007",
    link: "\u001b]8;;x:y\u001b\\",
    device: "\u001bPq\u001b\\",
    reset: "\u001bc",
    "C1 sequence": "\u009b2J",
  },
  "controls and ends of lines": {
    NUL: "\0",
    bell: "\u0007",
    backspace: "\b",
    delete: "\u007f",
    "next line": "\u0085",
    return: "\r",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    note: "\ufff9",
    "half a pair": "\ud83d",
  },
} as const satisfies Record<string, Record<string, string>>;

type Group = keyof typeof CLASSES;
const GROUPS = Object.keys(CLASSES) as Group[];

/** `<` and `>` around each character show that the words came through. */
const wordsOf = (group: Group): string =>
  Object.values(CLASSES[group])
    .map((hidden) => `<${hidden}>`)
    .join("");

/** The classes that the text still holds. Of a sequence, its first character counts. */
const hiddenIn = (text: string, group: Group): string[] =>
  Object.entries(CLASSES[group])
    .filter(([name, hidden]) => {
      if (name === "half a pair") return !text.isWellFormed();
      return text.includes(String.fromCodePoint(hidden.codePointAt(0) ?? 0));
    })
    .map(([name]) => name);

/** All texts in a value, its keys among them. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => [key, ...textsIn(member)]);
}

/** The worker with one server for each group, one that dies, one of the stateless era, and one that answers HTTP errors. */
const shared = forRows(async () => {
  const servers = await Promise.all(
    GROUPS.map(async (group, at) => {
      const words = wordsOf(group);
      const env = { SAYS: JSON.stringify(words) };
      const body = await startHttp((_request, response) => {
        response.writeHead(500, { "content-type": "text/plain; charset=utf-8" }).end(words);
      });
      const page = await startHttp((_request, response) => {
        response
          .writeHead(404, { "content-type": "text/html" })
          .end(`<title>|${words.replace(/[<>]/g, "")}|</title>`);
      });
      return {
        [`says${at}`]: fixture("says.mjs", env, { debug: true }),
        [`dies${at}`]: fixture("says.mjs", { ...env, DIES: "1" }),
        [`http${at}`]: { url: `${body}/mcp` },
        [`page${at}`]: { url: `${page}/mcp` },
      };
    }),
  );
  const tasks = {
    command: process.execPath,
    args: [join(fixtures, "modern", "tasks.mjs")],
    protocol: MODERN,
  };
  const started = await start(Object.assign({ tasks }, ...servers));
  await started.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return started;
});

interface Said {
  at: Started;
  group: Group;
  /** Of the server that says the group. */
  server: string;
  words: string;
}

/** A Pi tool of the server, whose calls go to the worker. `called`: the name of the tool that the call reaches. */
async function piTool({ at, server }: Said, called = "call") {
  const catalog = await currentCatalog(at);
  const tool = catalog.tools.find((one) => one.server.name === server && one.tool === called);
  if (!tool) throw new Error(`no tool ${called} of ${server}`);
  const progress: unknown[] = [];
  const pi = createMcpTool(tool, async ({ args, onProgress }) => {
    const since = at.events.length;
    const answer = await at.call(server, called, args);
    // Events and replies take different ports.
    if ("progress" in args) await at.event("progress", () => true, since);
    for (const event of at.events.slice(since))
      if (event.type === "progress") onProgress(event.message, event);
    return answer;
  });
  const run = async (args: object) => {
    const onUpdate = (update: unknown) => progress.push(update);
    const result = await pi.execute("c", args as Record<string, unknown>, undefined, onUpdate, {} as never);
    const theme = { fg: (_colour: string, text: string) => text, bold: (text: string) => text };
    const context = { expanded: true, isError: false, keyHint: () => "" };
    const row = pi.renderResult?.(
      result as never,
      { isPartial: false } as never,
      theme as never,
      context as never,
    );
    return { content: result.content, row: row?.render(100), progress };
  };
  return { tool, pi, run };
}

/** What the model and the person read of a call that answers this. */
const result =
  (answer: object) =>
  async (said: Said): Promise<unknown> =>
    (await piTool(said)).run({ result: answer });
const block = (content: object) => result({ content: [content] });
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const link = (key: string) => block({ type: "resource_link", uri: "x://y", name: "n", [key]: "x:WORDS" });

const QUESTION = {
  message: "WORDS",
  requestedSchema: {
    type: "object",
    properties: {
      WORDS: { type: "string", title: "WORDS", description: "WORDS", default: "WORDS" },
      b: { type: "string", enum: ["x"], enumNames: ["WORDS"] },
      c: { type: "string", oneOf: [{ const: "y", title: "WORDS" }] },
      d: { type: "string", enum: ["WORDS"] },
    },
  },
};

const person = async ({ at, server }: Said, prompt: string): Promise<CallResult> =>
  decode(await at.runtime.ask("getPrompt", { server, prompt, args: {} })) as CallResult;

const statusText = async ({ at }: Said, name: string): Promise<unknown> => {
  const { servers } = await at.runtime.ask("status", {});
  const status = servers.find((server) => server.name === name);
  if (!status?.error) throw new Error(`${name} has not failed`);
  return [
    errorLineOf(name, status.error),
    renderStatus({ servers: [status], problems: [], refused: [], questions: [], files: [] } as never),
  ];
};

/** Where a text goes -> what is read there. */
const WAYS: Record<string, (said: Said) => Promise<unknown>> = {
  "a text": block({ type: "text", text: "WORDS" }),
  "a bare text": result({ content: ["WORDS"] }),
  "a failure's text": result({ content: [{ type: "text", text: "WORDS" }], isError: true }),
  "a text among cut ones": result({
    content: [{ type: "text", text: `WORDS${"line\n".repeat(5_000)}WORDS` }],
  }),
  "an outline": result({ content: [{ type: "text", text: `{"WORDS":["WORDS","${"x".repeat(60_000)}"]}` }] }),
  "a resource's text": block({ type: "resource", resource: { uri: "a:b", text: "WORDS" } }),
  "a resource's address": block({ type: "resource", resource: { uri: "a:WORDS", text: "t" } }),
  "a resource's bytes that are text": async (said) => {
    const blob = base64(said.words.toWellFormed());
    return block({ type: "resource", resource: { uri: "a:b", mimeType: "text/plain", blob } })(said);
  },
  "a link's address": link("uri"),
  "a link's name": link("name"),
  "a link's title": link("title"),
  "a link's description": link("description"),
  "structured content": result({ structuredContent: { "k WORDS": "WORDS", list: ["WORDS"] } }),
  "structured content with a number of many digits": result({
    structuredContent: { "k WORDS": "WORDS", id: 2 ** 60 },
  }),
  "an unknown kind": block({ type: "WORDS" }),
  "a text for the person": async (said) =>
    (
      await said.at.call(said.server, "call", {
        result: { content: [{ type: "text", text: "WORDS", annotations: { audience: ["user"] } }] },
      })
    ).forUser,
  "an error": async (said) =>
    (await piTool(said)).run({ error: { code: -32_000, message: "WORDS", data: { "k WORDS": "WORDS" } } }),
  progress: async (said) =>
    (await (await piTool(said)).run({ progress: { progress: 1, message: "WORDS" } })).progress,
  "the log": async (said) => {
    await (await piTool(said)).run({
      log: { level: "error", logger: "WORDS", data: { "k WORDS": "WORDS" } },
    });
    const lines = (await said.at.log()).split("\n");
    return lines.filter((line) => line.includes(said.server));
  },
  "a question": async (said) => {
    const { at, server } = said;
    const since = at.user.ofServers().length;
    const result = at.call(server, "call", { ask: QUESTION });
    const { question, answer } = await at.question(since, (asked) => asked.server === server);
    answer({ action: "decline" });
    await result;
    const { ask } = question;
    return [ask, ask.kind === "form" ? questionText(server, ask, { mode: "tui" } as never) : ""];
  },
  "a tool's declaration": async (said) => {
    const { pi, tool } = await piTool(said, "work");
    const { name, label, description, parameters, namespace, annotations } = pi;
    const declared = [name, label, description, parameters, namespace, annotations];
    return [declared, describeTool(tool), signatureLine(tool), renderTool(tool, undefined)];
  },
  "a tool's name": async ({ at, server }) => {
    const { tools } = await currentCatalog(at);
    const odd = tools.filter((tool) => tool.server.name === server && !["work", "call"].includes(tool.tool));
    const shown = odd.map((tool) => createMcpTool(tool, async () => Promise.reject(new Error("not called"))));
    return [
      odd.map((tool) => [describeTool(tool), signatureLine(tool), renderTool(tool, undefined)]),
      shown.map(({ name, label, description, parameters }) => [name, label, description, parameters]),
    ];
  },
  "the tools that /mcp lists": async ({ at, server }) => renderTools(await currentCatalog(at), [], server),
  "instructions and the description of ToolSearch": async ({ at, server }) => {
    const catalog = await currentCatalog(at);
    const { instructions = "", description = "" } = catalog.servers.find(({ name }) => name === server) ?? {};
    return [instructions, description, markedInstructions(server, instructions), catalog.description];
  },
  "listed prompts": async ({ at, server }) =>
    (await currentCatalog(at)).servers
      .filter(({ name }) => name === server)
      .map(({ prompts = [] }) =>
        prompts.map(({ command, description, arguments: named }) => [command, description, named]),
      ),
  "a prompt's messages": async (said) => textOf(await person(said, "go")),
  "listed resources": async ({ at, server }) => {
    const listed = await at.runtime.ask("listResources", { server });
    return [listed, renderResources(listed)];
  },
  "suggested resources": async ({ at, server }) => {
    const suggested = await at.runtime.ask("suggestResources", { typed: `${server}:` });
    return suggested;
  },
  "a resource that is handed over": async ({ at, server }) =>
    textOf(decode(await at.runtime.ask("readResource", { server, uri: "x://a" })) as CallResult),
  "last words on stderr": async (said) => statusText(said, said.server.replace("says", "dies")),
  "the body of an HTTP error": async (said) => statusText(said, said.server.replace("says", "http")),
  "the title of an error page": async (said) => statusText(said, said.server.replace("says", "page")),
  "a task's state": async (said) => {
    const words = said.words.toWellFormed();
    const task = { resultType: "task", taskId: "t", status: "completed", statusMessage: words };
    const { run } = await piTool({ ...said, server: "tasks" }, "odd");
    return (await run({ result: { ...task, result: { content: [{ type: "text", text: words }] } } }))
      .progress;
  },
  "a task's failure": async (said) => {
    const task = {
      resultType: "task",
      taskId: "t",
      status: "failed",
      error: { code: 1, message: said.words },
    };
    const { run } = await piTool({ ...said, server: "tasks" }, "odd");
    return (await run({ result: task })).content;
  },
};

describe.each(GROUPS)("%s", (group) => {
  test.each(Object.keys(WAYS))("%s", async (way) => {
    const at = await shared();
    const said = { at, group, server: `says${GROUPS.indexOf(group)}`, words: wordsOf(group) };
    const texts = textsIn(await WAYS[way]?.(said));
    expect(
      texts.filter(
        (text) => text.includes("<>") || text.includes("|") || text.includes("< >") || /<\\/.test(text),
      ),
      "nothing was said",
    ).not.toEqual([]);
    expect([...new Set(texts.flatMap((text) => hiddenIn(text, group)))]).toEqual([]);
  });
});

test("values that a server completes -> one with such characters is not suggested", async () => {
  const { runtime } = await shared();
  const params = { prompt: "go", argument: "a", value: "", context: {} };
  for (const [at] of GROUPS.entries())
    expect(await runtime.ask("completePrompt", { server: `says${at}`, ...params })).toEqual(["plain"]);
});
