/** Owns: at most one copy of the extension works in one Pi. */
import { expect, test } from "vitest";
import { claim } from "../../../src/pi/claim.ts";
import { createRecordingPi } from "../recording-pi.ts";

test("claim: the first copy -> has the place", () => {
  expect(claim(createRecordingPi(), "/a/index.js")).toBeUndefined();
});

test("claim: later copies on the same bus -> are told the first one's location", () => {
  const pi = createRecordingPi();
  claim(pi, "/a/index.js");
  expect(claim(pi, "/b/index.js")).toBe("/a/index.js");
  expect(claim(pi, "/c/index.js")).toBe("/a/index.js");
});

test("claim: the same copy loaded anew on one bus -> takes the place of the one that it replaces", () => {
  const pi = createRecordingPi();
  claim(pi, "/a/index.js");
  expect(claim(pi, "/a/index.js")).toBeUndefined();
  expect(claim(pi, "/b/index.js")).toBe("/a/index.js");
});

test("claim: a copy on another bus -> has its own place", () => {
  claim(createRecordingPi(), "/a/index.js");
  expect(claim(createRecordingPi(), "/b/index.js")).toBeUndefined();
});
