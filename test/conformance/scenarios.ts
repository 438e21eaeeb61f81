/**
 * Owns: which scenarios of the conformance suite run, and which of them are expected to fail. A scenario that passes must
 * leave `EXPECTED_FAILURES`. A scenario that a suite lists is in exactly one of the lists.
 */

import { ALL_ROWS } from "../support/long.ts";

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
  // Scenarios of the newer revision run on its stateless wire, unless they are told otherwise.
  next: {
    version: "0.2.0-alpha.12",
    folder: "mcp-conformance-0.2",
    args: ["--spec-version", "2025-11-25", "--force"],
  },
  modern: {
    version: "0.2.0-alpha.12",
    folder: "mcp-conformance-0.2",
    args: ["--spec-version", "2026-07-28", "--force"],
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

/** Scenarios that end with revision 2025-11-25. */
const ONLY_STATEFUL = [
  "initialize",
  "sse-retry",
  "elicitation-sep1034-client-defaults",
  "auth/2025-03-26-oauth-metadata-backcompat",
  "auth/2025-03-26-oauth-endpoint-fallback",
];

/** What a server declares is kept as it came. No revision scores it. */
const SCHEMAS = "json-schema-2020-12-preservation";

/** Scenarios that begin with revision 2026-07-28. */
const ONLY_STATELESS = [
  "request-metadata",
  "sep-2322-client-request-state",
  "http-standard-headers",
  "http-custom-headers",
  "http-invalid-tool-headers",
  "json-schema-ref-no-deref",
];

/** Scenarios that the newer version has under another name. */
const ONLY_STABLE = ["auth/cross-app-access-complete-flow"];

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
  "auth/enterprise-managed-authorization",
  "auth/wif-jwt-bearer",
  "auth/dpop",
  "auth/dpop-nonce",
];

/** Skills of servers (SEP-2640), in both eras. */
const SKILLS = [
  "sep-2640-client-no-prefetch",
  "sep-2640-client-verify-digest",
  "sep-2640-client-verify-size",
  "sep-2640-client-verify-frontmatter",
];

type ByVersion = Record<keyof typeof SUITES, readonly string[]>;

/** Scenarios of each version that the client can run. */
export const ALL: ByVersion = {
  stable: [...COMMON, ...ONLY_STABLE],
  next: [...COMMON, ...ONLY_NEXT, ...SKILLS, SCHEMAS],
  modern: [
    ...COMMON.filter((scenario) => !ONLY_STATEFUL.includes(scenario)),
    ...ONLY_NEXT,
    ...ONLY_STATELESS,
    ...SKILLS,
    SCHEMAS,
  ],
};

/** Scenarios that run now. Only `ALL_ROWS=1` repeats with a newer version or revision what an older one has proven. */
export const RUN: ByVersion = {
  stable: ALL.stable,
  next: ALL_ROWS ? ALL.next : [...ONLY_NEXT, ...SKILLS, SCHEMAS],
  modern: ALL_ROWS
    ? ALL.modern
    : [...ONLY_STATELESS, ...SKILLS, SCHEMAS, "tools_call", "auth/metadata-default"],
};

/** Scenarios that are about messages alone, not about HTTP or signing in: they hold over stdio as well. */
export const OVER_STDIO: ByVersion = {
  stable: ["initialize", "tools_call", "elicitation-sep1034-client-defaults"],
  next: ["initialize", "tools_call", "elicitation-sep1034-client-defaults", ...SKILLS, SCHEMAS],
  modern: ["tools_call", "sep-2322-client-request-state", "json-schema-ref-no-deref", ...SKILLS, SCHEMAS],
};

/** Scenarios that run and fail, each with the reason. This list may only shrink. */
export const EXPECTED_FAILURES: Record<keyof typeof SUITES, Readonly<Record<string, string>>> = {
  stable: {},
  next: {},
  modern: {},
};

const because = (reason: string, scenarios: readonly string[]): Record<string, string> =>
  Object.fromEntries(scenarios.map((scenario) => [scenario, reason]));

/** Scenarios that run in no suite, each with the reason. */
const NEVER: Readonly<Record<string, string>> = {};

/** Scenarios that do not run, each with the reason. */
export const LEFT_OUT: Record<keyof typeof SUITES, Readonly<Record<string, string>>> = {
  stable: NEVER,
  next: {
    ...NEVER,
    ...because("The stateless wire of 2026-07-28: the suite modern runs it.", ONLY_STATELESS),
  },
  modern: { ...NEVER, ...because("Ends with 2025-11-25: the suite next runs it.", ONLY_STATEFUL) },
};
