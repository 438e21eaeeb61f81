/** The secrets of one server that no text may show: those of its definition, and those of its sign-in. */
import { createRedactor, NO_SECRETS, type Redactor, type Secrets } from "../secrets/redact.ts";

/** Tokens that are looked for. A rotated token no longer works, so those that were used least recently are forgotten. */
const SIGN_IN_SECRETS = 40;

export interface KnownSecrets {
  /** Takes the secrets known so far out of a text. */
  readonly redact: Redactor;
  /** Those that `redact` takes out. */
  readonly known: Secrets;
  /** Takes the secrets of the definition, which each connect resolves anew. */
  setDefined(secrets: Secrets): void;
  /** Takes a token, a code or another secret of the sign-in. */
  add(secret: string): void;
}

export function createKnownSecrets(): KnownSecrets {
  let defined = NO_SECRETS;
  const ofSignIn = new Set<string>();
  let redactor: Redactor | undefined;
  const known = (): Secrets => ({ values: defined.values, named: [...defined.named, ...ofSignIn] });
  return {
    redact: (text) => {
      redactor ??= createRedactor(known());
      return redactor(text);
    },
    get known() {
      return known();
    },
    setDefined: (secrets) => {
      defined = secrets;
      redactor = undefined;
    },
    add: (secret) => {
      const isKnown = ofSignIn.delete(secret);
      // At the end again: a secret in use is told with each request, and must outlast the rotated ones.
      ofSignIn.add(secret);
      if (isKnown) return;
      const [oldest] = ofSignIn;
      if (ofSignIn.size > SIGN_IN_SECRETS && oldest !== undefined) ofSignIn.delete(oldest);
      redactor = undefined;
    },
  };
}
