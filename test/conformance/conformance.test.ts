/**
 * Owns: the client scenarios of the conformance suite, in both versions, and the newer one also on the stateless wire of
 * 2026-07-28. The suite keeps the list of what that revision requires, so that no required scenario can be missing here.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ALL, SUITES } from "./scenarios.ts";
import { proveConformance, proveOverStdio } from "./support.ts";

const requirements = join(
  import.meta.dirname,
  "../../node_modules",
  SUITES.modern.folder,
  "requirements/2026-07-28.yaml",
);

/** The list below `client:` in lines such as `  - auth/iss-supported`. */
const scoredIn = (yaml: string): string[] => {
  const [, list = ""] = /^client:\n((?: +- .*\n)+)/m.exec(yaml) ?? [];
  return [...list.matchAll(/- (\S+)/g)].map(([, name = ""]) => name);
};

test("conformance 2026-07-28: each scenario that the revision requires -> it runs", async () => {
  const scored = scoredIn(await readFile(requirements, "utf8"));
  expect(scored).toHaveLength(32);
  expect(scored.filter((scenario) => !ALL.modern.includes(scenario))).toEqual([]);
});

for (const suite of ["stable", "next", "modern"] as const) {
  proveConformance(suite);
  for (const way of ["stdio", "stdio, shared"] as const) proveOverStdio(suite, way);
}
