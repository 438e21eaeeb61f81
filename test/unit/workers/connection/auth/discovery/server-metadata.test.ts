/** Owns: what is taken from the metadata of an authorization server, in tables. */
import { describe, expect, test } from "vitest";
import { lacksIssuer, readServer } from "../../../../../../workers/connection/auth/discovery/metadata.ts";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";

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
