/**
 * Attacks on a sign-in by an assertion: by the program that gives it, by servers that would like to have it, and by what
 * answers in the place of the company's identity provider.
 */
import { family } from "../../support/long.ts";
import type { Arena } from "../support/arena.ts";
import { type Check, type Row, SERVER_CHECKS } from "../support/row.ts";
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

/** The end of the sign-in, and that nothing but the grant of the row was tried. */
const endsWith =
  (says: RegExp, asked: boolean) =>
  async (arena: Arena): Promise<string[]> => {
    const seen = await arena.place.seen();
    const isAsked = seen.includes("token");
    return [
      ...(isAsked === asked ? [] : [`a token endpoint was asked: ${isAsked}`]),
      ...(seen.some((step) => step === "authorize" || step === "register")
        ? ["another grant was tried"]
        : []),
      ...(await tells(says)(arena)),
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
const companyRow = (
  name: string,
  { attack = "none", at = "none", asked = false }: Attacked & { at?: string },
  says: RegExp,
): Row => ({
  name: `a company's sign-in: ${name}`,
  finding: "own",
  alone: "home",
  checks: CHECKS,
  server: async (place) => ({
    ...(await place.sharedHttp("sign-in.mjs", attack, SECRET)),
    oauth: { grantType: "identity_provider", clientId: "pi" },
  }),
  settings: async (place) => {
    const { url } = await place.sharedHttp("sign-in.mjs", at, SECRET);
    return { identityProvider: { issuer: new URL(url).origin, clientId: "pi", assertion: SOUND } };
  },
  happened: "mcp",
  act: (arena) => signIn(arena),
  check: endsWith(says, asked),
});

const COMPANY: readonly Row[] = [
  companyRow(
    "the server asks for a wider audience",
    { attack: "resource: of another origin" },
    /it should be the resource \S+ and says it is https:\/\/bank\.example\/mcp/,
  ),
  ...family(["another issuer's metadata document", "another server's token endpoint"]).map((name) =>
    name.startsWith("another issuer")
      ? companyRow(
          name,
          { attack: "metadata: the issuer of another server" },
          /should be \S+ and says it is https:/,
        )
      : companyRow(
          name,
          { attack: "token endpoint: of another server" },
          /its assertion would go to https:\/\/accounts\.bank\.example\/token, which is another site/,
        ),
  ),
  companyRow("an access token in the place of an assertion", { asked: true }, /its assertion is no ID-JAG/),
  companyRow(
    "another issuer's metadata in the place of the identity provider's",
    { at: "metadata: the issuer of another server" },
    /should be \S+ and says it is https:\/\/accounts\.bank\.example \(at the identity provider/,
  ),
  ...family(["token: endless", "token: deep", "token: 100 KB of it"]).map((at) =>
    companyRow(`the identity provider, ${at}`, { at, asked: true }, /gave an answer that cannot be used/),
  ),
];

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
  ...COMPANY,
];
