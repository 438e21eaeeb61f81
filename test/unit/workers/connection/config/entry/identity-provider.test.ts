/** Owns: `settings.identityProvider`: what it must hold, what may be wrong with it, and the sign-in that it means. */
import { expect, test } from "vitest";
import {
  type IdentityEntry,
  identityPlan,
} from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { parseSettings } from "../../../../../../workers/connection/config/entry/settings.ts";

const SOUND = { issuer: "https://idp.example.com", clientId: "pi" };
const DEFAULTS = { clientRegistration: "auto", resource: false };

test.each<[IdentityEntry, object]>([
  [SOUND, { ...SOUND, grantType: "authorization_code", scope: "openid offline_access" }],
  [
    { ...SOUND, clientSecret: "!cat secret", scope: "openid groups", callbackPort: 3118 },
    {
      ...SOUND,
      clientSecret: "!cat secret",
      grantType: "authorization_code",
      scope: "openid groups",
      callbackPort: 3118,
    },
  ],
  [
    { ...SOUND, assertion: "!print-identity" },
    { ...SOUND, assertion: "!print-identity", grantType: "jwt_bearer", scope: "openid offline_access" },
  ],
  [
    { ...SOUND, assertionFile: "/run/identity" },
    { ...SOUND, assertionFile: "/run/identity", grantType: "jwt_bearer", scope: "openid offline_access" },
  ],
])("%j -> its sign-in", (written, plan) => {
  const { settings, mistakes } = parseSettings({ identityProvider: written });
  expect([settings.identityProvider, mistakes]).toEqual([written, []]);
  expect(identityPlan(written)).toEqual({ ...DEFAULTS, ...plan });
});

test.each<[object, path: string[], message: RegExp]>([
  [{ clientId: "pi" }, ["issuer"], /^is missing$/],
  [{ issuer: SOUND.issuer }, ["clientId"], /^is missing$/],
  [{ ...SOUND, clientId: "" }, ["clientId"], /^is missing$/],
  [{ ...SOUND, issuer: "http://idp.example.com" }, ["issuer"], /is not an https URL without a query/],
  [{ ...SOUND, issuer: "https://idp.example.com/?tenant=1" }, ["issuer"], /is not an https URL/],
  [{ ...SOUND, clientId: 7 }, ["clientId"], /./],
  [{ ...SOUND, scope: "openid\u0007" }, ["scope"], /is not a list of rights/],
  [{ ...SOUND, assertion: "a.b" }, ["assertion"], /does not hold a signed assertion/],
  [{ ...SOUND, assertion: "${ID}", assertionFile: "/t" }, ["assertionFile"], /second assertion/],
  [{ ...SOUND, authorizationParams: { state: "x" } }, ["authorizationParams", "state"], /only the sign-in/],
])("%j -> a mistake at %j, and none of it counts", (written, path, message) => {
  const { settings, mistakes } = parseSettings({ identityProvider: written, autoAuth: true });
  expect(settings).toEqual({ autoAuth: true });
  expect(mistakes).toMatchObject([{ severity: "error", path: ["identityProvider", ...path] }]);
  expect(mistakes[0]?.message).toMatch(message);
});

test("a value behind a variable or a command -> checked at the sign-in", () => {
  const written = { issuer: "${IDP}", clientId: "!print-id" };
  expect(parseSettings({ identityProvider: written })).toEqual({
    settings: { identityProvider: written },
    mistakes: [],
  });
});

test.each([7, "https://idp.example.com", [], null])("%j -> a mistake", (written) => {
  const { settings, mistakes } = parseSettings({ identityProvider: written });
  expect(settings).toEqual({});
  expect(mistakes).toMatchObject([{ severity: "error", path: ["identityProvider"] }]);
});
