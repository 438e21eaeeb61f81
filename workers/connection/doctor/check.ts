/** What a check gets and answers, the words that checks share, and what the doctor may cost (docs/limits.md). */

import type { DoctorStage, Finding } from "../../../src/shared/protocol/person.ts";
import type { CatalogPublisher } from "../catalog/catalog.ts";
import type { ConfigState } from "../config/config.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { ConfigFacts } from "../config/files/sources.ts";
import type { Connection } from "../mcp/connection.ts";
import type { Server } from "../servers/server.ts";
import type { Machine } from "./machine.ts";

/** A server as the checks see it; they connect it as a person asks for it. */
export type Examined = Pick<Server, "name" | "definition" | "redact" | "timings" | "status"> & {
  connect(by: "user"): Promise<unknown>;
  /** Runs the task if the server is connected. */
  ifConnected<T>(task: (connection: Pick<Connection, "ping">) => Promise<T>): Promise<T> | undefined;
};

export interface DoctorInput {
  state: ConfigState;
  facts: Pick<ConfigFacts, "cwd" | "projectTrusted" | "configPath">;
  settings: Settings;
  /** The servers to look at: the one that was named, or all. */
  servers: readonly Examined[];
  all: readonly Examined[];
  named: string | undefined;
  agentDir: string;
  catalog: Pick<CatalogPublisher, "inspect">;
  machine: Machine;
  /** The steps of an attempt to reach the named server; checks add theirs. */
  stages: DoctorStage[];
  /** Aborted when the person gives up. */
  signal: AbortSignal;
}

/** Looks at one kind of thing. `signal`: aborted when the doctor's time is over. */
export type Check = (
  input: DoctorInput,
  signal: AbortSignal,
) => Promise<readonly Finding[]> | readonly Finding[];

/** Runs one step and writes down how long it took. Rejects as the step does. */
export async function staged<T>(stages: DoctorStage[], name: string, step: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const end = (ok: boolean): void => {
    stages.push({ name, ok, ms: Math.round(performance.now() - startedAt) });
  };
  try {
    const result = await step();
    end(true);
    return result;
  } catch (error) {
    end(false);
    throw error;
  }
}

/** A check that found nothing wrong says so in one line. */
export const allWell = (id: Finding["id"], title: string): Finding => ({ id, severity: "ok", title });

/** All checks together. What is not done by then is reported as unfinished. */
export const CHECKS_MS = 12_000;
export const PROBES_AT_A_TIME = 50;
export const LOOKUPS_AT_A_TIME = 2;
/** Addresses that are looked at. */
export const PROBES = 200;
/** The doctor waits this long for a server that it was asked to connect. */
export const CONNECT_MS = 11_000;
/** Tools of one server that are declared from the start may cost so many tokens before the doctor warns. */
export const DIRECT_TOKENS = 5_000;
/** Files of sign-ins whose modes are looked at. */
export const FILES_LOOKED_AT = 500;
export const FINDINGS = 200;
export const SERVERS_SHOWN = 200;
export const TITLE_CHARS = 300;
export const DETAIL_CHARS = 1_000;
export const REMEDY_CHARS = 400;
