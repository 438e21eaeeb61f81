/** Owns: resources and templates as tools. */

import { describe, expect, it, test } from "vitest";
import { shortHash } from "../../../../../src/shared/naming.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../../../../workers/connection/config/entry/settings.ts";
import { ASK_FOR_SKILLS } from "../../../../../workers/connection/config/entry/skill-policy.ts";
import {
  allTools,
  exposedTools,
  grantedWishes,
  mergeListed,
  resourceReader,
  resourceTools,
  WISHED_CHARS,
} from "../../../../../workers/connection/tools/listed.ts";
import { type CachedTool, normalizeTools } from "../../../../../workers/shared/listed.ts";
import { definitionOf } from "../servers/support.ts";

const resource = (name: string, uri = `x://${name}`) => ({ name, uri });
const names = (...resources: { name: string; uri: string }[]): string[] => [
  ...resourceTools({ resources, templates: [] }, []).keys(),
];

describe("resourceTools", () => {
  it.each([
    ["readme", "get_readme"],
    ["README.md", "get_readme_md"],
    ["My -- Notes!", "get_my_notes"],
    ["2026 report", "get_resource_2026_report"],
    ["日報", "get_日報"],
    ["...", "get_resource"],
    ["x://long/uri", "get_x_long_uri"],
  ])("a resource named %j -> %s", (name, tool) => {
    expect(names(resource(name))).toEqual([tool]);
  });

  test("resources that want the same name -> each with a hash of its URI, in any order", () => {
    const [a, b, other] = [resource("note", "x://a"), resource("Note", "x://b"), resource("other")];
    const marked = [`get_note_${shortHash("x://a")}`, `get_note_${shortHash("x://b")}`];
    expect(names(a, b, other)).toEqual([...marked, "get_other"]);
    expect(names(b, a)).toEqual(marked.toReversed());
  });

  test("a tool of that name -> the tool keeps it", () => {
    const tools = resourceTools({ resources: [resource("note")], templates: [] }, [{ name: "get_note" }]);
    expect([...tools.keys()]).toEqual([`get_note_${shortHash("x://note")}`]);
  });

  test("a resource -> a tool without parameters that reads its URI and is read-only", () => {
    const described = {
      ...resource("note"),
      title: "A note",
      description: "What was said.",
      mimeType: "text/plain",
    };
    const found = resourceTools({ resources: [described], templates: [] }, []).get("get_note");
    expect(found?.tool).toEqual({
      name: "get_note",
      title: "A note",
      description: "Reads the resource A note: What was said. (x://note, text/plain)",
      inputSchema: { type: "object", properties: {}, additionalProperties: false },
      annotations: { readOnlyHint: true },
    });
    expect(found?.uriOf({ ignored: 1 })).toBe("x://note");
  });

  test("a template -> a tool with its variables; one that cannot be parsed -> none", () => {
    const templates = [
      { name: "Row", uriTemplate: "db://{table}/{id}{?columns*}" },
      { name: "Broken", uriTemplate: "db://{" },
    ];
    const tools = resourceTools({ resources: [], templates }, []);
    expect([...tools.keys()]).toEqual(["get_row"]);
    const row = tools.get("get_row");
    expect(row?.tool.inputSchema).toEqual({
      type: "object",
      properties: {
        table: { type: "string" },
        id: { type: "string" },
        columns: { type: "array", items: { type: "string" } },
      },
      required: ["table", "id"],
      additionalProperties: false,
    });
    expect(row?.uriOf({ table: "a/b", id: "1", columns: ["x", "y"] })).toBe(
      "db://a%2Fb/1?columns=x&columns=y",
    );
  });
});

test("allTools: tools first; resources only if they are known and wanted", () => {
  const tools = [{ name: "t" }];
  const resources = { resources: [resource("note")], templates: [] };
  const offered = (exposeResources: boolean, known = true): string[] =>
    allTools({
      definition: { exposeResources, skillPolicy: ASK_FOR_SKILLS },
      tools,
      resources: known ? resources : undefined,
    }).map(({ name }) => name);
  expect(offered(true)).toEqual(["t", "get_note"]);
  expect(offered(false)).toEqual(["t"]);
  expect(offered(true, false)).toEqual(["t"]);
});

const template = (uriTemplate: string) => ({ name: "t", uriTemplate });
const listed = (...uriTemplates: string[]) => ({
  resources: [],
  templates: uriTemplates.map(template),
});

/** The notes that these lists cause, one list after the other. */
function notesOf(...lists: Parameters<typeof mergeListed>[1][]): string[] {
  const notes: string[] = [];
  let known: ReturnType<typeof mergeListed> | undefined;
  for (const list of lists) known = mergeListed(known, list, (note) => notes.push(note));
  return notes;
}

const NOTE = "has resource templates that no one could fill in, so they are not tools: ";

test("templates that cannot be used -> one note for all of them, the others none", () => {
  expect(notesOf(listed("x://{id}", "x"))).toEqual([]);
  expect(notesOf(listed("x://{user id}", "x://{id}", "x://{"))).toEqual([`${NOTE}"x://{user id}", "x://{"`]);
  const many = Array.from({ length: 12 }, (_, i) => `${i}{${"x".repeat(200)}`);
  expect(notesOf(listed(...many))[0]).toMatch(/: ("\d\{x{98}", ){5}7 more$/);
});

test("the same templates again -> noted once; other templates -> noted; a list that fails -> no new note", () => {
  const failed = { resources: undefined, templates: undefined };
  expect(notesOf(listed("{"), failed, listed("{"), listed("{", "}"), listed("{"))).toEqual([
    `${NOTE}"{"`,
    `${NOTE}"{", "}"`,
  ]);
  const many = {
    resources: Array.from({ length: 201 }, (_, i) => ({ name: "r", uri: `x://${i}` })),
    templates: [],
  };
  expect(notesOf(many, many)).toEqual([
    "has more than 200 resources: only the first 200 are offered as tools",
  ]);
});

test("known from the cache of an earlier session -> noted in this one", () => {
  const notes: string[] = [];
  mergeListed({ resources: [], templates: [template("{")] }, listed("{"), (note) => notes.push(note));
  expect(notes).toEqual([`${NOTE}"{"`]);
});

test("other templates each time -> noted up to the limit", () => {
  const lists = Array.from({ length: 500 }, (_, i) => listed(`{${i}`));
  expect(notesOf(...lists)).toHaveLength(20);
});

type ToolServer = Parameters<typeof grantedWishes>[0][number];

const server = (name: string, raw: readonly unknown[], entry: object = {}): ToolServer => {
  const tools = normalizeTools(raw);
  return {
    name,
    definition: definitionOf(name, entry),
    held: tools,
    tools,
    resources: undefined,
    skills: undefined,
    excludes: () => false,
    redact: (text) => text,
  };
};
const exposed = (one: ToolServer, settings: Settings, wished?: ReadonlySet<string>): [string, boolean][] =>
  exposedTools(one, settings, wished).map(({ name, direct }) => [name, direct]);

test.each([{}, { directTools: true }, { toolExposure: { a: "direct" } }, { includeTools: ["a", "b"] }])(
  "a tool for the server's own pages, rules %j -> not offered",
  (entry) => {
    const tools = [{ name: "a", _meta: { ui: { visibility: ["app"] } } }, { name: "b" }];
    expect(exposed(server("s", tools, entry), DEFAULT_SETTINGS).map(([name]) => name)).toEqual(["b"]);
  },
);

test("a link to a page of MCP Apps -> no tool is said to read it, though a template fits", () => {
  const one = {
    ...server("s", [], { exposeResources: true }),
    resources: { resources: [], templates: [{ name: "any", uriTemplate: "{+uri}" }] },
  };
  const read = resourceReader(one, { servers: [one], settings: DEFAULT_SETTINGS });
  expect(read("ui://page")).toBeUndefined();
  expect(read("x://page")).toMatch("Read it with the tool s__get_any");
});

describe("a server's wish to have tools always declared", () => {
  const wish = { "anthropic/alwaysLoad": true };
  const wishing = (name: string, chars = 100) => ({ name, description: "d".repeat(chars), _meta: wish });
  const granted = (servers: ToolServer[], settings: Partial<Settings> = {}): Record<string, string[]> =>
    Object.fromEntries(
      [...grantedWishes(servers, { ...DEFAULT_SETTINGS, ...settings })].map(([name, tools]) => [
        name,
        [...tools],
      ]),
    );

  test("no rule -> declared; other tools are not", () => {
    const one = server("s", [wishing("a"), { name: "b" }]);
    expect(granted([one])).toEqual({ s: ["a"] });
    expect(exposed(one, DEFAULT_SETTINGS, new Set(["a"]))).toEqual([
      ["a", true],
      ["b", false],
    ]);
  });

  test.each<[string, object, Partial<Settings>]>([
    ["directTools: false", { directTools: false }, {}],
    ["directTools that name another tool", { directTools: ["b"] }, {}],
    ["toolExposure", { toolExposure: { "*": "deferred" } }, {}],
    ["exposure", { exposure: "deferred" }, {}],
    ["the settings", {}, { directTools: false }],
    ["an exclusion", { excludeTools: ["a"] }, {}],
    ["a server that is off", { enabled: false }, {}],
  ])("%s -> not granted", (_case, entry, settings) => {
    expect(granted([server("s", [wishing("a")], entry)], settings)).toEqual({});
  });

  test("5,000 tools with 20 KB each of two servers -> as many as there is room for, the same each time", () => {
    const flood = (name: string): ToolServer =>
      server(
        name,
        Array.from({ length: 5_000 }, (_, i) => wishing(`t${i}`, 20_000)),
      );
    const servers = [flood("a"), flood("b"), server("c", [wishing("small")])];
    expect(granted(servers)).toEqual({ a: ["t0", "t1"], c: ["small"] });
    expect(granted(servers)).toEqual(granted([...servers]));
    const chars = exposedTools(servers[0] as ToolServer, DEFAULT_SETTINGS, new Set(["t0", "t1"]))
      .filter(({ direct }) => direct)
      .reduce(
        (sum, { description = "" }: CachedTool) =>
          sum + Math.min(description.length, LIMITS.descriptionChars),
        0,
      );
    expect(chars).toBeLessThanOrEqual(WISHED_CHARS);
  });

  test("a large schema counts", () => {
    const inputSchema = { type: "object", description: "s".repeat(WISHED_CHARS) };
    expect(granted([server("s", [{ ...wishing("a"), inputSchema }])])).toEqual({});
  });

  test("a tool for the server's own pages as well -> not granted", () => {
    expect(granted([server("s", [{ name: "a", _meta: { ...wish, ui: { visibility: ["app"] } } }])])).toEqual(
      {},
    );
  });
});
