/** Owns: what happens if no port can be opened for the browser's answer. */
import { expect, test } from "vitest";
import { listenAndRegister } from "../../../../../../workers/connection/auth/sign-in/redirect.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-values.ts";

const PLAN: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };

const refusing = (code: string) => ({
  open: () => Promise.reject(Object.assign(new Error(code), { code })),
});

test.each<[string, Partial<OAuthPlan>, string]>([
  ["a free port", {}, "http://127.0.0.1:49152/callback"],
  ["a port below 1024", { callbackPort: 80 }, "http://127.0.0.1:80/callback"],
  ["a configured address", { redirectUri: "http://localhost/cb" }, "http://localhost/cb"],
])("the system refuses %s -> the user pastes the address, and a note says why", async (_title, plan, uri) => {
  const notes: string[] = [];
  const registered = await listenAndRegister(
    {
      plan: { ...PLAN, ...plan },
      server: "linear",
      issuer: "https://as.test",
      stored: undefined,
      sendsIssuer: true,
    },
    {
      listeners: refusing("EACCES"),
      signal: new AbortController().signal,
      onNote: (note) => notes.push(note),
    },
    async (redirectUri) => ({ id: "c", method: "none", kind: "dynamic", redirectUris: [redirectUri] }),
  );
  expect(registered).toEqual({ redirectUri: uri, client: expect.objectContaining({ redirectUris: [uri] }) });
  expect(notes).toEqual([expect.stringContaining("EACCES")]);
});
