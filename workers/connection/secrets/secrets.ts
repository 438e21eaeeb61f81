/**
 * Keeps secrets out of logs, caches, screens and errors. Owns: which values of a definition are secret (find), in
 * which forms a secret can appear (forms), and taking them out of a text (redact).
 * Called by: every part that writes words of a server. To cover another encoding: a row in forms.ts.
 */
export { credentialsOf, oauthSecrets, secretsOf } from "./find.ts";
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
