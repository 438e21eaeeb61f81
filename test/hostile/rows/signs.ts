/** Attacks by what a server says of its tools in `_meta`, and by pages among its resources. */
import { messageText } from "../../support/model.ts";
import { type Arena, callOf, searchOf } from "../support/arena.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { answered, aTool, helloOf, listing, listOf } from "./answering.ts";
import { shown, sized } from "./sizes.ts";

/** In the description of a tool that no model may have. */
const SECRET = "zanzibarquux";

/** A request of the model that holds the text other than by the model's own words. */
const told = ({ requests }: Arena, text: string): string[] =>
  requests
    .flatMap(({ messages, tools }) => [
      ...messages.filter(({ role }) => role !== "assistant").map(messageText),
      JSON.stringify(tools),
    ])
    .filter((words) => words.includes(text));

const declared = ({ requests }: Arena, name: string): boolean =>
  requests.some(({ toolNames }) => toolNames.includes(name));

/** Tries every way by which a model gets a tool, and calls it. Answers what the calls and searches said. */
async function reach(arena: Arena, tool: string): Promise<string[]> {
  const name = `${arena.place.server}__${tool}`;
  const ends = await arena.prompt(
    searchOf(`select:${name}`),
    searchOf(`refresh page ${tool}`, arena.place.server),
    callOf(name),
    callOf(`mcp__${name}`),
    callOf("codemode", { code: `return await tools.${name}({});` }),
  );
  return ends.map(({ text }) => text);
}

const reached = async (arena: Arena, tool: string): Promise<string[]> => {
  const name = `${arena.place.server}__${tool}`;
  const calls = (await arena.place.seen()).filter((step) => step === `called ${tool}`);
  return [
    ...(declared(arena, name) ? [`${name} was declared to the model`] : []),
    ...(calls.length > 0 ? [`${tool} was called`] : []),
  ];
};

/** Their descriptions together are longer than a snapshot may be, unless each is cut. A list of more is cut. */
const FLOOD = sized(640, 1_250);
const REASON = "only to its own pages";

export const SIGNS: readonly Row[] = [
  {
    name: "a server with a tool for its own pages that the user's file makes direct: no model has it, finds it or calls it",
    finding: "own",
    alone: "home",
    checks: SERVER_CHECKS,
    piSettings: { defaultTools: ["read", "bash", "edit", "write", "ToolSearch", "codemode"] },
    server: (place) => ({ ...place.hostile("turns-app.mjs", SECRET), directTools: ["refresh"] }),
    act: async (arena) => {
      const said = await reach(arena, "refresh");
      if (!said.some((text) => text.includes(REASON))) throw new Error(`nobody says why: ${said.join("\n")}`);
    },
    check: async (arena) => [
      ...(await reached(arena, "refresh")),
      ...told(arena, SECRET).map(() => "its description reached the model"),
    ],
  },
  {
    name: "a server with a tool for its own pages behind the proxy tool: not described, not found, not called",
    thorough: true,
    finding: "own",
    alone: "home",
    settings: { proxyTool: true },
    checks: SERVER_CHECKS,
    server: (place) => ({ ...place.hostile("turns-app.mjs", SECRET), directTools: ["refresh"] }),
    act: async (arena) => {
      const name = `${arena.place.server}__refresh`;
      const ends = await arena.prompt(
        callOf("mcp", { tool: name }),
        callOf("mcp", { tool: "refresh", server: arena.place.server }),
        callOf("mcp", { describe: name }),
        callOf("mcp", { search: "refresh" }),
        callOf("mcp", { search: "re.*", regex: true }),
        callOf("mcp", { server: arena.place.server, includeSchemas: true }),
      );
      const [called, ...others] = ends.map(({ text }) => text);
      if (!called?.includes(REASON)) throw new Error(`the call does not say why: ${called}`);
      const shown = others.filter((text) => text.includes(`${name} - `));
      if (shown.length > 0) throw new Error(`it is listed: ${shown[0]}`);
    },
    check: (arena) => reached(arena, "refresh"),
  },
  {
    name: "a server that keeps a tool for its own pages once the model has it: its next call is refused, and it is gone",
    finding: "own",
    checks: SERVER_CHECKS,
    server: (place) => place.hostile("turns-app.mjs", SECRET),
    calls: [{ tool: "work" }],
    act: async (arena) => {
      if (!(await arena.until(async () => (await arena.place.seen()).includes("turned"))))
        throw new Error("the changed list was never asked for");
      const before = (await arena.place.seen()).filter((step) => step === "called work").length;
      const name = `${arena.place.server}__work`;
      const isGone = async (): Promise<boolean> => {
        await arena.prompt(callOf(name));
        return !arena.requests.at(-1)?.toolNames.includes(name);
      };
      const gone = await arena.until(isGone);
      const after = (await arena.place.seen()).filter((step) => step === "called work").length;
      // The list may be known a moment after the server was asked for it.
      if (after > before + 1) throw new Error(`it was called ${after - before} times more`);
      if (!gone) throw new Error("it stays declared");
    },
  },
  {
    name: "a server with visibilities of every wrong shape: hidden, and nothing else of _meta is kept",
    finding: "own",
    checks: SERVER_CHECKS,
    server: listing([
      ...[
        "model",
        7,
        true,
        {},
        [],
        [1, null],
        [["model"]],
        Array(100_000).fill("app"),
        ["app", `${"model".repeat(100_000)}`],
      ].map((visibility, i) =>
        aTool(`odd_${i}`, { _meta: { ui: { visibility }, more: "x".repeat(1_000_000) } }),
      ),
      aTool("work", { _meta: { ui: { visibility: ["model", "app"] }, __proto__: null, constructor: 7 } }),
    ]),
    calls: [{ tool: "work" }],
    act: async (arena) => {
      const [end] = await arena.prompt(searchOf("odd", arena.place.server));
      if (/odd_\d/.test(end?.text ?? "")) throw new Error(`a search finds them: ${end?.text}`);
    },
  },
  {
    name: "a server with pages among its resources and a template that makes any address: no page reaches the model",
    finding: "own",
    checks: SERVER_CHECKS,
    happened: "resources/templates/list",
    server: answered({
      initialize: helloOf({ capabilities: { tools: {}, resources: {} } }),
      "tools/list": listOf([aTool("work")]),
      "tools/call": JSON.stringify({ content: [{ type: "resource_link", uri: "ui://page", name: "page" }] }),
      "resources/list": JSON.stringify({
        resources: ["ui://page", "UI://page", "\tui://page", "x://note"].map((uri) => ({
          uri,
          name: "page",
        })),
      }),
      "resources/templates/list": JSON.stringify({
        resourceTemplates: [
          { uriTemplate: "{+uri}", name: "any" },
          { uriTemplate: "ui://{page}", name: "pages" },
        ],
      }),
      "resources/read": JSON.stringify({ contents: [{ uri: "x://a", text: SECRET }] }),
    }),
    act: async (arena) => {
      const { server } = arena.place;
      if (!(await arena.until(async () => (await arena.status("resources")).includes("x://note"))))
        throw new Error("the resources are never known");
      await arena.prompt(
        searchOf(`select:${server}__get_any,${server}__get_pages,${server}__work`),
        callOf(`${server}__get_any`, { uri: "ui://page" }),
        callOf(`${server}__get_any`, { uri: " UI://page" }),
        callOf(`${server}__get_pages`, { page: "page" }),
        callOf(`${server}__work`),
      );
      await arena.rpc.prompt(`look at @${server}:ui://page please`, 20_000);
    },
    check: async (arena) => [
      ...told(arena, SECRET).map(() => "the text of a page reached the model"),
      ...((await arena.place.seen()).includes("resources/read") ? ["a page was read"] : []),
      ...(declared(arena, `${arena.place.server}__get_pages`) ? ["a template of pages is a tool"] : []),
    ],
  },
  {
    name: "a server that wants a yes for each call while a rule allows all: asked each time, and nothing lasts",
    finding: "own",
    checks: SERVER_CHECKS,
    server: async (place) => ({
      ...(await listing([aTool("pay", { _meta: { "anthropic/requiresUserInteraction": true } })])(place)),
      approve: "never",
    }),
    act: async (arena) => {
      const name = `${arena.place.server}__pay`;
      // No such answer is offered: Pi's other programs could send it all the same.
      arena.rpc.answerUi({ value: "Allow this tool for this session" });
      await arena.prompt(searchOf(`select:${name}`));
      await arena.prompt(callOf(name), callOf(name));
      arena.rpc.answerUi(() => undefined);
    },
    check: async (arena) => {
      const asked = arena.dialogs.filter(({ title }) => title.startsWith("Run "));
      const calls = (await arena.place.seen()).filter((step) => step === "tools/call");
      return [
        ...(asked.length === 2 ? [] : [`the user was asked ${asked.length} times`]),
        ...(asked.every(({ options }) => options?.join() === "Allow once,No")
          ? []
          : ["an answer that lasts is offered"]),
        ...(calls.length === 0 ? [] : ["it ran without a yes"]),
      ];
    },
  },
  {
    name: `a server whose ${shown(FLOOD)} tools with 20 KB each all wish to be declared always: a few are, and the first request stays small`,
    finding: "own",
    alone: "home",
    startsBefore: 1,
    checks: SERVER_CHECKS,
    server: listing(
      Array.from({ length: FLOOD }, (_, i) =>
        aTool(`flood_${i}`, {
          description: `Tool ${i}: ${"many words ".repeat(1_800)}`,
          _meta: { "anthropic/alwaysLoad": true },
        }),
      ),
    ),
    check: ({ requests, place }) => {
      const floods = requests.map(({ tools }) =>
        tools.map((tool) => JSON.stringify(tool)).filter((tool) => tool.includes(`${place.server}__flood_`)),
      );
      const chars = Math.max(...floods.map((tools) => tools.join("").length));
      return [
        ...(chars > 25_000 ? [`${chars} characters of its tools are declared`] : []),
        ...(chars === 0 ? ["no wish is granted, so the row proves nothing"] : []),
      ];
    },
  },
  {
    name: "a server that names impossible sizes for its results: the usual limit, or half a megabyte at most",
    finding: "own",
    // The row counts the characters itself: half a megabyte is more than other rows let pass, also in the history of a session.
    alone: "home",
    checks: ["lives", "neighbour", "main"],
    server: answered({
      "tools/list": listOf(
        [1e308, -1, "500000", 0.5, {}, Number.MAX_SAFE_INTEGER].map((size, i) =>
          aTool(`size_${i}`, { _meta: { "anthropic/maxResultSizeChars": size } }),
        ),
      ),
      "tools/call": JSON.stringify({ content: [{ type: "text", text: "long line\n".repeat(200_000) }] }),
    }),
    act: async (arena) => {
      const { server } = arena.place;
      const names = Array.from({ length: 6 }, (_, i) => `${server}__size_${i}`);
      const [, ...ends] = await arena.prompt(
        searchOf(`select:${names.join(",")}`),
        ...names.map((name) => callOf(name)),
      );
      const sizes = ends.map(({ text }) => text.length);
      const most = [...Array<number>(5).fill(52_000), 501_000];
      if (sizes.length !== most.length || sizes.some((size, i) => size > (most[i] ?? 0)))
        throw new Error(`results of ${sizes.join(", ")} characters`);
    },
  },
];
