/** Opens a connection by the kind of target that a definition names, its variables and commands resolved. */
import { homedir } from "node:os";
import { resolveTarget } from "../config/values/values.ts";
import type { Connection, ConnectOptions } from "../mcp/mcp.ts";
import { secretsOf } from "../secrets/secrets.ts";
import { connectStdio } from "./stdio/stdio.ts";

/** Connects and initializes. Throws `ThreadsError`; nothing is left running then. */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { env } = process;
  const { definition } = options;
  const target = await resolveTarget(definition, { ...options, env, home: homedir() });
  options.onSecrets(secretsOf(definition.target, target));
  if (target.kind === "stdio") return connectStdio(target, options);
  // Who has local servers only never loads Node's HTTP.
  const { connectHttp } = await import("./http/http.ts");
  return connectHttp(target, options);
}
