/** Owns: a Pi context in memory that remembers what the user was shown. */
import type { NoticeLevel, PiContext } from "../../src/host.ts";

export interface RecordingContext {
  ctx: PiContext;
  notices: [message: string, level: NoticeLevel | undefined][];
  statuses: [key: string, text: string | undefined][];
}

export function createRecordingContext(options: { hasUI?: boolean } = {}): RecordingContext {
  const notices: RecordingContext["notices"] = [];
  const statuses: RecordingContext["statuses"] = [];
  const ctx: PiContext = {
    ui: {
      notify: (message, level) => notices.push([message, level]),
      setStatus: (key, text) => statuses.push([key, text]),
    },
    mode: options.hasUI === false ? "print" : "rpc",
    hasUI: options.hasUI ?? true,
    cwd: "/project",
    isProjectTrusted: () => true,
    sessionManager: { getBranch: () => [] },
  };
  return { ctx, notices, statuses };
}
