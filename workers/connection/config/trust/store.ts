/**
 * Owns: the decisions of mcp-trust.json as one session knows them. A decision that cannot be written holds for this
 * session. What is wrong with the file is a problem that `/mcp` shows.
 */
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { reasonOf } from "../../../shared/files/file-system.ts";
import { loadTrust, remember } from "./file.ts";
import { type Consent, isEverything, keyOf } from "./records.ts";

export interface ConsentStore {
  readonly consents: readonly Consent[];
  /** The file could not be used when it was opened. */
  readonly isUnreadable: boolean;
  readonly problems: readonly ConfigProblem[];
  /**
   * Adds decisions, here in any case and in the file if possible. Gives the problem if the file cannot be written,
   * with this remedy.
   */
  add(added: readonly Consent[], remedy: string): Promise<ConfigProblem | undefined>;
}

const FULL =
  "Servers of projects are asked for in each folder from now on, also those of .pi/mcp.json; delete the file to begin anew.";

/** Never throws. `log` gets a line for each write that failed. */
export async function openStore(file: string, log: (problem: string) => void): Promise<ConsentStore> {
  const { consents: known, problem: unreadable } = await loadTrust(file);
  let consents = known;
  let unwritable: ConfigProblem | undefined;
  let full: ConfigProblem | undefined;

  const add: ConsentStore["add"] = async (added, remedy) => {
    const wasFull = consents.some(isEverything);
    try {
      consents = await remember(file, added);
      unwritable = undefined;
    } catch (error) {
      const keys = new Set(added.map(keyOf));
      consents = [...consents.filter((consent) => !keys.has(keyOf(consent))), ...added];
      const message = `it cannot be written (${reasonOf(error)})`;
      unwritable = { severity: "error", file, message, remedy };
      log(`${file}: ${message}`);
    }
    // An unreadable file is a problem of its own, which says the same.
    if (!wasFull && !unreadable && consents.some(isEverything)) {
      const message = "what was refused or put off before is not known any more";
      full = { severity: "warning", file, message, remedy: FULL };
    }
    return unwritable;
  };

  return {
    get consents() {
      return consents;
    },
    isUnreadable: unreadable !== undefined,
    get problems() {
      return [unreadable, unwritable, full].filter((problem) => problem !== undefined);
    },
    add,
  };
}
