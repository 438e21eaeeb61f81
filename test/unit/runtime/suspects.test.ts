/** Owns: which servers are held back after a worker has died. */
import { describe, expect, it } from "vitest";
import { type Death, suspectsOf } from "../../../src/runtime/suspicion.ts";

const MEBIBYTE = 1024 * 1024;
const death = (more: Partial<Death> = {}): Death => ({
  atMs: 100_000,
  reason: "exit code 7",
  outOfMemory: false,
  talking: undefined,
  heard: [],
  connecting: [],
  ...more,
});
const heard = (sizes: Record<string, number>): Death["heard"] =>
  Object.entries(sizes).map(([server, mebibytes]) => ({ server, bytes: mebibytes * MEBIBYTE }));
const earlier = (connecting: string[], atMs = 90_000): Death => death({ atMs, connecting });

describe("suspectsOf", () => {
  it.each<[string, Death, Death | undefined, string[]]>([
    ["nothing known, the first time", death(), undefined, []],
    ["servers connecting, the first time", death({ connecting: ["a", "b"] }), undefined, []],
    ["a server talking", death({ talking: "a", connecting: ["b"] }), undefined, ["a"]],
    ["a server talking, the second time", death({ talking: "a" }), earlier(["b"]), ["a"]],
    ["servers connecting, twice", death({ connecting: ["a", "b"] }), earlier(["a", "b"]), ["a", "b"]],
    ["one of the servers both times", death({ connecting: ["a", "b"] }), earlier(["b", "c"]), ["b"]],
    ["other servers than the first time", death({ connecting: ["a"] }), earlier(["b"]), ["a"]],
    ["servers connecting, an hour after", death({ connecting: ["a"] }), earlier(["a"], -3_600_000), []],
    ["nobody connecting, twice", death(), earlier([]), []],
    [
      "out of memory, one sent most",
      death({ outOfMemory: true, talking: "a", heard: heard({ a: 1, b: 60 }) }),
      undefined,
      ["b"],
    ],
    [
      "out of memory, none sent most",
      death({ outOfMemory: true, talking: "a", heard: heard({ a: 1, b: 30, c: 30 }) }),
      undefined,
      ["a"],
    ],
    [
      "out of memory, nobody sent much",
      death({ outOfMemory: true, heard: heard({ a: 0.5 }), connecting: ["b"] }),
      undefined,
      [],
    ],
    ["sent most, memory was there", death({ heard: heard({ a: 60 }) }), undefined, []],
  ])("%s -> $3", (_name, now, last, servers) => {
    expect(suspectsOf(now, last).map(({ server }) => server)).toEqual(servers);
  });

  it.each<[string, Death, Death | undefined, string]>([
    [
      "talking",
      death({ talking: "a" }),
      undefined,
      "the connection worker ended while it handled a message of this server (exit code 7)",
    ],
    [
      "filling the memory",
      death({ outOfMemory: true, heard: heard({ a: 60 }) }),
      undefined,
      "the connection worker ran out of memory while this server sent most",
    ],
    [
      "connecting",
      death({ connecting: ["a"] }),
      earlier(["a"]),
      "the connection worker ended twice within a minute (exit code 7), the last time while this server was being connected",
    ],
  ])("%s -> says why", (_name, now, last, why) => {
    expect(suspectsOf(now, last)).toEqual([{ server: "a", why }]);
  });
});
