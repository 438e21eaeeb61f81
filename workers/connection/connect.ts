/** Opens a connection by the kind of target that a definition names. */
import type { Connection, ConnectOptions } from "./client.ts";
import { connectHttp } from "./connect-http.ts";
import { connectStdio } from "./connect-stdio.ts";

/** Connects and initializes. Throws `ThreadsError`; nothing is left running then. */
export function connect(options: ConnectOptions): Promise<Connection> {
  const { target } = options.definition;
  return target.kind === "stdio" ? connectStdio(target, options) : connectHttp(target, options);
}
