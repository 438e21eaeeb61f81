/**
 * Leaves beside the snapshot what lets the next session rest: start no worker until something needs one. Owns when a session may
 * rest: nothing of it connects unasked, waits for a person or has anything to say. Must not: fail, since nobody needs it.
 */
import { hash } from "node:crypto";
import { homedir } from "node:os";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import type { SessionFacts } from "../../../src/shared/protocol/session.ts";
import { restPath } from "../../../src/shared/snapshot/contract.ts";
import {
  REST_BYTES,
  REST_FILES,
  REST_VERSION,
  type Rest,
  restPlace,
} from "../../../src/shared/snapshot/rest.ts";
import { nodeFiles, writeFileAtomic } from "../../shared/files/file-system.ts";
import type { Log } from "../../shared/log.ts";
import { catalogSettings } from "../catalog/publish.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { type Effect, effectSince, type Plan, type Traces, tracesOf } from "../config/plan/plan.ts";
import { listsNothing } from "../servers/lists.ts";
import type { Server } from "../servers/server.ts";

const digest = (text: string): string => hash("sha256", text).slice(0, 8);

/** What the first plan changes of what a session at rest has shown; undefined: the session was not at rest. */
export function sinceRest(
  { rested }: Pick<SessionFacts, "rested">,
  { servers, settings }: Plan,
): Effect | undefined {
  if (rested === undefined) return undefined;
  const after = {
    servers: servers.flatMap((change) => ("after" in change ? [change.after] : [])),
    settings: settings.after,
  };
  try {
    return effectSince(JSON.parse(rested) as Traces, tracesOf(after, digest), after);
  } catch {
    // The file was not whole. The session goes on as one that starts now.
    return undefined;
  }
}

/** It connects only when it is called, and no first request depends on it. */
function restsAlone(server: Server): boolean {
  const { enabled, lifecycle, project } = server.definition;
  const { toolsKnown, direct } = server.status();
  // Lists of the server that this one replaces say nothing of whether this one starts.
  const isKnown = toolsKnown && server.hasOwnLists && !listsNothing(server);
  return !project && (!enabled || (lifecycle === "lazy" && isKnown && !direct));
}

/** Whether the next session has nothing to do, to ask and to say at its start. */
function mayRest(facts: SessionFacts, servers: readonly Server[], running: RunningConfiguration): boolean {
  const { state, applied, now } = running;
  const isSilent = state.problems.length + state.questions.length + state.refused.length === 0;
  // What is switched for this session only is not so in the next one.
  const isAsWritten = applied.servers.every(
    ({ name, enabled }) => now.servers.find((server) => server.name === name)?.enabled === enabled,
  );
  const isOwn = isAsWritten && !facts.heldBack?.length && running.facts.registered?.length === 0;
  const isStill = applied.unanswered.size === 0 && applied.ancestors.length === 0;
  // Without any server the first session with a person says how to add one.
  const isTold = servers.length > 0 || facts.hints === true;
  return (
    isSilent &&
    isOwn &&
    isStill &&
    isTold &&
    now.settings.hotReload === "on" &&
    applied.watched.length <= REST_FILES &&
    servers.every(restsAlone)
  );
}

interface RestOptions {
  facts: SessionFacts;
  started: () => Promise<RunningConfiguration>;
  servers: () => readonly Server[];
  files: () => readonly string[];
  snapshotPath: () => string;
  log: Log;
}

/** Answers what is called when the snapshot `checksum` holds all that there is. */
export function createRest(options: RestOptions): (checksum: number) => Promise<void> {
  const { facts, log } = options;
  let kept = "";

  const keep = async (checksum: number): Promise<void> => {
    const running = await options.started();
    const servers = options.servers();
    if (facts.onDemand) return;
    if (!mayRest(facts, servers, running)) {
      // The `Rest` of an earlier session would be refused, and where one lies no run waits for its first request.
      await nodeFiles.remove(restPath(options.snapshotPath()));
      kept = "";
      return;
    }
    const { applied, now } = running;
    const files = await running.confirmed();
    // An edit that has come meanwhile makes another plan, which comes here again.
    if (!files || running.applied !== applied) return;
    const rest: Omit<Rest, "madeAt"> = {
      version: REST_VERSION,
      checksum,
      trusted: facts.projectTrusted,
      place: restPlace(process.env, homedir()),
      files,
      settings: catalogSettings(now.settings, options.files()),
      servers: servers.map((server) => {
        const { error, pid, protocol, sharing, signIn, waits, ...status } = server.status();
        return status.state === "disabled" ? status : { ...status, state: "idle" };
      }),
      listed: running.state.files,
      traces: JSON.stringify(tracesOf(now, digest)),
    };
    const text = JSON.stringify(rest);
    if (text === kept || text.length > REST_BYTES) return;
    await writeFileAtomic(restPath(options.snapshotPath()), JSON.stringify({ ...rest, madeAt: Date.now() }));
    kept = text;
  };

  return (checksum) =>
    keep(checksum).catch((error: unknown) => log.warn(`the next start needs a worker: ${messageOf(error)}`));
}
