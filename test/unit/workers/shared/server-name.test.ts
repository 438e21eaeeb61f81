/** Owns: a sentence about a server names the server once, whichever of its parts named it. */
import { expect, test } from "vitest";
import { asReason, behindName, withName } from "../../../../workers/shared/commands.ts";

test.each([
  ["the command was not found.", "db: the command was not found."],
  ["db: the command was not found.", "db: the command was not found."],
  ["db exited with code 1.", "db exited with code 1."],
  ["db/query did not run.", "db/query did not run."],
  ["dbs are many.", "db: dbs are many."],
  ["", "db: "],
])("withName(db, %j) -> %j", (text, sentence) => {
  expect(withName("db", text)).toBe(sentence);
});

test.each([
  ["db: the command was not found.", "the command was not found."],
  ["db exited with code 1.", "it exited with code 1."],
  ["no answer", "no answer"],
  ["dbs are many", "dbs are many"],
])("asReason(db, %j) -> %j", (text, reason) => {
  expect(asReason("db", text)).toBe(reason);
});

test.each([
  ["printed a line", "db printed a line"],
  [
    "does not list its resources: db: resources/list failed",
    "db does not list its resources: resources/list failed",
  ],
  ["db: ping got no answer", "db: ping got no answer"],
  ["says db: yes", "db says db: yes"],
])("behindName(db, %j) -> %j", (text, note) => {
  expect(behindName("db", text)).toBe(note);
});
