/** Attacks on a sign-in by an assertion: by the program that gives it, and by servers that would like to have it. */
import { type Check, type Row, SERVER_CHECKS } from "../support/row.ts";
import { SECRET, signIn, tells } from "./signing-in.ts";

const CHECKS: readonly Check[] = [...SERVER_CHECKS, "leaves"];

/** Prints an assertion that no text may show. The command does not hold it as a whole, so that mcp.json does not either. */
const SOUND = `!printf '${SECRET.slice(0, 5)}%s.b.c' '${SECRET.slice(5)}'`;

/** `attack`: a key of servers/http/sign-in-attacks.mjs. `asked`: whether the assertion may be sent. */
const row = (
  name: string,
  {
    attack = "none",
    assertion = SOUND,
    asked = false,
  }: { attack?: string; assertion?: string; asked?: boolean },
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
  check: async (arena) => {
    const seen = await arena.place.seen();
    const isAsked = seen.includes("token");
    return [
      ...(isAsked === asked ? [] : [`the token endpoint was asked: ${isAsked}`]),
      ...(seen.some((step) => step === "authorize" || step === "register")
        ? ["another grant was tried"]
        : []),
      ...(await tells(says)(arena)),
    ];
  },
});

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
];
