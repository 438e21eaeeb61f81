/**
 * The hashes to which a decision about a project's server is bound. A permission holds for exactly what was shown, in
 * the folder where it was given. A refusal holds wherever the same definition turns up, so that a renamed folder does
 * not lose it. Pure.
 */
import { createHash } from "node:crypto";
import { canonical } from "../../../shared/json.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { isDefaultOAuth } from "../entry/oauth-plan.ts";
import type { EnvSeen, Scripts } from "../env-files/env-files.ts";

const sha256 = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex");

/**
 * What a definition says about OAuth. An entry that says nothing about it keeps the hash that it had before there was
 * OAuth, so that no old decision about it is lost. A scheme without OAuth is in the hash by itself.
 */
const oauthOf = ({ auth: { scheme }, oauth }: ServerDefinition): ServerDefinition["oauth"] | undefined =>
  scheme === "none" || scheme === "bearer" || isDefaultOAuth(oauth) ? undefined : oauth;

/** Hex SHA-256 of a definition as written. No secret is resolved for it, and the folder does not matter. */
export const subjectOf = (definition: ServerDefinition): string => {
  const { name, target, auth, roots } = definition;
  return sha256({ name, target, auth, oauth: oauthOf(definition), roots });
};

/**
 * Stands for all servers of all projects, if there are too many to remember each: the hash of "every server of every
 * project". It is written out, because to compute it would load Node's crypto at each start.
 */
export const EVERY_SUBJECT = "7c1d795dea487017d8cc07baa8ab3bfa5f6ed02d7034f8ea040b9cccc8aeae16";

const PLACE_CHARS = 32;

/**
 * A short hash of a folder, which is given by its real path. On Windows the case of the drive letter does not matter.
 */
export const placeOf = (folder: string): string =>
  sha256(folder.replace(/^[a-z]:/, (drive) => drive.toUpperCase())).slice(0, PLACE_CHARS);

/** Hex SHA-256 of everything that was shown, and of the place. */
export const consentHash = (
  definition: ServerDefinition,
  place: string,
  { seen, scripts }: { seen?: EnvSeen | undefined; scripts?: Scripts | undefined } = {},
): string => {
  const envFile = seen && ("content" in seen ? seen.content.hash : "cannot be used");
  const files = scripts && ("hash" in scripts ? scripts.hash : "cannot be used");
  return sha256({ place, subject: subjectOf(definition), envFile, files });
};

/** The only hash in version 1 of the file, for permissions and refusals alike. `cwd`: as Pi spells it. */
export const firstVersionHash = (definition: ServerDefinition, cwd: string): string => {
  const { name, target, auth, roots } = definition;
  return sha256({ cwd, name, target, auth, oauth: oauthOf(definition), roots });
};
