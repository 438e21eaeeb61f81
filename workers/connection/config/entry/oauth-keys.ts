/**
 * The table of all keys of `oauth`: what each may hold, what may be wrong with it, and what a person who is asked for consent
 * reads of it. The checks run when a file is read, where a value behind a variable or a command is passed over, and at a
 * sign-in, where every value is known. No finding shows a value. To add a key: a row here, and its use. Pure.
 */
import * as z from "zod";
import { canonical } from "../../../shared/json.ts";
import { isCommand } from "./interpolate.ts";
import { filled, type Key, type Loose, names, shapeOf, strings, text } from "./shape.ts";
import { shown, shownUrl, textsIn, withOrigin, withValue } from "./shown-text.ts";

/** `path`: keys below `oauth`. `message` follows them: `oauth.issuer is not ...`. */
interface OAuthFinding {
  path: string[];
  message: string;
  remedy: string;
}

/** Undefined: the value can be used. */
type Check = (text: string) => Omit<OAuthFinding, "path"> | undefined;

/** Algorithms of a signed assertion (RFC 7518, section 3.1, and RFC 9864). */
const SIGNING_ALGS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
] as const;

const ASSERTION_CHARS = 16 * 1024;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** http or https, and nothing in it that has no meaning here. */
function webUrl(text: string): URL | undefined {
  const url = URL.parse(text);
  return url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
    ? url
    : undefined;
}

/** A token or a code never travels in the open (RFC 6749, section 3.1), but on this machine it may. */
const isSafe = (url: URL | undefined): boolean =>
  url !== undefined && (url.protocol === "https:" || LOOPBACK.test(url.hostname));

/** The same of a text. */
export const isSafeUrl = (text: string): boolean => isSafe(webUrl(text));

const test =
  (isSound: (text: string) => boolean, message: string, remedy: string): Check =>
  (text) =>
    isSound(text) ? undefined : { message, remedy };

/** The single rights of a scope, however many blanks are between them. */
export const scopesOf = (scope: string): string[] => scope.split(/\s+/).filter(Boolean);

/** Of RFC 6749, appendix A: VSCHAR. */
const printable = test(
  (text) => /^[\x20-\x7e]*$/.test(text),
  "holds characters that OAuth does not allow",
  "Write printable ASCII.",
);

const webPage = test(
  (text) => webUrl(text) !== undefined,
  "is not an http or https URL",
  'Write for example "https://example.com".',
);

/** A key that counts in the plan. */
interface PlanKey<S extends z.ZodType> extends Key<S> {
  readonly check?: Check;
  /** What a person reads who is asked for consent. Every key has words, because each is part of what the user agrees to. */
  readonly words: (value: z.infer<S>) => string[];
  /** Only where the value comes from is shown. */
  readonly isSecret?: true;
  /** Why no file of a project may set it, or may set this value. */
  readonly usersOnly?: string | ((value: z.infer<S>) => string | undefined);
}

type About<S extends z.ZodType> = Omit<PlanKey<S>, "schema" | "words">;

/** `what`: the noun before the value. */
const shownAs = (what: string, about: About<z.ZodString>, show = shown): PlanKey<z.ZodString> => ({
  schema: text,
  words: (value) => [withValue(what, value, show)],
  ...about,
});

const address = (what: string, about: About<z.ZodString>) => shownAs(what, about, shownUrl);

const secret = (what: string, about: About<z.ZodString>): PlanKey<z.ZodString> => ({
  schema: text,
  words: (value) => [withOrigin(what, value)],
  isSecret: true,
  ...about,
});

/** Header, claims and signature (RFC 7515, section 3.1). The longest that identity providers issue have some KB. */
export const isSignedJwt = (text: string): boolean =>
  text.length <= ASSERTION_CHARS && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);

const key = <S extends z.ZodType>(schema: () => S, about: Omit<PlanKey<S>, "schema">): PlanKey<S> => ({
  schema,
  ...about,
});

const scopes = {
  schema: () => z.union([text(), names()]),
  description: "Another spelling of oauth.scope; a text or a list.",
  examples: [["read", "write"]],
};

const OAUTH_KEYS = {
  clientId: shownAs("client id", {
    description: "Id of a client that you registered at the authorization server.",
    examples: ["my-client"],
    check: printable,
  }),
  clientSecret: secret("client secret", {
    description: "Secret of that client.",
    examples: ["${DOCS_SECRET}"],
    check: printable,
  }),
  clientName: shownAs("client name", {
    description: "Name under which a client registers itself.",
    examples: ["Pi"],
  }),
  clientUri: address("client page", {
    description: "Web page of the client, for its registration.",
    examples: ["https://example.com"],
    check: webPage,
  }),
  logoUri: address("client picture", {
    description: "Picture of the client, for its registration.",
    examples: ["https://example.com/logo.png"],
    check: webPage,
  }),
  clientMetadataUrl: address("client metadata", {
    description: "https address of a client metadata document, which is then the client's id.",
    examples: ["https://example.com/client.json"],
    check: test(
      (text) => {
        const url = webUrl(text);
        // Client ID Metadata Document, section 3: https, with a path, without a fragment.
        return url?.protocol === "https:" && url.pathname !== "/" && !text.includes("#");
      },
      "is not an https URL with a path",
      'Write for example "https://example.com/client.json".',
    ),
  }),
  clientRegistration: key(() => z.enum(["auto", "dcr", "cimd"]), {
    description:
      "How a client without an id becomes known: dcr only registers it, cimd only uses a metadata document.",
    examples: ["auto"],
    words: (way) => (way === "auto" ? [] : [`client registration ${way}`]),
  }),
  redirectUri: address("redirect URI", {
    description:
      "Where the browser answers, exactly as it is registered. {port} is callbackPort, or a free port. At another machine you paste the last address.",
    examples: ["http://localhost:{port}/callback"],
    check: test(
      (text) => isSafe(webUrl(text.replaceAll("{port}", "1"))) && !text.includes("#"),
      "is not an https URL, or an http URL on localhost or 127.0.0.1",
      'Write for example "http://127.0.0.1:{port}/callback".',
    ),
  }),
  callbackUrl: {
    schema: text,
    description: "Another spelling of oauth.redirectUri.",
    examples: ["http://127.0.0.1:3118/callback"],
  },
  callbackPort: key(() => z.int().min(1).max(65_535), {
    description: "The browser answers at http://127.0.0.1:<port>/callback.",
    examples: [3118],
    words: (port) => [`callback port ${port}`],
  }),
  grantType: key(
    () => z.enum(["authorization_code", "client_credentials", "jwt_bearer", "identity_provider"]),
    {
      description:
        "authorization_code asks the user in a browser; client_credentials needs no user, but a secret, a private key or an assertion; jwt_bearer exchanges an assertion for a token (workload identity); identity_provider signs in through settings.identityProvider, not in a project's file.",
      examples: ["authorization_code"],
      words: (grant) => (grant === "authorization_code" ? [] : ["signs in without you"]),
      usersOnly: (grant) =>
        grant === "identity_provider" ? "it uses your sign-in at your identity provider" : undefined,
    },
  ),
  deviceCode: key(() => z.boolean(), {
    description:
      "true signs in with a code that you enter on another device, false never does. By default only where no browser can be opened and the authorization server offers it.",
    examples: [true],
    words: (always) => [always ? "signs in with a code for another device" : "no code for another device"],
  }),
  scope: shownAs("scope", {
    description: "Rights to ask for, with spaces between, in place of those that the server names.",
    examples: ["read write"],
    check: test(
      // RFC 6749, section 3.3.
      (text) => scopesOf(text).every((right) => /^[!#-[\]-~]+$/.test(right)),
      "is not a list of rights with a space between",
      'Write for example "read write".',
    ),
  }),
  scopes,
  authServerMetadataUrl: address("authorization server", {
    description:
      "Address of the authorization server's metadata. Nothing else is looked up, and resource is sent only if you write it.",
    examples: ["https://auth.example.com/.well-known/oauth-authorization-server"],
    check: test(
      (text) => isSafe(webUrl(text)),
      "is not an https URL",
      'Write for example "https://auth.example.com/.well-known/oauth-authorization-server".',
    ),
  }),
  issuer: address("issuer", {
    description: "The one name that the authorization server may give itself.",
    examples: ["https://auth.example.com"],
    check: test(
      // RFC 8414, section 2: no query, no fragment.
      (text) => isSafe(webUrl(text)) && !/[?#]/.test(text),
      "is not an https URL without a query",
      'Write for example "https://auth.example.com".',
    ),
  }),
  skipIssuerMetadataValidation: key(() => z.boolean(), {
    description: "true accepts any issuer, with a warning; the key issuer is safer. Not in a project's file.",
    examples: [false],
    words: () => ["any issuer"],
    usersOnly: "it lets another authorization server get your sign-in",
  }),
  resource: key(() => z.union([text(), z.literal(false)]), {
    description: "Value of the parameter resource, or false to send none, as Entra wants it.",
    examples: ["https://example.com/mcp"],
    words: (resource) =>
      resource === false ? ["no resource parameter"] : [withValue("resource", resource, shownUrl)],
    check: test(
      // RFC 8707, section 2: an absolute URI without a fragment, which need not be a web address.
      (text) => URL.canParse(text) && !text.includes("#"),
      "is not an absolute URI without a fragment",
      'Write for example "https://example.com/mcp", or false.',
    ),
  }),
  dpop: key(() => z.boolean(), {
    description:
      "Whether tokens are bound to a key (DPoP), which never leaves this machine: true sends no others, false takes none. Without the key: where the server asks for it.",
    examples: [true],
    words: (isBound) => [isBound ? "tokens bound to a key" : "no tokens bound to a key"],
  }),
  authorizationParams: key(strings, {
    description: "Further parameters of the page that the browser opens.",
    examples: [{ access_type: "offline" }],
    words: (params) =>
      Object.entries(params).map(([name, value]) =>
        isCommand(value)
          ? withValue(`parameter ${shown(name)}`, value)
          : `parameter ${shown(name)}=${shown(value)}`,
      ),
  }),
  privateKey: secret("private key", {
    description: "Private key (PEM) of the client, which signs its requests.",
    examples: ["${DOCS_KEY}"],
    check: test(
      (text) => /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text),
      "does not hold a private key in PEM form",
      "Write it as a variable or a !command, or write oauth.privateKeyFile.",
    ),
  }),
  privateKeyFile: shownAs("private key file", {
    description: "Absolute path of that key's file. Not in a project's file.",
    examples: ["~/.config/docs/key.pem"],
    usersOnly: "it uses a file of yours",
  }),
  keyId: shownAs("key id", { description: "Id of that key.", examples: ["key-1"], check: printable }),
  signingAlg: key((): z.ZodType<string> => z.enum(SIGNING_ALGS), {
    description: "Algorithm of the signature, if the key does not decide it.",
    examples: ["ES256"],
    words: (name) => [withValue("signing algorithm", name)],
  }),
  assertion: secret("assertion", {
    description: "Signed assertion (JWT), as a variable or a !command, which runs for each token.",
    examples: ["${ID_TOKEN}"],
    check: test(
      (text) => isSignedJwt(text.trim()),
      "does not hold a signed assertion",
      "It is a JWT: three parts of letters, digits, - and _, with dots between.",
    ),
  }),
  assertionFile: shownAs("assertion file", {
    description: "Absolute path of a signed assertion that another program renews. Not in a project's file.",
    examples: ["/var/run/secrets/token"],
    usersOnly: "it sends a file of yours",
  }),
};

export const oauthShape = () => z.looseObject(shapeOf(OAUTH_KEYS));
/** `oauth` as it is written, checked. */
export type OAuthEntry = Loose<ReturnType<typeof shapeOf<typeof OAUTH_KEYS>>>;

/** `auth` as an object: a provider of Pi, or a client as Cursor writes it. */
export const authShape = () =>
  z.looseObject(
    shapeOf({
      provider: {
        schema: filled,
        description:
          "Sends the token of this provider, to which you signed in with Pi's /login; to https addresses and to this machine. Not in a project's file.",
        examples: ["radius"],
      },
      CLIENT_ID: {
        schema: text,
        description: "Another spelling of oauth.clientId, as Cursor writes it.",
        examples: ["my-client"],
      },
      CLIENT_SECRET: {
        schema: text,
        description: "Another spelling of oauth.clientSecret.",
        examples: ["${DOCS_SECRET}"],
      },
      scopes,
    }),
  );

type Rows = typeof OAUTH_KEYS;
type PlanKeys = {
  [K in keyof Rows as Rows[K] extends { words: unknown } ? K : never]: z.infer<ReturnType<Rows[K]["schema"]>>;
};

/** What an entry says about OAuth, in one shape for all dialects. Values stay as written until they are needed. */
export type OAuthPlan = Pick<PlanKeys, "grantType" | "clientRegistration"> & {
  [K in keyof PlanKeys]?: PlanKeys[K];
};

/** The keys of a plan, those that decide where a token goes first. */
const PLAN_KEYS = (
  Object.entries(OAUTH_KEYS as Record<string, Key | PlanKey<z.ZodType>>) as [keyof OAuthPlan, Key][]
).filter((entry): entry is [keyof OAuthPlan, PlanKey<z.ZodType>] => "words" in entry[1]);

/** The order in which a question tells of the keys: what decides where a token goes comes first. */
const TOLD: readonly (keyof OAuthPlan)[] = [
  ...(["authServerMetadataUrl", "issuer", "skipIssuerMetadataValidation", "resource", "grantType"] as const),
  ...(["clientId", "clientSecret", "privateKey", "privateKeyFile", "keyId", "signingAlg"] as const),
  ...(["assertion", "assertionFile", "clientMetadataUrl", "clientRegistration", "clientName"] as const),
  ...([
    "clientUri",
    "logoUri",
    "redirectUri",
    "callbackPort",
    "deviceCode",
    "scope",
    "dpop",
    "authorizationParams",
  ] as const),
];
const placeOf = (key: keyof OAuthPlan): number => (TOLD.indexOf(key) + TOLD.length) % TOLD.length;

/** The plan of an entry that says nothing about OAuth: a sign-in begins if the server asks for one. */
const DEFAULT_OAUTH: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };

/** Whether an entry says nothing about OAuth. */
export const isDefaultOAuth = (oauth: OAuthPlan | false): boolean =>
  canonical(oauth) === canonical(DEFAULT_OAUTH);

/** The plan of what is written in one spelling. Keys mean in a plan what they mean in a file; an empty text is absent. */
export function planOf(written: OAuthEntry): OAuthPlan {
  const counts = ([key, value]: readonly [string, unknown]): boolean =>
    value !== undefined && value !== "" && !(key === "skipIssuerMetadataValidation" && value === false);
  const given = PLAN_KEYS.map(([key]) => [key, written[key]] as const).filter(counts);
  return { ...DEFAULT_OAUTH, ...Object.fromEntries(given) };
}

/** The plan without the keys that no file of a project may set, and of each of these why. */
export function withoutUsersOnly(plan: OAuthPlan): { plan: OAuthPlan; left: { key: string; why: string }[] } {
  const left = PLAN_KEYS.flatMap(([key, { usersOnly }]) => {
    const value = plan[key];
    if (value === undefined) return [];
    const why = typeof usersOnly === "function" ? usersOnly(value as string) : usersOnly;
    return why === undefined ? [] : [{ key, why }];
  });
  const kept = Object.entries(plan).filter(([key]) => left.every((one) => one.key !== key));
  return { plan: { ...DEFAULT_OAUTH, ...Object.fromEntries(kept) }, left };
}

/** What a person reads of a plan who is asked for consent. Empty for an entry that says nothing about OAuth. */
export const oauthWords = (plan: OAuthPlan): string[] =>
  PLAN_KEYS.toSorted(([a], [b]) => placeOf(a) - placeOf(b)).flatMap(([key, { words }]) =>
    plan[key] === undefined ? [] : words(plan[key]),
  );

/** A lower bound for the characters of these words: without secrets, and without the keys that a plan always has. */
export const leastOAuthChars = (plan: OAuthPlan): number =>
  PLAN_KEYS.filter(([key, { isSecret }]) => !isSecret && !Object.hasOwn(DEFAULT_OAUTH, key))
    .flatMap(([key]) => textsIn(key === "authorizationParams" ? Object.entries(plan[key] ?? {}) : plan[key]))
    .reduce((sum, text) => sum + text.length, 0);

/** Keys of `settings.identityProvider`, which mean there what they mean in `oauth` of a server. */
const IDENTITY_KEYS = [
  ...([
    "issuer",
    "authServerMetadataUrl",
    "clientId",
    "clientSecret",
    "privateKey",
    "privateKeyFile",
  ] as const),
  ...([
    "keyId",
    "signingAlg",
    "deviceCode",
    "scope",
    "redirectUri",
    "callbackPort",
    "authorizationParams",
    "assertion",
    "assertionFile",
  ] as const),
];

export const identityShape = () =>
  z.looseObject(
    shapeOf(
      Object.fromEntries(IDENTITY_KEYS.map((key) => [key, OAUTH_KEYS[key]])) as Pick<
        typeof OAUTH_KEYS,
        (typeof IDENTITY_KEYS)[number]
      >,
    ),
  );
/** `settings.identityProvider` as it is written, checked. */
export type IdentityEntry = z.infer<ReturnType<typeof identityShape>>;

/**
 * The plan of a sign-in at the identity provider: an ordinary one of OpenID Connect, whose refresh token renews the identity
 * (OpenID Connect Core, section 11), or none if another program gives the assertion.
 */
export function identityPlan(written: IdentityEntry): OAuthPlan {
  const isGiven = (written.assertion ?? written.assertionFile) !== undefined;
  const scope = written.scope ?? "openid offline_access";
  return planOf({
    ...written,
    scope,
    grantType: isGiven ? "jwt_bearer" : "authorization_code",
    resource: false,
  });
}

/** `isKnown`: as in `oauthFindings`. */
export function identityFindings(written: IdentityEntry, isKnown: (text: string) => boolean): OAuthFinding[] {
  const missing = (["issuer", "clientId"] as const).filter((key) => !written[key]);
  return [
    ...missing.map((key) => ({
      path: [key],
      message: "is missing",
      remedy: `Write ${key}, as those who manage the identity provider name it.`,
    })),
    ...oauthFindings(identityPlan(written), isKnown),
  ];
}

/** Parameters that the protocol sets itself, and those that would replace or hide the others (RFC 9101). */
export const OWN_PARAMETER =
  /^(?:client_id|redirect_uri|response_type|response_mode|state|code_challenge.*|dpop_jkt|resource|scope|request|request_uri)$/i;

const parameters = ({ authorizationParams = {} }: OAuthPlan): OAuthFinding[] =>
  Object.keys(authorizationParams)
    .filter((name) => OWN_PARAMETER.test(name))
    .map((name) => ({
      path: ["authorizationParams", name],
      message: "is a parameter that only the sign-in itself sets",
      remedy: /^(?:client_id|redirect_uri|resource|scope)$/i.test(name)
        ? "Write it as a key of oauth: clientId, redirectUri, resource or scope."
        : "Remove it.",
    }));

/** A machine signs in by itself, so it must have something to prove who it is (RFC 6749, section 4.4). */
function credentials(plan: OAuthPlan): OAuthFinding[] {
  const { grantType } = plan;
  if (grantType === "authorization_code") return [];
  const { clientId, clientSecret, privateKey, privateKeyFile, assertionFile } = plan;
  const assertion = plan.assertion ?? assertionFile;
  const path = ["grantType"];
  const hasClient = clientId !== undefined || plan.clientMetadataUrl !== undefined;
  const clientless = { path, message: `${grantType} has no client`, remedy: "Write clientId beside it." };
  // The assertion of the identity provider is for one client (Enterprise-Managed Authorization, section 4.3).
  if (grantType === "identity_provider") return hasClient ? [] : [clientless];
  if (grantType === "jwt_bearer") {
    // RFC 7523, section 2.1: the assertion alone is enough.
    const remedy = "Write assertionFile or assertion beside it.";
    return assertion === undefined ? [{ path, message: `${grantType} has no assertion`, remedy }] : [];
  }
  if ([clientSecret, privateKey, privateKeyFile, assertion].every((proof) => proof === undefined)) {
    return [
      {
        path,
        message: `${grantType} has nothing that proves who the client is`,
        remedy: "Write clientSecret, privateKeyFile or assertionFile beside it.",
      },
    ];
  }
  return hasClient || assertion !== undefined ? [] : [clientless];
}

function combinations(plan: OAuthPlan): OAuthFinding[] {
  const found = credentials(plan);
  if (plan.privateKey !== undefined && plan.privateKeyFile !== undefined)
    found.push({
      path: ["privateKeyFile"],
      message: "is a second private key beside privateKey",
      remedy: "Remove one of the two.",
    });
  if (plan.assertion !== undefined && plan.assertionFile !== undefined)
    found.push({
      path: ["assertionFile"],
      message: "is a second assertion beside assertion",
      remedy: "Remove one of the two.",
    });
  return found;
}

/** `isKnown`: whether a text is the value itself, not a variable or a command that gives the value. */
export function oauthFindings(plan: OAuthPlan, isKnown: (text: string) => boolean): OAuthFinding[] {
  const values = PLAN_KEYS.flatMap(([key, { check }]): OAuthFinding[] => {
    const value = plan[key];
    const found = typeof value === "string" && isKnown(value) ? check?.(value) : undefined;
    return found ? [{ path: [key], ...found }] : [];
  });
  return [...values, ...parameters(plan), ...combinations(plan)];
}
