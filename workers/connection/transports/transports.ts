/**
 * Opens a connection to a server. Owns: which transport serves which kind of target, and the order variables and
 * commands -> secrets -> transport. Must not: know lifecycles, settings or Pi.
 *
 * To add a transport to an address: its word in `TransportKind` and in the `type` of config/entry/server-keys.ts, its row
 * in SPOKEN of config/entry/definition.ts, its file in http/, a row in ATTEMPTS of http/http.ts. To add another kind of target: its
 * type in config/entry/definition.ts, its variables in config/values/values.ts, a row of SECRETS in secrets/find.ts, its words in
 * config/trust/question.ts, and `connectX` with a row in TRANSPORTS; then each place that asks for `target.kind`, as those for local
 * programs alone (sandboxes, the hub, npx) and for addresses alone (sign-ins, the doctor's look). Both: a row in transports.test.ts.
 */
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { TRACE_FILE } from "../../../src/shared/snapshot/contract.ts";
import type { PolicyRules, ServerDefinition } from "../config/entry/definition.ts";
import { inherited } from "../config/entry/inherit-env.ts";
import { type ResolvedTarget, resolveTarget, rootsOf } from "../config/values/values.ts";
import type { Connection, ConnectOptions } from "../mcp/connection.ts";
import { inheritedSecrets, secretsOf } from "../secrets/find.ts";
import { connectStdio } from "./stdio/stdio.ts";

type Kind = ResolvedTarget["kind"];

/** Connects and initializes. Throws `ThreadsError`; then it has left nothing running. */
type Connect<K extends Kind> = (
  target: Extract<ResolvedTarget, { kind: K }>,
  options: ConnectOptions,
) => Promise<Connection>;

/** Kind of target -> loads its transport. */
const TRANSPORTS: { readonly [K in Kind]: () => Connect<K> | Promise<Connect<K>> } = {
  stdio: () => connectStdio,
  socket: async () => (await import("./stdio/socket.ts")).connectSocket,
  // Loaded when first needed: a user with local servers only never pays for Node's HTTP.
  http: async () => (await import("./http/http.ts")).connectHttp,
};

/** Throws `server_not_trusted` if the policy of this machine does not let run what the values have become. */
async function checkPolicy(policy: PolicyRules, name: string, target: ResolvedTarget): Promise<void> {
  const { reasonOf } = await import("../config/policy/rules.ts");
  const reason = reasonOf(policy, { name, target, isResolved: true });
  if (reason === undefined) return;
  throw new ThreadsError("server_not_trusted", `${name} is not started: ${reason}.`, {
    remedy: "Only the administrator can allow it.",
    data: { server: name },
  });
}

/** Secrets of Pi's own environment that a program of the server gets, and may print. */
function passedOn({ inheritEnv }: ServerDefinition, target: ResolvedTarget): string[] {
  const runsHere = target.kind === "stdio" || (target.kind === "http" && target.requestHeadersCommand);
  return runsHere ? inheritedSecrets(inherited(process.env, inheritEnv, process.platform)) : [];
}

/** Connects and initializes. Throws `ThreadsError`; then it has left nothing running. */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { definition } = options;
  const how = { ...options, env: process.env, home: homedir() };
  const [target, roots] = await Promise.all([resolveTarget(definition, how), rootsOf(definition, how)]);
  const { values, named } = secretsOf(definition.target, target);
  options.onSecrets({ values: [...values, ...passedOn(definition, target)], named });
  if (definition.policy) await checkPolicy(definition.policy, definition.name, target);
  const connectTo = await TRANSPORTS[target.kind]();
  // Beside the other files of the agent folder.
  const file = join(dirname(options.npxCacheFile), TRACE_FILE);
  const trace = definition.trace
    ? (await import("../messages/trace.ts")).traceMessages({ ...options, file, server: definition.name })
    : undefined;
  return connectTo(target as never, { ...options, roots, trace });
}
