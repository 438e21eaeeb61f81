import { describe, expect, test } from "vitest";
import {
  coversEndpoint,
  judgeIssuer,
  lacksIssuer,
  readAddress,
  readFlag,
  readResource,
  readServer,
  readWords,
  resourceAddresses,
  serverAddresses,
} from "../../../../../../workers/connection/auth/discovery/metadata.ts";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";

const hrefs = (urls: URL[]): string[] => urls.map(({ href }) => href);

describe("addresses of metadata", () => {
  test.each([
    ["https://a.com/", ["https://a.com/.well-known/oauth-protected-resource"]],
    [
      "https://a.com/mcp",
      [
        "https://a.com/.well-known/oauth-protected-resource/mcp",
        "https://a.com/.well-known/oauth-protected-resource",
      ],
    ],
    [
      "https://me:secret@a.com:8443/v1/mcp/?team=1#x",
      [
        "https://a.com:8443/.well-known/oauth-protected-resource/v1/mcp?team=1",
        "https://a.com:8443/.well-known/oauth-protected-resource",
      ],
    ],
  ])("the endpoint %s -> its path, then the root", (endpoint, addresses) => {
    expect(hrefs(resourceAddresses(new URL(endpoint)))).toEqual(addresses);
  });

  test.each([
    [
      "https://as.com",
      [
        "https://as.com/.well-known/oauth-authorization-server",
        "https://as.com/.well-known/openid-configuration",
      ],
    ],
    [
      "https://as.com/",
      [
        "https://as.com/.well-known/oauth-authorization-server",
        "https://as.com/.well-known/openid-configuration",
      ],
    ],
    [
      "https://as.com/realms/one/",
      [
        "https://as.com/.well-known/oauth-authorization-server/realms/one",
        "https://as.com/.well-known/openid-configuration/realms/one",
        "https://as.com/realms/one/.well-known/openid-configuration",
      ],
    ],
  ])("the issuer %s -> the order of the specification", (issuer, addresses) => {
    expect(hrefs(serverAddresses(new URL(issuer)))).toEqual(addresses);
  });
});

describe("the issuer", () => {
  const AS = "https://as.com";
  const OTHER = "https://auth.as.com";
  type Row = [
    name: string,
    expected: string | undefined,
    found: string,
    plan: Pick<OAuthPlan, "issuer" | "skipIssuerMetadataValidation">,
    accepted: string | undefined,
    kind: string,
  ];
  const ROWS: Row[] = [
    ["equal", AS, AS, {}, undefined, "same"],
    ["a slash more", AS, `${AS}/`, {}, undefined, "same"],
    ["a slash less", `${AS}/`, AS, {}, undefined, "same"],
    ["two slashes more", AS, `${AS}//`, {}, undefined, "differs"],
    ["other case", AS, "https://AS.com", {}, undefined, "differs"],
    ["another path", AS, `${AS}/oauth`, {}, undefined, "differs"],
    ["a default port", AS, `${AS}:443`, {}, undefined, "differs"],
    ["another host", AS, OTHER, {}, undefined, "differs"],
    ["another host that the user accepted", AS, OTHER, {}, OTHER, "accepted"],
    ["a third host than the user accepted", AS, "https://evil.com", {}, OTHER, "differs"],
    ["another host that is configured", AS, OTHER, { issuer: OTHER }, undefined, "accepted"],
    ["another host than is configured", AS, AS, { issuer: OTHER }, undefined, "differs"],
    ["another host than is configured, accepted before", AS, AS, { issuer: OTHER }, AS, "differs"],
    ["any host, if any is allowed", AS, OTHER, { skipIssuerMetadataValidation: true }, undefined, "accepted"],
    [
      "a configured one is not any",
      AS,
      AS,
      { issuer: OTHER, skipIssuerMetadataValidation: true },
      undefined,
      "differs",
    ],
    ["an address that the user wrote", undefined, OTHER, {}, undefined, "same"],
    ["such an address beside an issuer", undefined, OTHER, { issuer: AS }, undefined, "differs"],
  ];
  test.each(ROWS)("%s: %s calls itself %s", (_name, expected, found, plan, acceptedIssuer, kind) => {
    expect(judgeIssuer({ expected, found, plan, acceptedIssuer }).kind).toBe(kind);
  });

  test("it differs from the configured one -> that one is expected", () => {
    const verdict = judgeIssuer({
      expected: AS,
      found: AS,
      plan: { issuer: OTHER },
      acceptedIssuer: undefined,
    });
    expect(verdict).toEqual({ kind: "differs", expected: OTHER, found: AS });
  });
});

describe("the resource", () => {
  const ENDPOINT = "https://a.com/v1/mcp";
  test.each([
    ["https://a.com/v1/mcp", ENDPOINT, true],
    ["https://a.com/v1/mcp/", ENDPOINT, true],
    ["https://a.com/v1/mcp", `${ENDPOINT}/`, true],
    ["https://A.com:443/v1", ENDPOINT, true],
    ["https://a.com", ENDPOINT, true],
    ["https://a.com/", ENDPOINT, true],
    ["https://a.com/v1/mcp?team=1", `${ENDPOINT}?team=2`, true],
    ["https://a.com/v1/mc", ENDPOINT, false],
    ["https://a.com/v1/mcp2", ENDPOINT, false],
    ["https://a.com/v1/mcp/deeper", ENDPOINT, false],
    ["https://a.com/V1/mcp", ENDPOINT, false],
    ["http://a.com/v1/mcp", ENDPOINT, false],
    ["https://a.com:8443/v1/mcp", ENDPOINT, false],
    ["https://b.com/v1/mcp", ENDPOINT, false],
    ["https://a.com.evil.com/v1/mcp", ENDPOINT, false],
    ["https://a.com@b.com/v1/mcp", ENDPOINT, false],
    ["https://me@a.com/v1/mcp", ENDPOINT, false],
    ["https://a.com/v1/mcp#part", ENDPOINT, false],
    ["https://a.com/v1/other/../mcp", ENDPOINT, true],
    ["/v1/mcp", ENDPOINT, false],
    ["api://app", ENDPOINT, false],
  ])("%s for the endpoint %s -> covers it: %s", (resource, endpoint, covers) => {
    expect(coversEndpoint(resource, new URL(endpoint))).toBe(covers);
  });
});

describe("fields", () => {
  test.each([
    ["https://as.com/", "https://as.com/"],
    ["https://as.com/{tenant}/v2.0", "https://as.com/{tenant}/v2.0"],
    ["", undefined],
    ["https://as.com/ x", undefined],
    ["https://as.com/\u202e", undefined],
    ["https://as.com/\u001b[2J", undefined],
    [`https://as.com/${"x".repeat(2_040)}`, undefined],
    [7, undefined],
    [null, undefined],
  ])("the address %j -> %j", (value, address) => {
    expect(readAddress(value)).toBe(address);
  });

  test.each([
    [
      ["a", "b"],
      ["a", "b"],
    ],
    ["a b", ["a", "b"]],
    [
      ["a", 7, null, "", "b c", "d\n", "x".repeat(257), "e"],
      ["a", "e"],
    ],
    [[], undefined],
    [[null], undefined],
    ["", undefined],
    [{ a: "b" }, undefined],
    [undefined, undefined],
  ])("the list %j -> %j", (value, words) => {
    expect(readWords(value)).toEqual(words);
  });

  test.each([[new Array<string>(5_000).fill("a")], ["a ".repeat(5_000)]])("5,000 items -> 1,000", (value) => {
    expect(readWords(value)).toHaveLength(1_000);
  });

  test.each([
    [true, true],
    ["true", true],
    [false, false],
    ["yes", false],
    [1, false],
    [undefined, false],
  ])("the flag %j -> %s", (value, flag) => {
    expect(readFlag(value)).toBe(flag);
  });

  test("many authorization servers, some twice -> the first ten, each once", () => {
    const many = [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((n) => `https://as${n}.com`);
    const { issuers } = readResource({ authorization_servers: many }, new URL("https://a.com"));
    expect(issuers).toHaveLength(10);
    expect(issuers.slice(0, 2)).toEqual(["https://as0.com", "https://as1.com"]);
  });

  test("one authorization server as a text -> a list of one", () => {
    const { issuers } = readResource({ authorization_servers: "https://as.com" }, new URL("https://a.com"));
    expect(issuers).toEqual(["https://as.com"]);
  });
});

describe("metadata of an authorization server", () => {
  const WELL = {
    issuer: "https://as.com",
    authorization_endpoint: "https://as.com/authorize?tenant=1",
    token_endpoint: "https://as.com/token",
    registration_endpoint: "https://as.com/register",
    revocation_endpoint: "https://as.com/revoke",
    code_challenge_methods_supported: ["S256", "plain"],
  };
  const read = (
    fields: object,
    { server = "https://mcp.com/mcp", from = "https://as.com/.well-known/x", machine = false } = {},
  ) => {
    const notes: string[] = [];
    const grantType = machine ? "client_credentials" : "authorization_code";
    const metadata = readServer(
      { ...WELL, ...fields },
      {
        from: new URL(from),
        server: new URL(server),
        plan: { grantType },
        onNote: (note) => notes.push(note),
      },
    );
    return { metadata, notes };
  };

  test("known fields -> kept; other fields -> left out", () => {
    const more = {
      scopes_supported: ["read"],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: "true",
      jwks_uri: "https://as.com/keys",
      mtls_endpoint_aliases: { token_endpoint: "https://evil.com/token" },
    };
    expect(read(more)).toEqual({
      metadata: {
        ...WELL,
        scopes_supported: ["read"],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
      },
      notes: [],
    });
  });

  const WRONG: [name: string, fields: object, kind: string][] = [
    ["no token endpoint", { token_endpoint: undefined }, "no-endpoint"],
    ["null as the token endpoint", { token_endpoint: null }, "no-endpoint"],
    ["no authorization endpoint", { authorization_endpoint: undefined }, "no-endpoint"],
    ["a path as the token endpoint", { token_endpoint: "/token" }, "bad-answer"],
    ["a list as the token endpoint", { token_endpoint: ["https://as.com/token"] }, "bad-answer"],
    ["credentials in the token endpoint", { token_endpoint: "https://a:b@as.com/token" }, "bad-answer"],
    [
      "a fragment in the authorization endpoint",
      { authorization_endpoint: "https://as.com/#/login" },
      "bad-answer",
    ],
    ["http at the token endpoint", { token_endpoint: "http://as.com/token" }, "not-https"],
    [
      "http at the authorization endpoint",
      { authorization_endpoint: "http://as.com/authorize" },
      "not-https",
    ],
    [
      "a script as the authorization endpoint",
      { authorization_endpoint: "javascript:alert(1)" },
      "not-https",
    ],
    ["a file as the authorization endpoint", { authorization_endpoint: "file:///etc/passwd" }, "not-https"],
    ["a program as the authorization endpoint", { authorization_endpoint: "vscode://x/y" }, "not-https"],
    [
      "a private authorization endpoint",
      { authorization_endpoint: "https://192.168.0.1/a" },
      "private-address",
    ],
    [
      "an authorization endpoint on loopback",
      { authorization_endpoint: "http://localhost:9/a" },
      "private-address",
    ],
    ["PKCE without S256", { code_challenge_methods_supported: ["plain"] }, "pkce-refused"],
  ];
  test.each(WRONG)("%s -> refused", (_name, fields, kind) => {
    let problem: unknown;
    try {
      read(fields);
    } catch (error) {
      problem = error;
    }
    expect(problem).toBeInstanceOf(SignInProblem);
    expect(problem).toMatchObject({ kind });
  });

  test.each([
    ["a private server", { server: "https://10.0.0.1/mcp" }],
    ["metadata on the same host", { from: "https://192.168.0.1/.well-known/x" }],
  ])("a private authorization endpoint beside %s -> accepted", (_name, more) => {
    const fields = { authorization_endpoint: "https://192.168.0.1/a" };
    expect(read(fields, more).metadata).toMatchObject(fields);
  });

  test.each([undefined, null, [], "", [7]])("PKCE methods %j -> accepted with a note", (methods) => {
    const { metadata, notes } = read({ code_challenge_methods_supported: methods });
    expect(metadata.token_endpoint).toBe(WELL.token_endpoint);
    expect(metadata.code_challenge_methods_supported).toBeUndefined();
    expect(notes).toEqual([expect.stringContaining("PKCE")]);
  });

  test("a machine -> neither an authorization endpoint nor PKCE is needed", () => {
    const fields = { authorization_endpoint: undefined, code_challenge_methods_supported: ["plain"] };
    const { metadata, notes } = read(fields, { machine: true });
    expect(metadata.token_endpoint).toBe(WELL.token_endpoint);
    expect(notes).toEqual([]);
  });

  test.each([["registration_endpoint"], ["revocation_endpoint"]])(
    "a wrong %s -> left out with a note",
    (key) => {
      const { metadata, notes } = read({ [key]: "http://as.com/x" });
      expect(metadata[key]).toBeUndefined();
      expect(notes).toEqual([`has a ${key} that is not used (not-https)`]);
    },
  );
});

test.each([
  ["https://as.com", undefined],
  ["https://login.as.com/{tenantid}/v2.0", undefined],
  ["as.com", "it names no issuer"],
  ["urn:as", "it names no issuer"],
  ["https://", "it names no issuer"],
  ["", "it names no issuer"],
  [null, "it names no issuer"],
  [["https://as.com"], "it names no issuer"],
  [undefined, "it names no issuer"],
])("the issuer %j -> %j", (issuer, lack) => {
  expect(lacksIssuer({ issuer })).toBe(lack);
});
