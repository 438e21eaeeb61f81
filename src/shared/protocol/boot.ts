/** What main hands to a new connection worker as `workerData`. Types only. */
import type { Port } from "./turn-endpoint.ts";

export interface WorkerBoot {
  /** Requests and their answers, and `WorkerEvent`s to main. */
  port: Port;
  logFile: string;
  /** Where the person types commands: sentences name `/mcp` or `pi-mcp-threads`. */
  commands: "pi" | "shell";
  /** Memory shared with main: which server is talking (talk.ts). */
  talk: SharedArrayBuffer;
  /** Folder of Node's compile cache, if the worker's environment names it only for the worker itself. */
  compileCache: string | undefined;
}
