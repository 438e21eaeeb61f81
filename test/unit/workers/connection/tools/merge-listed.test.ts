/** Owns: the notes about the resources that a server lists. */
import { expect, test } from "vitest";
import { mergeListed } from "../../../../../workers/connection/tools/listed.ts";

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

const NOTE = "has resource templates that nobody could fill in, so they are no tools: ";

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
