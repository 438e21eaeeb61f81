/**
 * What a decision about a project's server is bound to. A permission holds for exactly what was shown, in the folder
 * where it was given; a refusal holds wherever the same definition turns up, so that no renamed folder loses it. Pure.
 */
import { createHash } from "node:crypto";
import { canonical } from "../../../shared/json/canonical.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import type { EnvSeen } from "../env-files/env-files.ts";

const sha256 = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex");

/** Hex SHA-256 of a definition as written: no secret is resolved for it, and where it lies does not matter. */
export const subjectOf = ({ name, target, auth, oauth }: ServerDefinition): string =>
  sha256({ name, target, auth, oauth });

/** Stands for all servers of all projects, where there are too many to remember each. */
export const EVERY_SUBJECT = sha256("every server of every project");

const PLACE_CHARS = 32;

/** Stands for a folder, which is given as it really lies. On Windows a drive has one letter, however it is written. */
export const placeOf = (folder: string): string =>
  sha256(folder.replace(/^[a-z]:/, (drive) => drive.toUpperCase())).slice(0, PLACE_CHARS);

/** Hex SHA-256 of all that was shown and of the place. */
export const consentHash = (definition: ServerDefinition, place: string, seen?: EnvSeen): string => {
  const envFile = seen && ("content" in seen ? seen.content.hash : "cannot be used");
  return sha256({ place, subject: subjectOf(definition), envFile });
};

/** The only hash of version 1 of the file, of permissions and refusals alike. `cwd`: as Pi names it. */
export const firstVersionHash = ({ name, target, auth, oauth }: ServerDefinition, cwd: string): string =>
  sha256({ cwd, name, target, auth, oauth });
