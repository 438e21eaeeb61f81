/**
 * Opens a connection to a server. To add a transport: a folder here whose entry exports
 * `connectX(target, options): Promise<Connection>` (the contract is mcp/connection.ts), a row in TRANSPORTS, the kind
 * of target in config/entry/definition.ts with its variables in config/values, its secrets in secrets/find.ts, and a
 * row in transports.test.ts.
 *
 * Owns: which transport serves which kind of target, and the order variables and commands -> secrets -> transport.
 * Must not: know lifecycles, settings or Pi. Called by: servers.
 */
import { homedir } from "node:os";
import { type ResolvedTarget, resolveTarget, rootsOf } from "../config/values/values.ts";
import type { Connection, ConnectOptions } from "../mcp/connection.ts";
import { secretsOf } from "../secrets/find.ts";
import { connectStdio } from "./stdio/stdio.ts";

type Target = ResolvedTarget;
type Kind = Target["kind"];

/** Connects and initializes. Throws `ThreadsError`; then it has left nothing running. */
type Connect<K extends Kind> = (
  target: Extract<Target, { kind: K }>,
  options: ConnectOptions,
) => Promise<Connection>;

/** Kind of target -> loads its transport. */
const TRANSPORTS: { readonly [K in Kind]: () => Connect<K> | Promise<Connect<K>> } = {
  stdio: () => connectStdio,
  // Loaded when first needed: a user with local servers only never pays for Node's HTTP.
  http: async () => (await import("./http/http.ts")).connectHttp,
};

async function open<K extends Kind>(
  kind: K,
  target: Extract<Target, { kind: K }>,
  options: ConnectOptions,
): Promise<Connection> {
  const connectTo: Connect<K> = await TRANSPORTS[kind]();
  return connectTo(target, options);
}

/** Connects and initializes. Throws `ThreadsError`; then it has left nothing running. */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { definition } = options;
  const how = { ...options, env: process.env, home: homedir() };
  const [target, roots] = await Promise.all([resolveTarget(definition, how), rootsOf(definition, how)]);
  options.onSecrets(secretsOf(definition.target, target));
  return open(target.kind, target, { ...options, roots });
}
