/** Owns: the choice of servers of a session, as it is written, and the snapshot that it names. */
import { expect, test } from "vitest";
import { onlyServersOf, snapshotFileName } from "../../../../src/shared/snapshot/contract.ts";

test.each([
  [undefined, undefined],
  ["", undefined],
  [true, undefined],
  [" , ,", undefined],
  ["b,a", ["a", "b"]],
  [" a , a", ["a"]],
])("%j -> %j", (written, names) => {
  expect(onlyServersOf(written)).toEqual(names);
});

test("each choice names a snapshot of its own, and none the one of before", () => {
  const hash = (only?: string[], configFile?: string, off?: string[]): string =>
    snapshotFileName({ cwd: "/w", configFile, only, off }, (text) => text.replaceAll("\u0000", "|"));
  expect(hash()).toBe("/w.bin");
  expect(hash(undefined, "/x")).toBe("/w|/x.bin");
  expect(hash(["a"])).toBe('/w||["a"].bin');
  expect(hash(undefined, undefined, ["a"])).toBe('/w||{"off":["a"]}.bin');
  expect(hash(["a"], undefined, ["b"])).toBe('/w||{"only":["a"],"off":["b"]}.bin');
});
