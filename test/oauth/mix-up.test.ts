/**
 * Owns: the rules of RFC 9207 and of RFC 9700, section 4.4, as a table: who shows the page, who gets the code, whose client
 * signs in, and whether `iss` is promised, present, absent or wrong. An honest server and an attacking one, both real.
 */
import { describe, expect, test } from "vitest";
import type { AuthorizationServer, Behaviour } from "../support/authorization-server.ts";
import { browse } from "../support/browser.ts";
import { sendJson } from "../support/recording-server.ts";
import { type SignedIn, signInAs, type User } from "../support/signing-in.ts";
import { createPlace, forRows, start } from "../worker/support.ts";
import { authorization, endedIn, guarded, type Servers, saysOfCall, storedOf } from "./support.ts";

/** A client of the honest server that everybody knows, for any address on loopback. */
const WELL_KNOWN = "well-known-client";
const WRONG_ISSUER = /^\S+: the answer of the browser comes from another authorization server: it names /;
const ABSENT_ISSUER = /^\S+: the answer of the browser does not say which authorization server it comes from/;
const REFUSED_CODE = /^\S+: the authorization server no longer accepts the code of this sign-in\./;

interface Two extends Servers {
  /** Whose page the person sees. `trusted` is the attacker: the MCP server names it. */
  honest: AuthorizationServer;
}

interface Row {
  honest?: Behaviour;
  /** What the attacker does beside its metadata. */
  attacker?: (two: Two) => Behaviour;
  /** What the attacker's metadata say. */
  metadata: (two: Two) => Record<string, unknown>;
  user?: User;
  /** Further keys of the server's entry. */
  entry?: (two: Two) => Record<string, unknown>;
  /** `about` of each question, in order. */
  asks: string[];
  says: RegExp;
  /** Whether the browser was sent to the honest page, and the code to the attacker. */
  shown: boolean;
  taken: boolean;
}

const OF_OTHER = ({ honest }: Two): Record<string, unknown> => ({
  authorization_endpoint: `${honest.origin}/authorize`,
  authorization_response_iss_parameter_supported: undefined,
});
/** Without the promise of RFC 9207, and without `iss`. */
const unpromised = (metadata: Record<string, unknown>): Record<string, unknown> => ({
  ...metadata,
  authorization_response_iss_parameter_supported: undefined,
});
/** The metadata of the attacker, whose page leads on to the honest one: then the honest server's `iss` fits. */
const AS_HONEST = ({ honest }: Two): Record<string, unknown> => ({ issuer: honest.issuer });
const LEADS_ON = ({ honest }: Two): Behaviour => ({
  answer: {
    authorize: ({ query }, response) => {
      response.writeHead(302, { location: `${honest.origin}/authorize?${query}` }).end();
    },
    token: (_request, response) => sendJson(response, 400, { error: "invalid_grant" }),
  },
});
const SILENT: Behaviour = { metadata: unpromised, iss: false };
const ASKED =
  /sends you to sign in at 127\.0\.0\.1:\d+, and the code of that sign-in goes to 127\.0\.0\.1:\d+/;
const NO: User = { agrees: false };

const OTHERS_PAGE: Record<string, Row> = {
  "the person says no": {
    honest: SILENT,
    metadata: OF_OTHER,
    user: NO,
    asks: ["endpoints"],
    says: ASKED,
    shown: false,
    taken: false,
  },
  "the person says yes, and the honest server neither promises nor sends iss": {
    honest: SILENT,
    metadata: OF_OTHER,
    asks: ["endpoints"],
    says: REFUSED_CODE,
    shown: true,
    taken: true,
  },
  "the person says yes, and the honest server promises and sends iss": {
    metadata: OF_OTHER,
    asks: ["endpoints"],
    says: WRONG_ISSUER,
    shown: true,
    taken: false,
  },
  "the person says yes, and the honest server promises iss, but its answer has none": {
    honest: { iss: false },
    metadata: OF_OTHER,
    asks: ["endpoints"],
    says: ABSENT_ISSUER,
    shown: true,
    taken: false,
  },
  "the person says yes, and the honest server promises iss below a path only": {
    honest: { issuerPath: "/realms/one", iss: false },
    metadata: (two) => ({
      ...OF_OTHER(two),
      authorization_endpoint: `${two.honest.origin}/realms/one/authorize`,
    }),
    asks: ["endpoints"],
    says: ABSENT_ISSUER,
    shown: false,
    taken: false,
    user: {
      open: async ({ url }) => browse(url.replace("/realms/one", "")),
    },
  },
  "the person says yes, and the honest server sends iss without a promise": {
    honest: { metadata: unpromised },
    metadata: OF_OTHER,
    asks: ["endpoints"],
    says: WRONG_ISSUER,
    shown: true,
    taken: false,
  },
  "the attacker promises iss in the other's name": {
    honest: SILENT,
    metadata: (two) => ({ ...OF_OTHER(two), authorization_response_iss_parameter_supported: true }),
    asks: ["endpoints"],
    says: ABSENT_ISSUER,
    shown: true,
    taken: false,
  },
  "the attacker calls itself the honest server, and the person accepts that name only": {
    metadata: (two) => ({ ...OF_OTHER(two), issuer: two.honest.issuer }),
    user: { agrees: ({ about }) => about === "issuer" },
    asks: ["issuer", "endpoints"],
    says: ASKED,
    shown: false,
    taken: false,
  },
  "the attacker calls itself the honest server, which oauth.issuer names": {
    metadata: (two) => ({ ...OF_OTHER(two), issuer: two.honest.issuer }),
    entry: ({ honest }) => ({ oauth: { issuer: honest.issuer } }),
    user: NO,
    asks: ["endpoints"],
    says: ASKED,
    shown: false,
    taken: false,
  },
  "the attacker calls itself the honest server, which oauth.issuer names, and its own page leads there": {
    metadata: AS_HONEST,
    attacker: LEADS_ON,
    entry: ({ honest }) => ({
      oauth: { issuer: honest.issuer, clientId: WELL_KNOWN, clientSecret: "pw-at-the-honest-one" },
    }),
    user: NO,
    asks: ["endpoints"],
    says: /and the code of that sign-in and your client secret go to (127\.0\.0\.1:\d+), as \1 says, which calls itself (127\.0\.0\.1:\d+)\. Whoever gets the code can act as you at \2\./,
    shown: false,
    taken: false,
  },
  "the same, and the person says yes": {
    metadata: AS_HONEST,
    attacker: LEADS_ON,
    entry: ({ honest }) => ({ oauth: { issuer: honest.issuer, clientId: WELL_KNOWN } }),
    asks: ["endpoints"],
    says: REFUSED_CODE,
    shown: true,
    taken: true,
  },
  "the attacker calls itself the honest server, to whose name the person agrees, and its own page leads there":
    {
      metadata: AS_HONEST,
      attacker: LEADS_ON,
      user: { agrees: ({ about }) => about === "issuer" },
      asks: ["issuer", "endpoints"],
      says: ASKED,
      shown: false,
      taken: false,
    },
  "the client is the user's own at the honest server": {
    honest: SILENT,
    metadata: OF_OTHER,
    entry: () => ({ oauth: { clientId: WELL_KNOWN } }),
    user: NO,
    asks: ["endpoints"],
    says: ASKED,
    shown: false,
    taken: false,
  },
  "the code stays with the honest server, but the attacker names the client": {
    honest: SILENT,
    metadata: (two) => ({ ...OF_OTHER(two), token_endpoint: `${two.honest.origin}/token` }),
    user: NO,
    asks: ["endpoints"],
    says: ASKED,
    shown: false,
    taken: false,
  },
  "the user's own configuration names the attacker's issuer": {
    honest: SILENT,
    metadata: OF_OTHER,
    entry: ({ trusted }) => ({ oauth: { issuer: trusted.issuer } }),
    asks: [],
    says: REFUSED_CODE,
    shown: true,
    taken: true,
  },
};

const ROWS = Object.entries(OTHERS_PAGE);
const nameOf = (index: number): string => `qx${index}z`;

/** One worker with the servers of all rows. */
const shared = forRows(async () => {
  const all: Two[] = [];
  for (const [, row] of ROWS) {
    const honest = await authorization({ ...row.honest });
    honest.book.addClient({ id: WELL_KNOWN });
    const trusted = await authorization();
    const two = { honest, trusted, guarded: await guarded(trusted) };
    trusted.behaviour = {
      metadata: (metadata) => ({ ...metadata, ...row.metadata(two) }),
      registered: (answer) => ({ ...answer, client_id: WELL_KNOWN, token_endpoint_auth_method: "none" }),
      answer: { token: (_request, response) => sendJson(response, 400, { error: "invalid_grant" }) },
      ...row.attacker?.(two),
    };
    all.push(two);
  }
  const place = await createPlace();
  const entries = ROWS.map(([, row], i) => {
    const two = all[i];
    return [nameOf(i), { url: two?.guarded.url, ...(two && row.entry?.(two)) }];
  });
  return { all, place, at: await start(Object.fromEntries(entries), { place }) };
});

describe("the page is another server's", () => {
  test.each(ROWS.map(([title, row], index) => ({ title, row, index })))("$title", async ({ row, index }) => {
    const { all, place, at } = await shared();
    const two = all[index];
    if (!two) throw new Error("no servers");
    const name = nameOf(index);
    const signed = await signInAs({ ...row.user }, { runtime: at.runtime, ended: endedIn(at) }, name);
    expect(signed.questions.map(({ about }) => about)).toEqual(row.asks);
    expect(signed.says).toMatch(row.says);
    expect(two.honest.asked("/authorize").length > 0).toBe(row.shown || row.user?.open !== undefined);
    expect(two.trusted.asked("/token").length > 0).toBe(row.taken);
    const kept = await storedOf({ place, name });
    expect(kept.filter(({ record }) => "access_token" in record)).toEqual([]);
    if (signed.opened) expect(signed.opened.codeGoesTo).toBe(new URL(two.trusted.origin).host);
  });
});

test("the metadata change after the answer -> the person is asked about the new ones", async () => {
  const { all, at } = await shared();
  const two = all[0];
  if (!two) throw new Error("no servers");
  const ask = (endpoints?: string) =>
    at.runtime.ask("signIn", { server: nameOf(0), agreed: endpoints === undefined ? {} : { endpoints } });
  const first = await ask();
  if (first.step !== "ask" || first.question.about !== "endpoints") throw new Error(first.step);
  const other = await authorization();
  two.trusted.behaviour.metadata = (metadata) => ({
    ...metadata,
    ...OF_OTHER(two),
    token_endpoint: `${other.origin}/token`,
  });
  const second = await ask(first.question.endpoints);
  expect(second).toMatchObject({ step: "ask", question: { about: "endpoints" } });
  expect(second).not.toEqual(first);
});

/** The sign-in's own page: what RFC 9207, section 2.4, says about each answer. */
const OWN_PAGE: [promised: boolean, iss: Behaviour["iss"] | "slash" | "twice", ok: boolean][] = [
  [true, undefined, true],
  [true, false, false],
  [true, "https://other.example", false],
  [true, "slash", false],
  [false, false, true],
  [false, undefined, true],
  [false, "https://other.example", false],
  [false, "", false],
];

const own = forRows(async () => {
  const servers: Servers[] = [];
  for (const [promised, iss] of OWN_PAGE) {
    const trusted = await authorization();
    trusted.behaviour = {
      ...(promised ? {} : { metadata: unpromised }),
      ...(iss === undefined ? {} : { iss: iss === "slash" ? `${trusted.issuer}/` : iss }),
    };
    servers.push({ trusted, guarded: await guarded(trusted) });
  }
  const entries = servers.map(({ guarded: { url } }, i) => [nameOf(i), { url }]);
  return { servers, at: await start(Object.fromEntries(entries), { place: await createPlace() }) };
});

describe("the page is its own", () => {
  test.each(OWN_PAGE.map(([promised, iss, ok], index) => ({ promised, iss: String(iss), ok, index })))(
    "iss promised: $promised, sent: $iss -> signed in: $ok",
    async ({ ok, index }) => {
      const { servers, at } = await own();
      const signed: SignedIn = await signInAs({}, { runtime: at.runtime, ended: endedIn(at) }, nameOf(index));
      expect(signed.questions).toEqual([]);
      expect(signed.result.ok).toBe(ok);
      if (!ok) expect(signed.says).toMatch(OWN_PAGE[index]?.[1] === false ? ABSENT_ISSUER : WRONG_ISSUER);
      expect(servers[index]?.trusted.asked("/token")).toHaveLength(ok ? 1 : 0);
      const { pathname } = new URL(signed.opened?.redirectUri ?? "");
      // Whoever does not name itself gets an address that no other sign-in has (RFC 9700, section 4.4.2.2).
      expect(pathname === "/callback").toBe(OWN_PAGE[index]?.[0]);
    },
  );
});

test("the secret of a server without a user, and metadata that name another site for it -> it goes nowhere", async () => {
  const trusted = await authorization({
    metadata: (metadata) => ({ ...metadata, token_endpoint: "https://login.example.test/token" }),
  });
  const { url } = await guarded(trusted);
  const oauth = { grantType: "client_credentials", clientId: "ci", clientSecret: "pw-of-the-machine" };
  const place = await createPlace();
  const at = await start({ web: { url, oauth } }, { place });
  expect(await saysOfCall({ at, name: "web" })).toBe(
    `web: its client secret would go to https://login.example.test/token, which is another site that mcp.json does not name. Only the user can decide to trust that: "issuer": "${trusted.issuer}" in oauth.`,
  );
});
