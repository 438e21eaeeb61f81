/**
 * The sign-in at the company's identity provider, as the servers use it that stand on it. Owns: which identity goes out, and
 * what a refusal of it means: it is renewed once, and nothing else is tried. Nothing here opens a browser.
 */
import type { AuthorizationServer } from "oauth4webapi";
import { canonical, discover } from "../discovery/discovery.ts";
import type { GrantContext } from "../grants/ask.ts";
import { machineClient, readyAssertion } from "../grants/client.ts";
import { exchangeIdentity } from "../grants/id-jag.ts";
import { serverOf } from "../grants/token-requests.ts";
import {
  type ClientRecord,
  type IdentityWish,
  kindOf,
  needsUser,
  SignInProblem,
  tokenTextOf,
} from "../model/model.ts";
import type { SignInStore } from "../store/store.ts";
import type { ServerTokens } from "./tokens.ts";

interface Company {
  tokens: ServerTokens;
  store: SignInStore;
  grant: GrantContext;
  issuer: URL;
  /** Fires when nobody needs an answer any more. */
  signal: AbortSignal;
}

type Wish = Parameters<typeof exchangeIdentity>[0];

/** The identity that another program gives, and as which client it is exchanged. */
async function given({ grant, issuer }: Company) {
  const discovered = await discover({ url: issuer, challenge: undefined, ...grant });
  const client = machineClient(grant.plan, discovered);
  if (!client) throw new SignInProblem("bad-settings", { key: "oauth.clientId", what: "it is missing" });
  return { server: discovered.metadata, client, identity: await readyAssertion(grant.plan) };
}

/** The identity of the stored sign-in with its client. */
async function storedWith(
  identity: string,
  { store }: Company,
): Promise<{ server: AuthorizationServer; client: ClientRecord; identity: string }> {
  const { record } = await store.read();
  if (!record) throw new SignInProblem("not-signed-in");
  return { server: serverOf(record), client: record.client, identity };
}

/** A renewed identity that is refused as well ends the sign-in: the next one opens the page. */
async function exchangeRenewed(wish: Wish, identity: string, company: Company): Promise<string> {
  const { tokens, grant, signal } = company;
  try {
    return await exchangeIdentity(wish, await storedWith(identity, company), grant);
  } catch (error) {
    const refused = { status: 401, challenge: undefined, sent: identity, isRepeated: true };
    // The words of the identity provider say more than that the identity was fresh.
    if (kindOf(error) === "identity-refused")
      await tokens.afterRefusal(refused, signal).catch(() => undefined);
    throw error;
  }
}

async function exchanged(wish: Wish, company: Company): Promise<string> {
  const { tokens, grant, signal } = company;
  if (!needsUser(grant.plan)) return exchangeIdentity(wish, await given(company), grant);
  const identity = tokenTextOf(await tokens.token(signal));
  if (identity === undefined) throw new SignInProblem("not-signed-in");
  try {
    return await exchangeIdentity(wish, await storedWith(identity, company), grant);
  } catch (error) {
    if (kindOf(error) !== "identity-refused") throw error;
    const refused = { status: 401, challenge: undefined, sent: identity, isRepeated: false };
    const next = await tokens.afterRefusal(refused, signal).catch((reason: unknown) => {
      // The words of the identity provider say more than that there is no refresh token.
      throw kindOf(reason) === "expired" ? error : reason;
    });
    return exchangeRenewed(wish, tokenTextOf(next) ?? "", company);
  }
}

/**
 * An assertion of the identity provider for the wish; without a resource, for the server at `url`. Throws `SignInProblem`,
 * which says where it failed.
 */
export async function identityFor(wish: IdentityWish, url: URL, company: Company): Promise<string> {
  try {
    return await exchanged({ ...wish, resource: wish.resource ?? canonical(url) }, company);
  } catch (error) {
    if (!(error instanceof SignInProblem)) throw error;
    throw new SignInProblem(error.kind, { ...error.facts, at: company.issuer.host }, error.cause);
  }
}
