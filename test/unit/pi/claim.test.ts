/** Owns: the rule that at most one copy of the extension works in one Pi. */
import { expect, test } from "vitest";
import { claim } from "../../../src/pi/claim.ts";
import { createRecordingPi } from "../recording-pi.ts";

test("claim: the first copy -> becomes the owner", () => {
  expect(claim(createRecordingPi(), "/a/index.js")).toBeUndefined();
});

test("claim: later copies on the same bus -> get the first copy's location", () => {
  const pi = createRecordingPi();
  claim(pi, "/a/index.js");
  expect(claim(pi, "/b/index.js")).toBe("/a/index.js");
  expect(claim(pi, "/c/index.js")).toBe("/a/index.js");
});

test("claim: a copy that is loaded again on the same bus -> becomes the owner in place of its older instance", () => {
  const pi = createRecordingPi();
  claim(pi, "/a/index.js");
  expect(claim(pi, "/a/index.js")).toBeUndefined();
  expect(claim(pi, "/b/index.js")).toBe("/a/index.js");
});

test("claim: a copy on another bus -> becomes the owner there", () => {
  claim(createRecordingPi(), "/a/index.js");
  expect(claim(createRecordingPi(), "/b/index.js")).toBeUndefined();
});
