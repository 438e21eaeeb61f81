import { describe, expect, test } from "vitest";
import { actions, CREATE, DELETE, READ, tokenize, UPDATE } from "../../../../../src/shared/search/words.ts";
import { searcher } from "../catalog.ts";

describe("actions: words -> the actions that they ask for", () => {
  test.each([
    ["delete_user", DELETE],
    ["removing old rows", DELETE],
    ["create or update a file", CREATE | UPDATE],
    ["which branches are there", READ],
    ["renamed", UPDATE],
    ["user profile", 0],
    ["", 0],
    ["__proto__ constructor", 0],
  ])("%j -> %i", (text, expected) => expect(actions(tokenize(text).map(({ term }) => term))).toBe(expected));
});

test("tools that differ only by their verb -> the one with the wanted action comes first", () => {
  const tools = ["create", "delete", "update", "get"].map((verb) => ({
    server: "crm",
    name: `${verb}_contact`,
    description: `The contact API: ${verb}.`,
  }));
  const search = searcher(tools);
  expect(search("remove a contact").ids[0]).toBe("crm/delete_contact");
  expect(search("show the contact").ids[0]).toBe("crm/get_contact");
  expect(search("modify a contact").ids[0]).toBe("crm/update_contact");
  expect(search("new contact").ids[0]).toBe("crm/create_contact");
});
