/**
 * Secrets never reach a log, a cache, a screen or an error. Owns: which values of a definition are secret (find), in
 * which forms a secret can appear (forms), and taking them out of a text (redact).
 * Called by: everything that writes a server's words. To cover another encoding: a row in forms.ts.
 */
export { secretsOf } from "./find.ts";
export {
  boundEnd,
  boundText,
  createRedactor,
  NO_SECRETS,
  type Redactor,
  redactData,
  redactError,
  redactValue,
  type Secrets,
} from "./redact.ts";
