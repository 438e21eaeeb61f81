/** What main hands to a new connection worker as `workerData`. Types only. */

/** The sending side of a `MessagePort`, without naming Node or the DOM. */
export interface EventSink {
  postMessage(message: unknown, transfer: readonly ArrayBuffer[]): void;
}

export interface WorkerBoot {
  /** One-way: `WorkerEvent`s to main. */
  events: EventSink;
  logFile: string;
  /** Where the person types commands: sentences name `/mcp` or `pi-mcp-threads`. */
  commands: "pi" | "shell";
  /** Memory shared with main: which server is talking (talk.ts). */
  talk: SharedArrayBuffer;
  /** Folder of Node's compile cache, if the worker's environment names it only for the worker itself. */
  compileCache: string | undefined;
}
