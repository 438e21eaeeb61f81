/** Owns: the rules of discovery that need no server, in tables. */
import { describe, expect, test } from "vitest";
import {
  coversEndpoint,
  judgeIssuer,
  readAddress,
  readFlag,
  readResource,
  readWords,
  resourceAddresses,
  serverAddresses,
} from "../../../../../../workers/connection/auth/discovery/metadata.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-values.ts";

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
