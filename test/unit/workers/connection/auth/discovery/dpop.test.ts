/** Owns: when the tokens of a sign-in are to be bound to a key (RFC 9449, section 5.1; RFC 9728, section 2). */
import { describe, expect, test } from "vitest";
import { type AuthChallenge, parseChallenge } from "../../../../../../workers/connection/auth/model/model.ts";
import { authServer } from "../requests/support.ts";
import { found, metadataOf, naming, OAUTH, refused } from "./support.ts";

interface Row {
  /** `dpop_signing_alg_values_supported` of the authorization server. */
  as?: unknown;
  /** Metadata of the server. */
  resource?: object;
  /** WWW-Authenticate of the server. */
  challenge?: string;
  /** `oauth.dpop` */
  dpop?: boolean;
}

const REQUIRED = { dpop_bound_access_tokens_required: true };
const OFFERED = { dpop_signing_alg_values_supported: ["RS256", "ES256"] };
const BOTH = 'Bearer realm="a", DPoP algs="ES256"';

async function asked({ as = ["ES256"], resource, challenge, dpop }: Row) {
  const server = await authServer((origin) => ({
    [OAUTH]: metadataOf(origin, { dpop_signing_alg_values_supported: as }),
  }));
  const parsed: AuthChallenge | undefined = parseChallenge(challenge);
  return {
    issuer: server.origin,
    server: await naming(server.origin, resource),
    wanted: { challenge: parsed, plan: dpop === undefined ? {} : { dpop } },
  };
}

test.each<[string, Row, binds: true | undefined]>([
  ["the server says nothing", {}, undefined],
  ["the server requires it", { resource: REQUIRED }, true],
  ["... as a text", { resource: { dpop_bound_access_tokens_required: "true" } }, true],
  ["... with our algorithm", { resource: { ...REQUIRED, ...OFFERED } }, true],
  [
    "the server says that it does not require it",
    { resource: { dpop_bound_access_tokens_required: false } },
    undefined,
  ],
  ["the server offers it", { resource: OFFERED }, true],
  [
    "the server offers it with other algorithms",
    { resource: { dpop_signing_alg_values_supported: ["RS256"] } },
    undefined,
  ],
  ["a challenge of DPoP alone", { challenge: 'DPoP algs="ES256"' }, true],
  ["a challenge of DPoP beside Bearer", { challenge: BOTH }, true],
  ["a challenge of Bearer", { challenge: 'Bearer realm="DPoP"' }, undefined],
  ["offered, but not by the authorization server", { as: null, resource: OFFERED }, undefined],
  ["beside Bearer, but not by the authorization server", { as: ["RS256"], challenge: BOTH }, undefined],
  ["oauth.dpop is true", { dpop: true }, true],
  ["oauth.dpop is false", { dpop: false }, undefined],
  [
    "oauth.dpop is false, and the server offers it",
    { dpop: false, resource: OFFERED, challenge: BOTH },
    undefined,
  ],
])("%s -> binds: %$2", async (_name, row, binds) => {
  const { server, wanted } = await asked(row);
  expect((await found(server, wanted)).bindsTokens).toBe(binds);
});

describe("nothing to bind with -> told before anything is registered", () => {
  test.each<[string, Row, who: string | undefined]>([
    [
      "the server requires it, the authorization server lists nothing",
      { as: null, resource: REQUIRED },
      undefined,
    ],
    ["... an empty list", { as: [], resource: REQUIRED }, undefined],
    ["... other algorithms", { as: ["RS256", "EdDSA"], resource: REQUIRED }, undefined],
    ["... no list", { as: { ES256: true }, resource: REQUIRED }, undefined],
    ["a challenge of DPoP alone", { as: null, challenge: "DPoP" }, undefined],
    ["oauth.dpop is true", { as: null, dpop: true }, "oauth.dpop"],
  ])("%s", async (_name, row, key) => {
    const { server, wanted, issuer } = await asked(row);
    expect(await refused(server, wanted)).toEqual({
      kind: "no-dpop",
      facts: { url: issuer, ...(key && { key }) },
    });
  });

  test("the server requires it with other algorithms -> its metadata are named", async () => {
    const resource = { ...REQUIRED, dpop_signing_alg_values_supported: ["PS256"] };
    const { server, wanted } = await asked({ resource });
    expect(await refused(server, wanted)).toMatchObject({
      kind: "no-dpop",
      facts: { url: `${server.origin}/.well-known/oauth-protected-resource/mcp` },
    });
  });

  test.each([
    ["its metadata", { resource: REQUIRED }],
    ["its challenge", { challenge: "DPoP" }],
  ])("oauth.dpop is false, but %s require it -> a wrong setting", async (_name, row) => {
    const { server, wanted } = await asked({ ...row, dpop: false });
    expect(await refused(server, wanted)).toMatchObject({
      kind: "bad-settings",
      facts: { key: "oauth.dpop" },
    });
  });
});

test("a server without metadata of its own -> its challenge counts", async () => {
  const server = await authServer((origin) => ({
    [OAUTH]: metadataOf(origin, { dpop_signing_alg_values_supported: ["ES256"] }),
  }));
  expect((await found(server, { challenge: { scheme: "DPoP", dpop: "required" } })).bindsTokens).toBe(true);
});

test("a configured address of the metadata -> oauth.dpop counts", async () => {
  const server = await authServer((origin) => ({
    "/own": metadataOf(origin, { dpop_signing_alg_values_supported: ["ES256"] }),
  }));
  const plan = { authServerMetadataUrl: `${server.origin}/own`, dpop: true };
  expect((await found(server, { plan })).bindsTokens).toBe(true);
});
