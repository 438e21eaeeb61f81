/** A failure of a sign-in as a value: its kind and the facts that its sentence needs. No fact may hold a secret. */

/** Each kind has its sentence and its remedy in explain.ts. */
export type SignInProblemKind =
  /** Nobody has signed in yet. */
  | "not-signed-in"
  /** There are no metadata of an authorization server, and no endpoints to guess. `what`: what is in their place. */
  | "no-sign-in"
  /** The tokens have expired and cannot be renewed. `path` for tokens that someone else wrote. */
  | "expired"
  /** The authorization server no longer accepts the refresh token. */
  | "refresh-refused"
  /** The server refused a token that was just issued. */
  | "fresh-token-refused"
  /** The MCP server names another authorization server than the one that issued the tokens. `found` */
  | "moved"
  /** The server wants more scope than was granted. `scope` */
  | "scope-wanted"
  /** The server still wants a scope for which the user has signed in twice. `scope` */
  | "scope-loop"
  /** The authorization server refuses the scope. `scope` */
  | "scope-refused"
  /** There is no dynamic registration, and no client is configured. `url`: the issuer */
  | "no-registration"
  /** Registration is for known clients only (403). */
  | "known-clients-only"
  /** The registration was refused for another reason. `what` */
  | "registration-refused"
  /** The authorization server does not know the client. */
  | "client-unknown"
  /** `issuer` of the metadata differs from the address of the metadata. `expected`, `found` */
  | "issuer-differs"
  /** The protected resource metadata are for another resource. `expected`, `found` */
  | "resource-differs"
  /** The authorization server refuses `resource` (Entra: AADSTS9010010). */
  | "resource-refused"
  /** The metadata list PKCE methods without S256. */
  | "pkce-refused"
  /** The metadata lack an endpoint. `what`: its key, `url` */
  | "no-endpoint"
  /** `port` */
  | "port-in-use"
  /** The authorization server refuses the redirect URI. `url` */
  | "redirect-refused"
  /** `state` is missing or is not the one that was sent. */
  | "state-wrong"
  /** `iss` is missing or wrong (RFC 9207). Neither `error` nor its description may be shown. */
  | "response-issuer-wrong"
  /** The user said no in the browser. */
  | "denied"
  /** The code was refused: it has expired or was used before. */
  | "code-refused"
  | "timed-out"
  | "cancelled"
  /** Too many sign-ins wait for their browsers at once. `most` */
  | "too-many"
  /** `url`, `what` */
  | "unreachable"
  /** The authorization server has trouble (5xx, 408, 429). `url`, `status` */
  | "unavailable"
  /** `url`, `what`: for example "HTML in the place of JSON" */
  | "bad-answer"
  /** Any other OAuth error. `error`, `what`: its description */
  | "refused"
  /** `url` */
  | "not-https"
  /** A public server names an address of a private network. `url` */
  | "private-address"
  /** A secret of the configuration would go to a site that it does not name. `url`, and the `key` for `found` */
  | "secret-elsewhere"
  /** `path`, `what` */
  | "store-unwritable"
  /** `path` */
  | "lock-busy"
  /** A key of the configuration cannot be used. `key`, `what` */
  | "bad-settings";

export interface ProblemFacts {
  /** Without query, fragment and credentials. */
  url?: string;
  expected?: string;
  found?: string;
  scope?: string;
  port?: number;
  path?: string;
  status?: number;
  most?: number;
  error?: string;
  /** A short text in plain words, or the server's own words, which explain.ts bounds and cleans. */
  what?: string;
  key?: string;
}

export class SignInProblem extends Error {
  override readonly name = "SignInProblem";
  readonly kind: SignInProblemKind;
  readonly facts: ProblemFacts;

  constructor(kind: SignInProblemKind, facts: ProblemFacts = {}, cause?: unknown) {
    super(kind, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.facts = facts;
  }
}
