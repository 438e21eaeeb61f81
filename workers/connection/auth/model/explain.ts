/** One sentence and one remedy for each failure of a sign-in. Words of a server are redacted, then cleaned, then cut. */

import { type ErrorCode, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { oneLine } from "../../../../src/shared/text/unprintable.ts";
import { commandFor, signInAdvice } from "../../../shared/commands.ts";
import type { ProblemFacts, SignInProblem, SignInProblemKind } from "./problem.ts";

const WORDS_CHARS = 200;
const URL_CHARS = 300;

interface Words {
  /** Follows `server: `. */
  what: string;
  remedy: string;
  /** Absent: `needs_auth`. */
  code?: ErrorCode;
}

interface Context {
  server: string;
  facts: ProblemFacts;
}

const signIn = ({ server }: Context): string => signInAdvice(server);
const again = ({ server }: Context): string => `Run ${commandFor("auth", server)} again.`;
const later = ({ server }: Context): string =>
  `Nothing is lost: the next call or ${commandFor("auth", server)} tries again.`;
const register = ({ facts }: Context): string =>
  `Register a client at ${facts.url ?? "the authorization server"}, and write its id as oauth.clientId.`;
const said = (text: string | undefined): string => (text ? `: ${text}` : "");

const WORDS: { readonly [K in SignInProblemKind]: (context: Context) => Words } = {
  "no-sign-in": ({ facts }) => ({
    what: `it offers no sign-in${facts.what === undefined ? "" : `: ${facts.url} has no metadata, but ${facts.what}`}`,
    remedy: 'If it wants a key, write "bearerTokenEnv": "NAME_OF_VARIABLE" or "headers" for it in mcp.json.',
  }),
  "not-signed-in": (context) => ({ what: "it needs a sign-in", remedy: signIn(context) }),
  expired: (context) =>
    context.facts.path === undefined
      ? { what: "the sign-in has expired and cannot be renewed", remedy: signIn(context) }
      : {
          what: `the tokens in ${context.facts.path} have expired and cannot be renewed`,
          remedy: `Renew the file, or sign in: ${signIn(context)}`,
        },
  "refresh-refused": (context) => ({
    what: "the authorization server ended the sign-in",
    remedy: signIn(context),
  }),
  "fresh-token-refused": (context) => ({
    what: "it refused a token that was just issued for it",
    remedy: `${signIn(context)} If that does not help, its operator must look at the token's audience.`,
  }),
  moved: (context) => ({
    what: `it has moved to another authorization server${context.facts.found ? ` (${context.facts.found})` : ""}`,
    remedy: signIn(context),
  }),
  "scope-wanted": (context) => ({
    what: `it wants more rights: ${context.facts.scope ?? "it does not say which"}`,
    remedy: signIn(context),
  }),
  "scope-loop": ({ facts }) => ({
    what: `two sign-ins have not given it the rights that it wants: ${facts.scope ?? "it does not say which"}`,
    remedy: "Its operator must look at what the authorization server grants. A restart of Pi tries again.",
  }),
  "scope-refused": ({ facts }) => ({
    what: `the authorization server refuses the scope${said(facts.scope)}`,
    remedy: "Write the scope that it knows as oauth.scope.",
  }),
  "no-registration": (context) => ({
    what: "its authorization server registers no clients by itself",
    remedy: register(context),
  }),
  "known-clients-only": (context) => ({
    what: "its authorization server takes known clients only",
    remedy: `${register(context)} Some servers go by oauth.clientName.`,
  }),
  "registration-refused": (context) => ({
    what: `its authorization server refused to register a client${said(context.facts.what)}`,
    remedy: register(context),
  }),
  "client-unknown": (context) => ({
    what: "its authorization server no longer knows this client",
    remedy: `${again(context)} With a configured client, check oauth.clientId and oauth.clientSecret.`,
  }),
  "issuer-differs": ({ facts }) => ({
    what: `its authorization server should be ${facts.expected} and says it is ${facts.found}`,
    // A model reads this too, and the server chose the issuer.
    remedy: `Only the user can decide to trust that: "issuer": "${facts.found}" in oauth.`,
  }),
  "resource-differs": ({ facts }) => ({
    what: `it should be the resource ${facts.expected} and says it is ${facts.found}`,
    remedy: 'If the url is right, write that resource as "resource" in oauth.',
  }),
  "resource-refused": () => ({
    what: "its authorization server refuses the parameter resource",
    remedy: 'Write "resource": false in oauth.',
  }),
  "pkce-refused": () => ({
    what: "its authorization server does not support PKCE with S256, without which no sign-in is safe",
    remedy: "Only its operator can change that.",
    code: "connect_failed",
  }),
  "no-endpoint": ({ facts }) => ({
    what: `its authorization server names no ${facts.what}`,
    remedy: "If it publishes other metadata, write their address as oauth.authServerMetadataUrl.",
    code: "connect_failed",
  }),
  "port-in-use": (context) => ({
    what: `another program uses port ${context.facts.port}, on which the browser must answer`,
    remedy: `End that program, or change oauth.callbackPort. ${again(context)}`,
  }),
  "redirect-refused": ({ facts }) => ({
    what: `its authorization server refuses the redirect URI ${facts.url}`,
    remedy: "Write one that is registered there as oauth.redirectUri.",
  }),
  "state-wrong": (context) => ({
    what: "the answer of the browser belongs to another sign-in",
    remedy: again(context),
  }),
  "response-issuer-wrong": (context) => ({
    what: "the answer of the browser comes from another authorization server",
    remedy: `Do not trust that page. ${again(context)}`,
  }),
  denied: (context) => ({ what: "the sign-in was declined in the browser", remedy: again(context) }),
  "code-refused": (context) => ({
    what: "the authorization server no longer accepts the code of this sign-in",
    remedy: again(context),
  }),
  "timed-out": (context) => ({ what: "the sign-in was not finished in time", remedy: again(context) }),
  cancelled: () => ({ what: "the sign-in was cancelled", remedy: "Nothing was changed.", code: "cancelled" }),
  "too-many": ({ facts }) => ({
    what: `${facts.most} other sign-ins wait for their browsers`,
    remedy: "Finish or cancel one of them first.",
  }),
  unreachable: (context) => ({
    what: `${context.facts.url} could not be reached${said(context.facts.what)}`,
    remedy: later(context),
    code: "connect_failed",
  }),
  unavailable: (context) => ({
    what: `${context.facts.url} answered status ${context.facts.status}`,
    remedy: later(context),
    code: "connect_failed",
  }),
  "bad-answer": ({ facts }) => ({
    what: `${facts.url} gave an answer that cannot be used${said(facts.what)}`,
    remedy: "Check the url in mcp.json, or oauth.authServerMetadataUrl.",
    code: "connect_failed",
  }),
  refused: (context) => ({
    what: `the authorization server answered ${context.facts.error ?? "an error"}${said(context.facts.what)}`,
    remedy: again(context),
  }),
  "not-https": ({ facts }) => ({
    what: `${facts.url} is not https, and a token would travel in the open`,
    remedy: "Only its operator can change that.",
    code: "connect_failed",
  }),
  "private-address": ({ facts }) => ({
    what: `${facts.url} is in a private network, which a public server may not name`,
    remedy: "If that is meant, write oauth.authServerMetadataUrl yourself.",
    code: "connect_failed",
  }),
  "secret-elsewhere": ({ facts }) => ({
    what: `its client secret would go to ${facts.url}, which is another site that mcp.json does not name`,
    // A model reads this too, and the server chose the address.
    remedy: `Only the user can decide to trust that: "${facts.key}": "${facts.found}" in oauth.`,
    code: "bad_config",
  }),
  "store-unwritable": ({ facts }) => ({
    what: `the sign-in could not be written to ${facts.path}${said(facts.what)}`,
    remedy: "It holds until Pi ends. Make the folder writable to keep it.",
  }),
  "lock-busy": (context) => ({
    what: `another Pi is renewing the sign-in and has not finished (${context.facts.path})`,
    remedy: later(context),
    code: "connect_failed",
  }),
  "bad-settings": ({ facts }) => ({
    what: `${facts.key} cannot be used${said(facts.what)}`,
    remedy: "Correct it in mcp.json.",
    code: "bad_config",
  }),
};

/** Facts as people may read them: without secrets, in one line, bounded. */
function shownFacts(facts: ProblemFacts, redact: (text: string) => string): ProblemFacts {
  const shown = (text: string, chars: number): string => oneLine(redact(text), chars);
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]: [string, string | number]) => {
      if (typeof value === "number") return [key, value];
      return [key, shown(value, key === "url" || key === "path" ? URL_CHARS : WORDS_CHARS)];
    }),
  );
}

/** `data` names server, reason and scope only, because an address may hold a secret in its query. */
export function explainProblem(
  { kind, facts, cause }: Pick<SignInProblem, "kind" | "facts" | "cause">,
  { server, redact }: { server: string; redact: (text: string) => string },
): ThreadsError {
  const shown = shownFacts(facts, redact);
  const { what, remedy, code = "needs_auth" } = WORDS[kind]({ server, facts: shown });
  const scope = shown.scope === undefined ? {} : { scope: shown.scope };
  return new ThreadsError(code, `${server}: ${what}.`, {
    remedy,
    data: { server, reason: kind, ...scope },
    cause,
  });
}
