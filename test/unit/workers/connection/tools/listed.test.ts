/** Owns: resources and templates as tools. */

import { describe, expect, it, test } from "vitest";
import { shortHash } from "../../../../../src/shared/naming.ts";
import { ASK_FOR_SKILLS } from "../../../../../workers/connection/config/entry/skill-policy.ts";
import { allTools, mergeListed, resourceTools } from "../../../../../workers/connection/tools/listed.ts";

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
