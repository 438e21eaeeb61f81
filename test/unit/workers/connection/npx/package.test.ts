import { expect, test } from "vitest";
import { isWanted, parseSpec } from "../../../../../workers/connection/npx/command.ts";
import { runnerOf } from "../../../../../workers/connection/npx/launch.ts";
import { cacheFolderName, chooseBin, toManifest } from "../../../../../workers/connection/npx/tree.ts";

const specOf = (raw: string) => {
  const spec = parseSpec(raw);
  if (!spec) throw new Error(`${raw} is no spec`);
  return spec;
};

test.each([
  ["p", "p", "range"],
  ["@s/p", "@s/p", "range"],
  ["p@1.2.3", "p", "version"],
  ["p@v1.2.3-rc.1", "p", "version"],
  ["@s/p@1.x", "@s/p", "range"],
  ["p@>=1 <2 || 3", "p", "range"],
  ["p@latest", "p", "tag"],
  ["@s/p@next", "@s/p", "tag"],
])("parseSpec: %s -> %s, %s", (raw, name, kind) => {
  expect(parseSpec(raw)).toMatchObject({ raw, name, kind });
});

test.each([
  ["p", "0.0.1-beta", true],
  ["p@latest", "9.9.9", true],
  ["p@1.2.3", "1.2.3", true],
  ["p@1.2.3", "1.2.4", false],
  ["p@^1.2", "1.9.0", true],
  ["p@^1.2", "2.0.0", false],
  ["p@^1.2", "1.3.0-rc.1", false],
  ["p@>=1 <2 || 3", "3.1.0", true],
])("isWanted: %s with %s installed -> %s", (raw, version, expected) => {
  expect(isWanted(specOf(raw), version)).toBe(expected);
});

test.each([
  ["p", "cli.js", "p > cli.js"],
  ["@s/p", "./cli.js", "p > cli.js"],
  ["@s/p", { other: "cli.js" }, "other > cli.js"],
  ["@s/p", { a: "a.js", p: "p.js" }, "p > p.js"],
  ["p", { a: "same.js", b: "same.js" }, "a > same.js"],
  ["p", { a: "a.js", b: "b.js" }, undefined],
  ["p", {}, undefined],
  ["p", undefined, undefined],
  ["p", 7, undefined],
  ["p", { p: 7 }, undefined],
  ["p", { constructor: "a.js", b: "b.js" }, undefined],
  ["p", { "../../p": "../../../evil.js" }, "p > evil.js"],
  ["p", { "..": "a.js" }, undefined],
])("chooseBin: package %s with bin %j -> %s", (name, bin, expected) => {
  const manifest = toManifest({ name, version: "1.0.0", bin });
  const chosen = manifest && chooseBin(manifest);
  expect(chosen === undefined ? undefined : `${chosen} > ${manifest?.bin[chosen]}`).toBe(expected);
});

test.each([
  ["a.js", "#!/usr/bin/env node", "node"],
  ["a", "#!/usr/bin/env node", "node"],
  [
    "a.ts",
    "#!/usr/bin/env -S node --no-warnings --max-old-space-size=64",
    "node --no-warnings --max-old-space-size=64",
  ],
  ["a.js", "import 'x';", "node"],
  ["a.mjs", "", "node"],
  ["A.CJS", "", "node"],
  ["a.js", "#!/usr/bin/env bun", "itself"],
  ["a.js", "#!/usr/bin/env -S node -r 'x y'", "itself"],
  ["a.js", "#!/opt/node/bin/node", "itself"],
  ["a", "#!/bin/sh", "itself"],
  ["a", "\x7fELF", "itself"],
])("runnerOf: %s with first line %j -> %s", (file, line, expected) => {
  const runner = runnerOf(file, line);
  expect(runner.kind === "node" ? ["node", ...runner.flags].join(" ") : "itself").toBe(expected);
});

test("cacheFolderName is the hash that npm's own folders have, whatever the order", () => {
  expect(cacheFolderName([specOf("@modelcontextprotocol/server-memory")])).toBe("15b07286cbcc3329");
  expect(cacheFolderName([specOf("b"), specOf("a@1")])).toBe(cacheFolderName([specOf("a@1"), specOf("b")]));
});
