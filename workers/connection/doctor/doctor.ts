/**
 * Looks for what is wrong with the configuration, the servers and this machine, and says what to do about each of it.
 * Owns: the checks, their order and their bounds. Must not: start a server that nobody asked for, send credentials, or
 * reach an address that a file of the project names; an attempt to connect a server goes the normal way (servers).
 * To add a check: its pure decision and its look at the machine (machine.ts) in the room that it is about, a
 * line in CHECKS (diagnose.ts), its word in src/shared/protocol/person.ts, and a row in the hostile suite if a server or
 * a file can fill it.
 */

import { homedir } from "node:os";
import type { DoctorReport } from "../../../src/shared/protocol/person.ts";
import type { CatalogPublisher } from "../catalog/catalog.ts";
import type { RunningConfiguration } from "../config/config.ts";
import type { Supervisor } from "../servers/supervisor.ts";

export interface DoctorParts {
  /** Settles when the first plan is carried out. */
  started: Promise<RunningConfiguration>;
  supervisor: Pick<Supervisor, "servers">;
  catalog: Pick<CatalogPublisher, "inspect">;
  agentDir: string;
  cwd: string;
}

export type Diagnose = (params: { server?: string }, signal: AbortSignal) => Promise<DoctorReport>;

/** Rejects with `unknown_server` or `cancelled`. */
export const createDiagnose =
  ({ started, supervisor, catalog, agentDir, cwd }: DoctorParts): Diagnose =>
  async ({ server: named }, signal) => {
    const { state, now, facts } = await started;
    // The checks are loaded with the first question: most sessions ask none.
    const [{ diagnose }, { thisMachine }] = await Promise.all([
      import("./diagnose.ts"),
      import("./machine.ts"),
    ]);
    const { servers } = supervisor;
    const wanted = named === undefined ? servers : servers.filter(({ name }) => name === named);
    const machine = thisMachine({ env: process.env, home: homedir(), platform: process.platform, cwd });
    return diagnose({
      state,
      facts,
      settings: now.settings,
      servers: wanted,
      all: servers,
      named,
      agentDir,
      catalog,
      machine,
      stages: [],
      signal,
    });
  };
