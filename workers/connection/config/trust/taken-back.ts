/**
 * The answers that the user has taken back in this session: refusals, which the file keeps until there is another answer, and
 * permissions, from the wish on, while the file may still have them and a plan may still go by them. Pure.
 */
import type { ServerDefinition } from "../entry/definition.ts";
import { folderOf } from "./decide.ts";
import { type Consent, keyOf, placeOf, subjectOf } from "./records.ts";

export class TakenBack {
  readonly #refusals = new Set<string>();
  readonly #permissions = new Set<string>();

  refusals(consents: readonly Consent[]): void {
    for (const consent of consents) if (consent.decision === "refused") this.#refusals.add(keyOf(consent));
  }

  permission(key: string): void {
    this.#permissions.add(key);
  }

  answered(key: string): void {
    this.#refusals.delete(key);
    this.#permissions.delete(key);
  }

  /** `folder`: the session's. */
  mayStart(definition: ServerDefinition, folder: string): boolean {
    if (!definition.project || this.#permissions.size === 0) return true;
    const place = placeOf(folderOf(definition, folder));
    return !this.#permissions.has(keyOf({ subject: subjectOf(definition), place }));
  }

  /** The records as they count. A permission is not left out: of a server of which nothing is known nobody is asked. */
  counted(consents: readonly Consent[]): Consent[] {
    return consents.flatMap((consent) => {
      const key = keyOf(consent);
      if (consent.decision === "refused" && this.#refusals.has(key)) return [];
      const isBack = consent.decision === "allowed" && this.#permissions.has(key);
      return isBack ? { ...consent, decision: "awaiting" } : consent;
    });
  }

  /** A new decision is carried out, and no older one any more: the file alone counts for what it no longer has as allowed. */
  decided(consents: readonly Consent[]): void {
    const allowed = new Set(consents.filter(({ decision }) => decision === "allowed").map(keyOf));
    for (const key of this.#permissions) if (!allowed.has(key)) this.#permissions.delete(key);
  }
}
