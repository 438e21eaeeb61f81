/** Owns: which servers take a sign-in, by their entry and the headers that they send. */
import { expect, test } from "vitest";
import { takesSignIn } from "../../../../../workers/connection/auth/auth.ts";
import { parseEntry } from "../../../../../workers/connection/config/entry/definition.ts";

const URL_ENTRY = { url: "https://mcp.example.com/mcp" };

const ROWS: [what: string, entry: object, headers: Record<string, string>, takes: boolean][] = [
  ["only a url", URL_ENTRY, {}, true],
  ["another header", URL_ENTRY, { "x-key": "k" }, true],
  ["an Authorization header", URL_ENTRY, { authorization: "Bearer k" }, false],
  ["an Authorization header and auth oauth", { ...URL_ENTRY, auth: "oauth" }, { Authorization: "k" }, true],
  ["auth none", { ...URL_ENTRY, auth: "none" }, {}, false],
  ["auth false", { ...URL_ENTRY, auth: false }, {}, false],
  ["oauth false", { ...URL_ENTRY, oauth: false }, {}, false],
  ["auth bearer", { ...URL_ENTRY, auth: "bearer", bearerTokenEnv: "T" }, {}, false],
  ["oauth settings", { ...URL_ENTRY, oauth: { clientId: "c" } }, {}, true],
  ["a local server", { command: "c" }, {}, false],
];

test.each(ROWS)("an entry with %s -> it takes a sign-in or not", (_what, entry, headers, takes) => {
  const { definition } = parseEntry("s", entry, { file: "/m.json", origin: "user" });
  if (!definition) throw new Error("the entry is wrong");
  expect(takesSignIn(definition, headers)).toBe(takes);
});
