/** Owns: the line of what would run, as the panel and `/mcp add` show it of the user's own server. */
import { expect, test } from "vitest";
import { shownLine } from "../../../../../workers/connection/session/setup.ts";
import { definition } from "../config/support.ts";

const SECRET = "q7f3k9x2m5v8b1n4";

test("an address in a variable of the user's own server -> shown, and a secret within it is masked", () => {
  const server = definition("a", {
    command: "x",
    env: { API_URL: `https://host.example/s/${SECRET}/mcp`, API_TOKEN: SECRET },
  });
  const line = shownLine(server, true);
  expect(line).toContain("API_URL=");
  expect(line).not.toContain(SECRET);
  expect(shownLine(server, false)).toContain(SECRET);
});
