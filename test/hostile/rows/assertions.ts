/**
 * Attacks on a sign-in by an assertion: by the program that gives it, by servers that would like to have it, and by what
 * answers in the place of the company's identity provider.
 */
import { readFile } from "node:fs/promises";
import { family } from "../../support/long.ts";
import type { Arena } from "../support/arena.ts";
import { type Check, type Entry, type Place, type Row, SERVER_CHECKS } from "../support/row.ts";
import { SECRET, signIn, tells } from "./signing-in.ts";

const CHECKS: readonly Check[] = [...SERVER_CHECKS, "leaves"];

/** Prints an assertion that no text may show. The command does not hold it as a whole, so that mcp.json does not either. */
const SOUND = `!printf '${SECRET.slice(0, 5)}%s.b.c' '${SECRET.slice(5)}'`;

interface Attacked {
  attack?: string;
  assertion?: string;
  /** Whether a token endpoint may be asked. */
  asked?: boolean;
}

/** A sign-in at a server, and what the server had seen before it; the row's own server and only sign-in if left out. */
interface SignedIn {
  server?: string;
  before?: number;
}

/** The end of the sign-in, and that nothing but the grant of the row was tried. */
const endsWith =
  (says: RegExp, asked: boolean, { server, before = 0 }: SignedIn = {}) =>
  async (arena: Arena): Promise<string[]> => {
    const seen = (await arena.place.seen()).slice(before);
    const isAsked = seen.includes("token");
    return [
      ...(isAsked === asked ? [] : [`a token endpoint was asked: ${isAsked}`]),
      ...(seen.some((step) => step === "authorize" || step === "register")
        ? ["another grant was tried"]
        : []),
      ...(await tells(says, (own) => server ?? own)(arena)),
    ];
  };

/** `attack`: a key of servers/http/sign-in-attacks.mjs. */
const row = (
  name: string,
  { attack = "none", assertion = SOUND, asked = false }: Attacked,
  says: RegExp,
): Row => ({
  name: `a sign-in by an assertion: ${name}`,
  finding: "own",
  checks: CHECKS,
  server: async (place) => ({
    ...(await place.sharedHttp("sign-in.mjs", attack, SECRET)),
    oauth: { grantType: "jwt_bearer", assertion },
  }),
  happened: "mcp",
  act: (arena) => signIn(arena),
  check: endsWith(says, asked),
});

/** `at`: the attack of what stands in the place of the company's identity provider. */
interface Company extends Attacked {
  what: string;
  at?: string;
  says: RegExp;
}

const COMPANY: readonly Company[] = [
  {
    what: "the server asks for a wider audience",
    attack: "resource: of another origin",
    says: /it should be the resource \S+ and says it is https:\/\/bank\.example\/mcp/,
  },
  ...family<Company>([
    {
      what: "another issuer's metadata document",
      attack: "metadata: the issuer of another server",
      says: /should be \S+ and says it is https:/,
    },
    {
      what: "another server's token endpoint",
      attack: "token endpoint: of another server",
      says: /its assertion would go to https:\/\/accounts\.bank\.example\/token, which is another site/,
    },
  ]),
  { what: "an access token in the place of an assertion", asked: true, says: /its assertion is no ID-JAG/ },
  {
    what: "another issuer's metadata in the place of the identity provider's",
    at: "metadata: the issuer of another server",
    says: /should be \S+ and says it is https:\/\/accounts\.bank\.example \(at the identity provider/,
  },
  ...family(["token: endless", "token: deep", "token: 100 KB of it"]).map((at) => ({
    what: `the identity provider, ${at}`,
    at,
    asked: true,
    says: /gave an answer that cannot be used/,
  })),
];

const companyServer = async (place: Place, { attack = "none" }: Attacked): Promise<Entry> => ({
  ...(await place.sharedHttp("sign-in.mjs", attack, SECRET)),
  oauth: { grantType: "identity_provider", clientId: "pi" },
});
const companySettings = async (place: Place, { at = "none" }: Company): Promise<Record<string, unknown>> => {
  const { url } = await place.sharedHttp("sign-in.mjs", at, SECRET);
  return { identityProvider: { issuer: new URL(url).origin, clientId: "pi", assertion: SOUND } };
};

/** Signs in at a server that is new, at an identity provider that is new. Resolves with a text for each problem. */
async function signInNewly(arena: Arena, server: string, company: Company): Promise<string[]> {
  const { place } = arena;
  const { home } = place;
  const before = (await place.seen()).length;
  const { mcpServers } = JSON.parse(await readFile(home.mcpFile, "utf8"));
  const { healthy } = mcpServers;
  const added = { [server]: await companyServer(place, company) };
  await home.writeMcp({ mcpServers: { healthy, ...added }, settings: await companySettings(place, company) });
  const isOver = async (): Promise<boolean> =>
    new RegExp(`^ *${server}: (?!connecting)`, "m").test(await arena.status());
  if (!(await arena.until(isOver))) return ["it never ends to connect"];
  await signIn(arena, undefined, [server]);
  return endsWith(company.says, company.asked ?? false, { server, before })(arena);
}

/** Settings hold for all servers, so that each identity provider has the session for itself. */
const companies = ([first, ...others]: readonly Company[]): Row => {
  let problems: string[] = [];
  if (first === undefined) throw new Error("there is no attack");
  return {
    name: `a company's sign-in, with these attacks in turn: ${[first, ...others].map(({ what }) => what).join("; ")}`,
    thorough: true,
    finding: "own",
    alone: "home",
    checks: CHECKS,
    server: (place) => companyServer(place, first),
    settings: (place) => companySettings(place, first),
    happened: "mcp",
    act: async (arena) => {
      await signIn(arena);
      problems = await endsWith(first.says, first.asked ?? false)(arena);
      for (const [at, company] of others.entries()) {
        const found = await signInNewly(arena, `${arena.place.server}_${at}`, company);
        problems.push(...found.map((text) => `${company.what}: ${text}`));
      }
    },
    check: () => problems,
  };
};

/** `SOUND` is good for as long as the program of the row prints it. */
export const ASSERTIONS: readonly Row[] = [
  row("no attack", { asked: true }, /: signed in, 1 tool\.$/),
  row("its program never ends", { assertion: "!sleep 1000" }, /its command took more than 10 s/),
  row(
    "its program prints 1 GB",
    { assertion: "!head -c 1000000000 /dev/zero" },
    /its command printed more than 1 MiB/,
  ),
  row(
    "its program prints control characters",
    { assertion: `!printf '${SECRET.slice(0, 5)}%s.b.c\\033[2J\\r\\nx-evil: 1' '${SECRET.slice(5)}'` },
    /oauth\.assertion does not hold a signed assertion/,
  ),
  row(
    "the server asks for a wider audience",
    { attack: "resource: of another origin" },
    /it should be the resource \S+ and says it is https:\/\/bank\.example\/mcp/,
  ),
  row(
    "the metadata document of another issuer",
    { attack: "metadata: the issuer of another server" },
    /its authorization server should be \S+ and says it is https:\/\/accounts\.bank\.example/,
  ),
  row(
    "the token endpoint is another server's",
    { attack: "token endpoint: of another server" },
    /its assertion would go to https:\/\/accounts\.bank\.example\/token, which is another site/,
  ),
  row(
    "an error that repeats the assertion",
    { attack: "token: an error that repeats the assertion", asked: true },
    /refuses the assertion: You sent .*assertion=\[redacted\]/,
  ),
  companies(COMPANY),
];
