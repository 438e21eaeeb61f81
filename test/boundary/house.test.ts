/** Owns: the rules of the source layout: no import circle, and no import against the direction of the design. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { circles, type Import, importsIn, importsOf, root, sourceFiles } from "./support/imports.ts";
import { broken, RULES, roomOf } from "./support/rules.ts";

let files: string[];
let edges: Import[];
beforeAll(async () => {
  files = [...(await sourceFiles("src")), ...(await sourceFiles("workers"))];
  edges = await importsOf(files);
});

/** For each rule an import that breaks the rule, and a similar import that does not. */
const CONTROLS: Record<keyof typeof RULES, [breaks: [string, string], fits: [string, string]]> = {
  "src/shared imports nothing but src/shared and pure packages": [
    ["src/shared/text/amounts.ts", "node:fs"],
    ["src/shared/protocol/calls.ts", "msgpackr"],
  ],
  "src never imports workers": [
    ["src/session/session.ts", "workers/shared/log.ts"],
    ["workers/connection.ts", "workers/shared/log.ts"],
  ],
  "workers import nothing of src but src/shared": [
    ["workers/cache.ts", "src/catalog/catalog.ts"],
    ["workers/cache.ts", "src/shared/protocol/calls.ts"],
  ],
  "runtime, catalog, report and cli know neither Pi nor tools nor ui": [
    ["src/report/status.ts", "src/pi/api.ts"],
    ["src/session/session.ts", "src/pi/api.ts"],
  ],
  "nobody but the command knows the command, and it knows no session of Pi": [
    ["src/session/session.ts", "src/cli/console/console.ts"],
    ["src/cli/main.ts", "src/cli/console/console.ts"],
  ],
  "only src/pi may know Pi's packages": [
    ["src/session/session.ts", "@earendil-works/pi-coding-agent"],
    ["src/pi/api.ts", "@earendil-works/pi-coding-agent"],
  ],
  "main imports no library of the workers": [
    ["src/runtime/runtime.ts", "piscina"],
    ["workers/connection/catalog/cache-worker.ts", "piscina"],
  ],
  "only connection/mcp imports the MCP SDK, also its types": [
    ["workers/connection/servers/server.ts", "@modelcontextprotocol/sdk/types.js"],
    ["workers/connection/mcp/client.ts", "@modelcontextprotocol/sdk/types.js"],
  ],
  "only what `serve` loads apart imports the SDK's server": [
    ["src/cli/serve/tools.ts", "@modelcontextprotocol/server"],
    ["src/cli/serve/protocol.ts", "@modelcontextprotocol/server"],
  ],
  "cache and connection never import each other": [
    ["workers/connection/catalog/catalog.ts", "workers/cache/metadata/metadata.ts"],
    ["workers/connection/catalog/catalog.ts", "workers/shared/tasks.ts"],
  ],
  "workers/shared knows neither worker": [
    ["workers/shared/log.ts", "workers/connection/secrets/secrets.ts"],
    ["workers/shared/log.ts", "workers/shared/recent.ts"],
  ],
  "the hub knows neither worker, and they know only what starts it": [
    ["workers/hub/routes.ts", "workers/connection/hub/link.ts"],
    ["workers/connection/hub/link.ts", "workers/hub.ts"],
  ],
  "config knows nothing that stands above it": [
    ["workers/connection/config/merge/narrow.ts", "workers/connection/results/results.ts"],
    ["workers/connection/config/merge/narrow.ts", "workers/connection/secrets/secrets.ts"],
  ],
};

describe.each(Object.keys(RULES))("%s", (rule) => {
  test("no import breaks the rule", () => {
    expect(broken(rule, edges)).toEqual([]);
  });

  test("an import that breaks the rule -> the rule finds it, and finds no other import", () => {
    const [breaks, fits] = CONTROLS[rule] ?? [];
    if (!breaks || !fits) throw new Error("a rule without its control");
    const edge = ([from, to]: [string, string]): Import => ({ from, to });
    expect(broken(rule, [edge(breaks)])).toEqual([breaks.join(" -> ")]);
    expect(broken(rule, [edge(fits)])).toEqual([]);
  });
});

describe("circles", () => {
  const isFile = (path: string): boolean => files.includes(path);
  const between = (): [string, string][] =>
    edges.filter(({ to }) => isFile(to)).map(({ from, to }) => [from, to]);

  test("no file reaches itself through others", () => {
    expect(circles(between())).toEqual([]);
  });

  test("no room reaches itself through others", () => {
    const rooms = between()
      .map(([from, to]) => [roomOf(from), roomOf(to)] as const)
      .filter(([from, to]) => from !== to);
    expect(circles(rooms)).toEqual([]);
  });

  test("a circle of three files through a type and an import() -> the search finds it", () => {
    const found = [
      ...importsIn("src/a.ts", 'import type { B } from "./b.ts";'),
      ...importsIn("src/b.ts", 'const c = await import("./c.ts");'),
      ...importsIn("src/c.ts", 'export { a } from "./a.ts";\nimport "./d.ts";'),
    ];
    expect(circles(found.map(({ from, to }) => [from, to]))).toEqual([["src/a.ts", "src/b.ts", "src/c.ts"]]);
  });

  test("the lists of files and imports are complete", () => {
    expect(files.length).toBeGreaterThan(250);
    expect(between().length).toBeGreaterThan(700);
  });
});

test("each file of more than 100 lines -> it opens with what it owns", async () => {
  const texts = await Promise.all(files.map((file) => readFile(join(root, file), "utf8")));
  const silent = files.filter(
    (_, i) => (texts[i] ?? "").split("\n").length > 100 && !texts[i]?.startsWith("/**"),
  );
  expect(silent).toEqual([]);
});

test("each file of ours that a comment names -> it is there", async () => {
  const tracked = [...files, ...(await sourceFiles("test")), ...(await sourceFiles("scripts"))];
  const named = /(?<![\w.-])([a-z][\w.-]*(?:\/[\w.-]+)*\.ts)\b/g;
  const isThere = (name: string): boolean => tracked.some((file) => `/${file}`.endsWith(`/${name}`));
  const missing: string[] = [];
  for (const file of files) {
    for (const line of (await readFile(join(root, file), "utf8")).split("\n")) {
      // A line that names another program's file says whose it is.
      if (!/^\s*(?:\/\/|\/?\*)/.test(line) || /VS Code|OpenCode|opencode/.test(line)) continue;
      for (const [, name = ""] of line.matchAll(named)) if (!isThere(name)) missing.push(`${file}: ${name}`);
    }
  }
  expect(missing).toEqual([]);
});
