/** Attacks by authorization servers and protected resources: each row begins with `/mcp auth`, as the user does. */
import { execFile } from "node:child_process";
import { mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { family } from "../../support/long.ts";
import { removeFolder } from "../../support/temp-folder.ts";
import type { Arena } from "../support/arena.ts";
import { type Check, type Row, SERVER_CHECKS } from "../support/row.ts";
import { FOREIGN_REQUESTS, flooded, leaks, SECRET, SENTENCE_CHARS, signIn, tells } from "./signing-in.ts";
import { shown } from "./sizes.ts";

const CHECKS: readonly Check[] = [...SERVER_CHECKS, "leaves"];

const SIGNED_IN = /: signed in, 1 tool\.$/;
const UNUSABLE = /gave an answer that cannot be used/;
const NOT_HTTPS = /is not https, and a token would travel in the open/;
const TOO_SLOW = /could not be reached: no complete answer within 15 s/;

/** `attack`: a key of servers/http/sign-in-attacks.mjs. */
const row = (attack: string, says: RegExp, more: Partial<Row> = {}): Row => ({
  name: `a sign-in with this attack: ${attack}`,
  finding: "own",
  checks: CHECKS,
  server: (place) => place.sharedHttp("sign-in.mjs", attack, SECRET),
  happened: "mcp",
  act: (arena) => signIn(arena),
  check: tells(says),
  ...more,
});

/** Attacks on one rule; test/oauth/README.md names the unit tests of each rule. */
const oneOf = (says: RegExp, attacks: readonly [string, ...string[]]): Row[] =>
  family(attacks).map((attack) => row(attack, says));

/** Rules for any JSON document of a sign-in. */
const DOCUMENTS: readonly Row[] = [
  ...oneOf(UNUSABLE, [
    "token: endless",
    "metadata: endless",
    "resource: endless",
    "resource: 64 MiB",
    "register: 64 MiB",
    "authorization endpoint: 1 MB",
  ]),
  ...oneOf(UNUSABLE, [
    "metadata: deep",
    "metadata: 100,000 fields",
    "metadata: 20,000 fields",
    "register: deep",
    "token: deep",
  ]),
  ...oneOf(UNUSABLE, ["token: a redirect to another server", "register: a redirect to another server"]),
];

/** The person, who cancels it, reads where the page is and where the code goes. */
const namesBoth = async (arena: Arena): Promise<string[]> => {
  const asked = arena.dialogs.filter(({ method }) => method === "select").map(({ title }) => String(title));
  const says = /sign in at accounts\.bank\.example, and the code of that sign-in goes to 127\.0\.0\.1:\d+/;
  return [
    ...(asked.length === 1 && says.test(asked[0] ?? "")
      ? []
      : [`the questions are ${JSON.stringify(asked)}`]),
    ...(await tells(/: the sign-in is cancelled\.$/)(arena)),
  ];
};

const METADATA: readonly Row[] = [
  row("authorization endpoint: of another server", /cancelled/, { finding: "A14", check: namesBoth }),
  // The server's own origin is asked in place of metadata that cannot be used, and nothing else.
  ...oneOf(SIGNED_IN, ["resource: deep", "resource: 20,000 fields"]),
  ...oneOf(SIGNED_IN, [
    "resource: a redirect to another server",
    "resource: a redirect to a private address",
    "resource: a redirect to itself",
  ]),
  row(
    "resource: of another origin",
    /it should be the resource \S+ and says it is https:\/\/bank\.example\/mcp/,
  ),
  ...oneOf(NOT_HTTPS, [
    "resource: a private address as the authorization server",
    "resource: a file as the authorization server",
    "resource: 5,000 authorization servers",
  ]),
  ...oneOf(UNUSABLE, ["metadata: a redirect to another server", "metadata: a redirect to a file"]),
  row("metadata: a redirect to itself", UNUSABLE),
  row("metadata: an issuer with escape sequences", UNUSABLE),
  row("metadata: the issuer of another server", /the sign-in is cancelled\.$/),
  ...oneOf(NOT_HTTPS, [
    "authorization endpoint: file:",
    "authorization endpoint: javascript:",
    "authorization endpoint: data:",
    "authorization endpoint: http elsewhere",
  ]),
  row("authorization endpoint: a leading dash", UNUSABLE),
  row("authorization endpoint: escape sequences", UNUSABLE),
  row("authorization endpoint: 200 KB", UNUSABLE),
  row("challenge: 10,000 commas", SIGNED_IN),
  ...oneOf(SIGNED_IN, ["scopes by the thousand", "challenge: 12 KB of scopes"]),
];

const CLIENTS: readonly Row[] = oneOf(UNUSABLE, [
  "register: an id with escape sequences",
  "register: odd fields",
  "register: an id of 100 KB",
  "register: a list",
]);

const ANSWERS: readonly Row[] = [
  row(
    "answer: another issuer",
    /comes from another authorization server: it names \S+ in place of \S+\. Do not trust that page/,
  ),
  row("answer: another state", /the sign-in is cancelled\.$/),
  {
    ...row("none", SIGNED_IN),
    name: `${shown(FOREIGN_REQUESTS)} foreign requests to the listener of a sign-in: the right answer still counts`,
    act: (arena) => signIn(arena, flooded),
  },
];

const TOKENS: readonly Row[] = [
  ...oneOf(UNUSABLE, [
    "token: a line break in it",
    "token: wrong types",
    "token: a type that nobody knows",
    "token: 100 KB of it",
    "token: a list",
  ]),
  ...oneOf(SIGNED_IN, ["token: for 1e308 s", "token: for minus 1 s"]),
  row(
    "token: an error that repeats the code",
    /answered invalid_request: You sent .*code=\[redacted\]&code_verifier=\[redacted\]/,
  ),
];

/** The user wants a code for another device. */
const coded = (attack: string, says: RegExp, more: Partial<Row> = {}): Row =>
  row(attack, says, {
    server: async (place) => ({
      ...(await place.sharedHttp("sign-in.mjs", attack, SECRET)),
      oauth: { deviceCode: true },
    }),
    ...more,
  });
const oneCoded = (says: RegExp, attacks: readonly [string, ...string[]]): Row[] =>
  family(attacks).map((attack) => coded(attack, says));

/** Nothing of the code that a server made of another one's page is shown, and both are named. */
const namesGiver = async (arena: Arena): Promise<string[]> => {
  const titles = arena.dialogs.map(({ title }) => String(title));
  const says = /sends you to accounts\.bank\.example with a code that 127\.0\.0\.1:\d+ gives/;
  return [
    ...(titles.length === 1 && says.test(titles[0] ?? "")
      ? []
      : [`the dialogs are ${JSON.stringify(titles)}`]),
    ...(await tells(/: the sign-in is cancelled\.$/)(arena)),
  ];
};

/** One dialog with the page of the server's own, and no other address. */
const showsOwnPage = async (arena: Arena): Promise<string[]> => {
  const [{ title = "" } = {}] = arena.dialogs;
  const right = /enter this code: WDJB-MJHT/.test(String(title)) && !String(title).includes("evil.example");
  return [...(right ? [] : [`the dialog is ${JSON.stringify(title)}`]), ...(await tells(SIGNED_IN)(arena))];
};

const CODES: readonly Row[] = [
  ...oneCoded(UNUSABLE, [
    "device: a user code with escape sequences",
    "device: a user code of 1 MB",
    "device: a user code of 10 KB",
    "device: minus 1 s of life",
    "device: a page with credentials",
    "device: endless",
    "device: deep",
    "device: a list",
  ]),
  ...oneCoded(NOT_HTTPS, ["device: a page by javascript:", "device: a page by http"]),
  coded("device: the page of another server", /cancelled/, { check: namesGiver }),
  coded("device: an endpoint elsewhere, without https", /offers no sign-in with a code for another device/),
  coded("device: a complete page elsewhere", SIGNED_IN, { check: showsOwnPage }),
  ...oneCoded(SIGNED_IN, [
    "device: 1e308 s of life, every minus 1 s",
    "device: a scope that nobody asked for",
  ]),
  coded("device: slow_down for ever", /the sign-in was not finished in time/),
  coded("device: an error that repeats the code", /answered own_error: You sent .*device_code=\[redacted\]/),
];

const second = (own: string): string => `${own}_token`;

/** Each of the two sign-ins waits for 15 s: they wait at the same time. */
const SLOW: Row = {
  ...row("resource: a byte a second", TOO_SLOW),
  name: "two sign-ins at once, with these attacks: resource: a byte a second; token: a byte a second",
  servers: async (place) => ({
    [second(place.server)]: await place.sharedHttp("sign-in.mjs", "token: a byte a second", SECRET),
  }),
  act: async (arena) => {
    const { server } = arena.place;
    await signIn(arena, undefined, [server, second(server)]);
  },
  check: async (arena) => [...(await tells(TOO_SLOW)(arena)), ...(await tells(TOO_SLOW, second)(arena))],
};

/** Two calls after the sign-in: each is repeated at most twice, and the model reads why it failed. */
const refusedCalls =
  (says: RegExp) =>
  async (arena: Arena): Promise<string[]> => {
    const { place } = arena;
    const before = (await place.seen()).length;
    const texts: string[] = [];
    for (let count = 0; count < 2; count++) texts.push((await arena.use(place.server, "work")).text);
    const asked = (await place.seen()).length - before;
    return [
      ...texts.filter((text) => !says.test(text)).map((text) => `the model reads ${JSON.stringify(text)}`),
      ...(asked > 30 ? [`the server was asked ${asked} times for two calls`] : []),
      ...(await tells(SIGNED_IN)(arena)),
    ];
  };

/** One notice for all calls, and none that the server is signed in. */
const toldOnce = async (arena: Arena): Promise<string[]> => {
  const { server } = arena.place;
  for (let count = 0; count < 4; count++) await arena.use(server, "work");
  await arena.until(async () => arena.notices.some(({ message }) => message.includes("needs a sign-in")));
  const about = arena.notices
    .map(({ message }) => message)
    .filter((message) => message.includes(server) && !message.startsWith("mcp.json: "));
  const isRight = about.length === 1 && about[0]?.includes("needs a sign-in");
  return isRight ? [] : [`the notices are ${JSON.stringify(about)}`];
};

const KEY = "an-api-key-of-the-user-77";
const WORDS =
  /refused the headers\.X-API-Key of \S+mcp\.json:\d+ \(401: Missing API key, you sent \[redacted\]\. Get one! /;

/** The server's words reach the model and the person: cleaned, bounded, without the key; and no sign-in is offered. */
const saysItsWords = async (arena: Arena): Promise<string[]> => {
  const { server } = arena.place;
  const { text } = await arena.use(server, "work");
  await signIn(arena);
  const asked = arena.dialogs.map(({ title }) => String(title)).filter((title) => title.includes(server));
  const status = await arena.status();
  const shown = JSON.stringify([arena.notices, arena.dialogs, arena.requests, status, text]);
  return [
    ...(WORDS.test(text) && text.length < SENTENCE_CHARS ? [] : [`the model reads ${JSON.stringify(text)}`]),
    ...(asked.length === 1 && asked[0]?.includes("Where is the key of")
      ? []
      : [`the dialogs are ${JSON.stringify(asked)}`]),
    ...(status.includes(`${server}: key refused`) ? [] : [`the status is ${status}`]),
    ...(shown.includes(KEY) || shown.includes("\\u001b") || shown.includes("\u202e")
      ? ["Pi shows the key or what acts on a terminal"]
      : []),
  ];
};

const KEYS: readonly Row[] = [
  row("a key: its words", /key/, {
    server: async (place) => ({
      ...(await place.sharedHttp("sign-in.mjs", "a key: its words", SECRET)),
      headers: { "X-API-Key": KEY },
    }),
    act: async () => undefined,
    check: saysItsWords,
  }),
  row("calls: 401 without a sign-in", /sign-in/, {
    finding: "A18",
    act: async () => undefined,
    check: toldOnce,
  }),
];

const CALLS: readonly Row[] = [
  row("calls: 401 for ever", SIGNED_IN, {
    check: refusedCalls(/refused a token that was just issued|needs a sign-in/),
  }),
  row("calls: 403 for ever", SIGNED_IN, { check: refusedCalls(/it wants more rights: admin root/) }),
];

const NOT_BOUND = /gave a token that is not bound to the key of the sign-in \(DPoP\)\. The token is not used/;
const NO_DPOP = /asks for tokens that are bound to a key \(DPoP\), and \S+ offers none with ES256/;
const PROOF_REFUSED = /refuses the proof of the key to which the sign-in is bound \(DPoP: use_dpop_nonce\)/;
const NO_HEADER = /could not be reached: (its answer has too many headers|the connection failed) \(HPE_\w+\)/;
/** A message and its repetitions with another nonce. */
const SENDINGS = 3;

/** No token goes out as a bearer token, and the authorization server is asked as often as a nonce is worth it. */
const keepsBound =
  (check: (arena: Arena) => Promise<string[]>) =>
  async (arena: Arena): Promise<string[]> => {
    const found = await check(arena);
    const seen = await arena.place.seen();
    const asked = seen.filter((step) => step === "token").length;
    return [
      ...found,
      ...(seen.includes("a bearer token") ? ["a token was sent as a bearer token"] : []),
      ...(asked > SENDINGS ? [`tokens were asked for ${asked} times`] : []),
    ];
  };

const boundTo = (says: RegExp, attacks: readonly [string, ...string[]], more: Partial<Row> = {}): Row[] =>
  family(attacks).map((attack) => row(attack, says, { check: keepsBound(tells(says)), ...more }));

const showsBound = async (arena: Arena): Promise<string[]> => {
  const status = await arena.status();
  const isShown = status.includes("signed in, bound to a key, ");
  return [...(isShown ? [] : [`the status is ${status}`]), ...(await tells(SIGNED_IN)(arena))];
};

/** Servers that want tokens that are bound to a key (RFC 9449). */
const DPOP: readonly Row[] = [
  row("dpop: none", SIGNED_IN, { check: keepsBound(showsBound) }),
  ...boundTo(NOT_BOUND, ["dpop: a bearer token"]),
  ...boundTo(NO_DPOP, ["dpop: an authorization server without it", "dpop: algorithms of every wrong shape"]),
  ...boundTo(PROOF_REFUSED, [
    "dpop: token: another nonce each time",
    "dpop: token: the same nonce for ever",
    "dpop: token: no nonce",
    "dpop: token: a nonce of 10 KB",
    "dpop: token: a nonce with a quote",
  ]),
  ...boundTo(NO_HEADER, ["dpop: token: a nonce of 1 MB", "dpop: token: a nonce with escape sequences"]),
  ...boundTo(SIGNED_IN, ["dpop: calls: another nonce each time", "dpop: calls: the same nonce for ever"], {
    check: keepsBound(refusedCalls(PROOF_REFUSED)),
  }),
  ...boundTo(SIGNED_IN, ["dpop: calls: a challenge of Bearer"], {
    check: keepsBound(refusedCalls(/refused a token that was just issued|needs a sign-in/)),
  }),
];

/** What may stand in the place of a server's `tokens.json`. A regular file with a token would connect the server. */
const TOKEN_FILES: Record<string, (path: string) => Promise<unknown>> = {
  a_link: async (path) => {
    const elsewhere = join(path, "..", "elsewhere.json");
    await writeFile(elsewhere, JSON.stringify({ access_token: `${SECRET}-access` }));
    await symlink(elsewhere, path);
  },
  a_pipe: (path) => promisify(execFile)("mkfifo", [path]),
  a_folder: (path) => mkdir(path),
  one_of_100_MB: async (path) => {
    await writeFile(path, "");
    await truncate(path, 100 * 2 ** 20);
  },
  no_json: (path) => writeFile(path, `{"access_token":"${SECRET}-access"`),
  other_types: (path) => writeFile(path, JSON.stringify({ access_token: { a: `${SECRET}-access` } })),
};

/** Its notices come when its servers do, so no row of its round may come before it. */
const FILES: Row = {
  name: `tokens.json of six servers: ${Object.keys(TOKEN_FILES).join(", ")}`,
  finding: "own",
  checks: CHECKS,
  servers: async (place) => {
    for (const [name, put] of Object.entries(TOKEN_FILES)) {
      const folder = join(place.home.agentDir, "mcp-oauth", name);
      await removeFolder(folder);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await put(join(folder, "tokens.json"));
    }
    const { url } = await place.sharedHttp("sign-in.mjs", "none", SECRET);
    return Object.fromEntries(Object.keys(TOKEN_FILES).map((name) => [name, { url, lifecycle: "eager" }]));
  },
  check: async (arena) => {
    const names = Object.keys(TOKEN_FILES);
    const missing = async (): Promise<string[]> => {
      const status = await arena.status();
      return names.filter((name) => !status.includes(`${name}: needs sign-in`));
    };
    await arena.until(async () => (await missing()).length === 0);
    const warned = (name: string): number =>
      arena.notices.filter(({ message }) => message.includes(`${join("mcp-oauth", name)}`)).length;
    return [
      ...(await missing()).map((name) => `${name} does not need a sign-in`),
      ...names
        .filter((name) => warned(name) !== 1)
        .map((name) => `${name} is named by ${warned(name)} notices`),
      ...(await leaks(arena)),
    ];
  },
};

export const SIGN_IN: readonly Row[] = [
  FILES,
  row("none", SIGNED_IN),
  ...DOCUMENTS,
  ...METADATA,
  ...CLIENTS,
  ...ANSWERS,
  ...TOKENS,
  ...CODES,
  ...DPOP,
  SLOW,
  ...CALLS,
  ...KEYS,
];
