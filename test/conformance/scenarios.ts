/**
 * Owns: which scenarios of the conformance suite run, and which of them are expected to fail. A scenario that passes must
 * leave `EXPECTED_FAILURES`. A scenario that a suite lists is in exactly one of the lists.
 */

/** A version of `@modelcontextprotocol/conformance`, which is installed under a name of its own. */
export interface Suite {
  version: string;
  /** Its folder in `node_modules`. */
  folder: string;
  /** Further arguments of `conformance client`. */
  args: readonly string[];
}

export const SUITES = {
  stable: { version: "0.1.16", folder: "mcp-conformance-0.1", args: [] },
  // Scenarios of the coming revision run on its stateless wire, unless they are told otherwise.
  next: {
    version: "0.2.0-alpha.12",
    folder: "mcp-conformance-0.2",
    args: ["--spec-version", "2025-11-25", "--force"],
  },
} as const satisfies Record<string, Suite>;

/** Scenarios of both versions. */
const COMMON = [
  "initialize",
  "tools_call",
  "sse-retry",
  "elicitation-sep1034-client-defaults",
  "auth/metadata-default",
  "auth/metadata-var1",
  "auth/metadata-var2",
  "auth/metadata-var3",
  "auth/basic-cimd",
  "auth/scope-from-www-authenticate",
  "auth/scope-from-scopes-supported",
  "auth/scope-omitted-when-undefined",
  "auth/scope-step-up",
  "auth/scope-retry-limit",
  "auth/token-endpoint-auth-basic",
  "auth/token-endpoint-auth-post",
  "auth/token-endpoint-auth-none",
  "auth/pre-registration",
  "auth/2025-03-26-oauth-metadata-backcompat",
  "auth/2025-03-26-oauth-endpoint-fallback",
  "auth/resource-mismatch",
  "auth/offline-access-scope",
  "auth/offline-access-not-supported",
  "auth/client-credentials-jwt",
  "auth/client-credentials-basic",
];

/** Scenarios that only the newer version has. */
const ONLY_NEXT = [
  "auth/authorization-server-migration",
  "auth/iss-supported",
  "auth/iss-not-advertised",
  "auth/iss-supported-missing",
  "auth/iss-wrong-issuer",
  "auth/iss-unexpected",
  "auth/iss-normalized",
  "auth/metadata-issuer-mismatch",
];

type ByVersion = Record<keyof typeof SUITES, readonly string[]>;

/** Scenarios of each version that the client can run. */
export const ALL: ByVersion = { stable: COMMON, next: [...COMMON, ...ONLY_NEXT] };

/** Scenarios that run now. Only the long run repeats with the newer version what the older version has proven. */
export const RUN: ByVersion = {
  stable: COMMON,
  next: process.env.CONFORMANCE_ALL === "1" ? ALL.next : ONLY_NEXT,
};

/** Scenarios that run and fail, each with the reason. This list may only shrink. */
export const EXPECTED_FAILURES: Record<keyof typeof SUITES, Readonly<Record<string, string>>> = {
  stable: {},
  next: {},
};

/** Scenarios that do not run, each with the reason. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  "auth/cross-app-access-complete-flow":
    "An extension that the client does not have (enterprise-managed sign-in).",
  "auth/enterprise-managed-authorization": "An extension that the client does not have.",
  "auth/dpop": "An extension that the client does not have.",
  "auth/dpop-nonce": "An extension that the client does not have.",
  "auth/wif-jwt-bearer": "An extension that the client does not have (workload identity).",
  "request-metadata": "The stateless wire of 2026-07-28.",
  "sep-2322-client-request-state": "The stateless wire of 2026-07-28.",
  "http-standard-headers": "The stateless wire of 2026-07-28.",
  "http-custom-headers": "The stateless wire of 2026-07-28.",
  "http-invalid-tool-headers": "The stateless wire of 2026-07-28.",
  "json-schema-ref-no-deref": "The stateless wire of 2026-07-28.",
  "json-schema-2020-12-preservation":
    "The client repairs schemas that models refuse, so it does not hand them on as they are.",
  "sep-2640-client-no-prefetch": "An extension that the client does not have (skills).",
  "sep-2640-client-verify-digest": "An extension that the client does not have (skills).",
  "sep-2640-client-verify-size": "An extension that the client does not have (skills).",
  "sep-2640-client-verify-frontmatter": "An extension that the client does not have (skills).",
};
