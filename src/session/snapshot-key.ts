/**
 * Which snapshot the session shows. The factory runs before Pi knows the session's folder and whether the project is
 * trusted, so it guesses both; this file takes back what the guess has shown wrongly.
 */
import type { CatalogStore } from "../catalog/store.ts";
import type { SnapshotKey } from "../shared/snapshot/contract.ts";
import type { Registrar } from "../tools/registrar.ts";
import type { SearchTools } from "../tools/tools.ts";

export interface SessionSnapshotKey {
  current(): SnapshotKey;
  /** For `session_start`: withdraws a project's tools that the factory registered and this session must not have. */
  correct(actual: SnapshotKey, projectTrusted: boolean): void;
}

export interface SnapshotKeyOptions {
  /** The factory's guess. */
  key: SnapshotKey;
  store: Pick<CatalogStore, "open" | "clear" | "current">;
  registrar: Pick<Registrar, "withdrawAll">;
  searchTools: Pick<SearchTools, "declare">;
}

export function createSnapshotKey(options: SnapshotKeyOptions): SessionSnapshotKey {
  const { store, registrar, searchTools } = options;
  let { key } = options;
  return {
    current: () => key,
    correct: (actual, projectTrusted) => {
      const isOther = actual.cwd !== key.cwd || actual.configFile !== key.configFile;
      if (!isOther && (projectTrusted || !store.current().servers.some(({ project }) => project))) return;
      key = actual;
      registrar.withdrawAll(({ server }) => server.project);
      if (isOther && projectTrusted) store.open(key);
      else store.clear();
      searchTools.declare(store.current());
    },
  };
}
