/** What a server is sent so that it knows the user, as its entry says. oauth.ts has the rest of OAuth. Pure. */
import { type Mistake, mistake } from "./mistakes.ts";
import type { Entry } from "./server-shape.ts";

export interface AuthSettings {
  /**
   * `auto`: a token if one is given, else OAuth if there is no Authorization header and the server asks for it.
   * `oauth`: OAuth, even if there is one. `none`: nothing.
   */
  scheme: "auto" | "bearer" | "oauth" | "none";
  /** As written in the file; resolved at connect. */
  token: string | undefined;
  tokenEnv: string | undefined;
}

const warning = (key: string, message: string, remedy: string): Mistake => ({
  severity: "warning",
  path: [key],
  message,
  remedy,
});

/** Warnings for values that are accepted, because other programs know them, and that have no effect here. */
function ineffective({ auth, bearerToken, bearerTokenEnv, command }: Entry): Mistake[] {
  const found: Mistake[] = [];
  if (command?.startsWith("!")) {
    const instead = 'Write the program itself, or "command": "sh" with "args": ["-c", "..."].';
    found.push(warning("command", "a !command is not run here: this is taken for a program's name", instead));
  }
  if (auth === "oauth") {
    for (const [key, value] of Object.entries({ bearerToken, bearerTokenEnv })) {
      if (value !== undefined)
        found.push(warning(key, 'is not sent with "auth": "oauth"', 'Write "auth": "bearer".'));
    }
  }
  if (typeof auth === "object" && auth.provider !== undefined) {
    const instead = 'Write "bearerTokenEnv", or give the server headers.';
    found.push(warning("auth", "the sign-in of a Pi provider cannot be used here", instead));
  }
  return found;
}

/** The mistake of an `auth` object that names neither a client nor a provider. */
const unknownObject = (auth: Entry["auth"]): Mistake[] =>
  typeof auth === "object" && auth.provider === undefined && auth.CLIENT_ID === undefined
    ? [mistake(["auth"], "names no client", 'Write "oauth": {"clientId": "..."} in its place.')]
    : [];

/** What is sent to the server of an entry, and the mistakes in it. */
export function authOf(entry: Entry): { auth: AuthSettings; mistakes: Mistake[] } {
  const { auth, bearerToken: token, bearerTokenEnv: tokenEnv } = entry;
  const settings = (scheme: AuthSettings["scheme"]): AuthSettings => ({ scheme, token, tokenEnv });
  const mistakes = [...ineffective(entry), ...unknownObject(auth)];
  if (auth === false || auth === "none") return { auth: settings("none"), mistakes };
  if (typeof auth === "object") return { auth: settings("auto"), mistakes };
  if (auth === "bearer" && token === undefined && tokenEnv === undefined) {
    const missing = mistake(
      ["auth"],
      "there is no bearer token",
      'Write "bearerTokenEnv": "NAME_OF_VARIABLE" beside it.',
    );
    return { auth: settings("bearer"), mistakes: [...mistakes, missing] };
  }
  return { auth: settings(auth ?? "auto"), mistakes };
}
