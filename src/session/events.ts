/** What the worker's events do to a session on the main thread. One handler a session; it ends with it. */
import type { CatalogStore } from "../catalog/catalog.ts";
import type { PiContext } from "../pi/api.ts";
import { notify } from "../pi/notices.ts";
import { refusedLine } from "../report/status.ts";
import type { CatalogSettings } from "../shared/protocol/catalog.ts";
import type { WorkerEvent } from "../shared/protocol/events.ts";
import type { AcceptedBefore } from "../shared/protocol/session.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";
import { describeProblem } from "../shared/text/problem.ts";
import type { Registrar } from "../tools/registry/registry.ts";
import { createConfigNotices } from "../ui/config-notices.ts";
import type { Dialogs } from "../ui/dialogs.ts";
import { createHealthNotices } from "../ui/health-notices.ts";
import { createStatusLine } from "../ui/status-line.ts";

/** What lives from session_start to session_shutdown, beside the runtime. */
export interface SessionState {
  statuses: Map<string, ServerStatus>;
  planned: PromiseWithResolvers<void>;
  /** Of the plan; undefined until it is made. */
  settings: CatalogSettings | undefined;
  /** What was let run, for a worker after this one. */
  accepted: AcceptedBefore | undefined;
}

export interface EventTargets {
  ctx: PiContext;
  /** Undefined once the session is over: then nothing of Pi may be touched. */
  state: () => SessionState | undefined;
  store: CatalogStore;
  registrar: Registrar;
  dialogs: Dialogs;
  /** A plan was made; the state is that of it. */
  onPlanned: (state: SessionState) => void;
  onProgress: (event: Extract<WorkerEvent, { type: "progress" }>) => void;
}

export function createEventHandler(targets: EventTargets): (event: WorkerEvent) => void {
  const { ctx, store, registrar, dialogs } = targets;
  const statusLine = createStatusLine(ctx);
  const health = createHealthNotices();
  const configNotices = createConfigNotices(ctx);

  const onPlanned = (state: SessionState, report: Extract<WorkerEvent, { type: "planned" }>): void => {
    state.settings = report.settings;
    state.accepted = report.accepted;
    state.statuses = new Map(report.servers.map((status) => [status.name, status]));
    // Servers of the project that the factory found in the snapshot, but that may not run now.
    registrar.withdrawAll(({ server }) => server.project && !state.statuses.has(server.name));
    targets.onPlanned(state);
    state.planned.resolve();
    configNotices.tell([...report.problems.map(describeProblem), ...report.refused.map(refusedLine)]);
    statusLine.show(report.servers);
    dialogs.consents(report.questions);
  };

  const followCatalog = ({ statuses }: SessionState): void => {
    const servers = [...statuses.values()];
    registrar.follow(
      store.current,
      servers.some(({ name, direct }) => registrar.concernsDirect(name, direct)),
    );
  };

  return (event) => {
    const state = targets.state();
    if (!state) return;
    switch (event.type) {
      case "progress":
        targets.onProgress(event);
        break;
      case "catalog":
        store.replace(event.snapshot);
        followCatalog(state);
        break;
      case "removed":
        store.leaveOut(event);
        followCatalog(state);
        break;
      case "planned":
        onPlanned(state, event);
        break;
      case "notice":
        notify(ctx, event.text, event.level);
        break;
      case "held":
        dialogs.held(event.id, event.text);
        break;
      case "server": {
        state.statuses.set(event.status.name, event.status);
        statusLine.show([...state.statuses.values()]);
        const notice = health.onStatus(event.status);
        if (notice) notify(ctx, notice.text, notice.level);
        break;
      }
    }
  };
}
