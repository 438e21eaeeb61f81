/** The parts of a server that its attempts, its watch and its calls use alike. */
import type { Log } from "../../shared/log.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Redactor } from "../secrets/redact.ts";
import { createKnownSecrets, type KnownSecrets } from "./known-secrets.ts";
import { createServerLog, type ServerLog } from "./log.ts";
import { type OfferContext, ServerOffer } from "./offer.ts";

/** How long the server took, in milliseconds, since the session began. */
export interface ServerTimings {
  /** Its last start, from the first step to its complete list of tools. */
  startMs?: number;
  /** Its slowest call that was answered. */
  slowestCallMs: number;
  /** Calls that it did not answer in time. */
  lateCalls: number;
}

export interface ServerParts {
  readonly timings: ServerTimings;
  readonly name: string;
  /** The definition that holds now: an edit may change it. */
  definition: () => ServerDefinition;
  readonly offer: ServerOffer;
  readonly log: ServerLog;
  /** Fires when the server is closed. */
  readonly lifetime: AbortSignal;
  /** Takes the secrets known so far out of a text: they are known only once the definition is resolved. */
  readonly redact: Redactor;
  readonly secrets: KnownSecrets;
}

interface PartsOptions extends Omit<OfferContext, "onNote"> {
  log: Log;
}

export function createParts({ log, ...context }: PartsOptions): ServerParts {
  const { definition, lifetime } = context;
  const { name } = definition();
  const secrets = createKnownSecrets();
  const { redact } = secrets;
  const serverLog = createServerLog(name, { log, redact });
  const offer = new ServerOffer({ ...context, onNote: serverLog.note });
  const timings: ServerTimings = { slowestCallMs: 0, lateCalls: 0 };
  return { name, timings, definition, lifetime, redact, secrets, log: serverLog, offer };
}
