/**
 * Owns: the client that the conformance suite tests: the packed connection worker with one server, and a user who agrees
 * to everything and keeps every default, but in a scenario that is about the question. The suite gives the server's
 * address as the last argument, the scenario in `MCP_CONFORMANCE_SCENARIO`, the revision in
 * `MCP_CONFORMANCE_PROTOCOL_VERSION`, and for some scenarios credentials or calls in `MCP_CONFORMANCE_CONTEXT`.
 * Called by: support.ts, in the process of the tests. As a program: a person who runs one scenario by hand.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeError, ThreadsError } from "../../src/shared/protocol/errors.ts";
import { type PlainSession, startPlainSession } from "../support/plain-session.ts";
import type { User } from "../support/signing-in.ts";

const SERVER = "conformance";
/** The revision that has a wire of its own. */
const STATELESS = "2026-07-28";

/** No scenario is about a worker that hangs, and a busy machine alone must not end one. */
const HANGS_MS = 60_000;

/** More sign-ins than a client may try, so that the suite sees a client that does not stop. */
const MOST_SIGN_INS = 6;

interface Context {
  client_id?: string;
  client_secret?: string;
  private_key_pem?: string;
  signing_algorithm?: string;
  toolCalls?: { name: string; arguments: Record<string, unknown> }[];
}

/** What the suite gives a client. */
export interface Asked {
  url: string;
  scenario: string;
  revision: string;
  /** JSON. */
  context: string;
}

type Say = (text: string) => void;

type Call = [tool: string, args: Record<string, unknown>];

/** The `oauth` key of the entry, as a user would write it for the scenario. */
function oauthOf(scenario: string, context: Context): Record<string, unknown> {
  if (scenario === "auth/basic-cimd") {
    return { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" };
  }
  const client = {
    ...(context.client_id === undefined ? {} : { clientId: context.client_id }),
    ...(context.client_secret === undefined ? {} : { clientSecret: context.client_secret }),
  };
  if (!scenario.startsWith("auth/client-credentials-")) return client;
  return {
    ...client,
    grantType: "client_credentials",
    ...(context.private_key_pem === undefined ? {} : { privateKey: context.private_key_pem }),
    ...(context.signing_algorithm === undefined ? {} : { signingAlg: context.signing_algorithm }),
  };
}

/** The calls of a scenario. An empty list: the scenario ends with the server's tools. */
const CALLS: Record<string, Call[]> = {
  initialize: [],
  tools_call: [["add_numbers", { a: 5, b: 3 }]],
  "elicitation-sep1034-client-defaults": [["test_client_elicitation_defaults", {}]],
  "sse-retry": [["test_reconnection", {}]],
  // The authorization server moves when the first token is used.
  "auth/authorization-server-migration": [
    ["test-tool", {}],
    ["test-tool", {}],
  ],
  "request-metadata": [],
  "json-schema-ref-no-deref": [],
  "sep-2322-client-request-state": [
    ["test_mrtr_echo_state", {}],
    ["test_mrtr_unrelated", {}],
    ["test_mrtr_no_state", {}],
    ["test_mrtr_no_result_type", {}],
  ],
  // The worker reads resources by tools of its own.
  "http-standard-headers": [
    ["test_headers", {}],
    ["my-hyphenated-tool", {}],
    ["get_file_with_spaces", {}],
    ["get_resource_with_query_string", {}],
  ],
};

/** Calls that a scenario gives, or that need what the server has listed. */
const MORE_CALLS: Record<string, (session: PlainSession, context: Context) => Promise<Call[]>> = {
  "http-custom-headers": async (_session, { toolCalls = [] }) =>
    toolCalls.map((call): Call => [call.name, call.arguments]),
  // A tool that the client keeps is one that a model may call.
  "http-invalid-tool-headers": async (session) =>
    (await session.tools(SERVER)).map((tool): Call => [tool, { region: "us-west1" }]),
  "json-schema-2020-12-preservation": async (session) => {
    const declared = { server: SERVER, tool: "json_schema_2020_12_tool" };
    const schema = await session.runtime.ask("declaredSchema", declared);
    return [["json_schema_echo", { schema: JSON.parse(schema ?? "null") }]];
  },
};

/** Asks for the prompt. The suite answers it without messages, which is an error for a person. */
async function getPrompt(session: PlainSession): Promise<void> {
  const asking = session.runtime.ask("getPrompt", { server: SERVER, prompt: "test_prompt", args: {} });
  const error = await asking.catch((reason: unknown) => reason);
  if (!(error instanceof ThreadsError) || !error.message.endsWith("without messages.")) {
    throw new Error("the prompt is not answered as the suite answers it", { cause: error });
  }
}

/** Scenarios in which the client must go no further than its question to the user. */
const USER_DECLINES = ["auth/metadata-issuer-mismatch"];

interface Player {
  session: PlainSession;
  user: User;
  say: Say;
}

/** Calls the tool. Signs in as often as the server asks for it, and calls again. */
async function callSigningIn(player: Player, [tool, args]: Call): Promise<string> {
  for (let signIns = 0; ; signIns += 1) {
    try {
      return JSON.stringify((await player.session.call(SERVER, tool, args)).content);
    } catch (error) {
      const mayHelp = error instanceof ThreadsError && error.code === "needs_auth";
      if (!mayHelp || signIns === MOST_SIGN_INS) throw error;
      player.say(describeError(error));
      await signIn(player);
    }
  }
}

async function signIn({ session, user, say }: Player): Promise<void> {
  const { result, says, page } = await session.signIn(SERVER, user);
  say(`sign-in: ${says}${page ? ` (the browser shows status ${page.status})` : ""}`);
  if (!result.ok) throw new Error(says);
}

async function play({ url, scenario, revision, ...asked }: Asked, say: Say): Promise<void> {
  const context = JSON.parse(asked.context) as Context;
  const dir = await mkdtemp(join(tmpdir(), "pmt-conformance-"));
  const place = { agentDir: join(dir, "agent"), cwd: dir };
  await mkdir(place.agentDir);
  const oauth = oauthOf(scenario, context);
  const entry = {
    url,
    lifecycle: "eager",
    ...(revision === STATELESS ? { protocol: STATELESS } : {}),
    ...(Object.keys(oauth).length > 0 ? { oauth } : {}),
  };
  await writeFile(join(place.agentDir, "mcp.json"), JSON.stringify({ mcpServers: { [SERVER]: entry } }));
  const session = await startPlainSession(place, { heartbeatMs: HANGS_MS });
  const player = { session, user: { agrees: !USER_DECLINES.includes(scenario) }, say };
  try {
    const { state, error } = await session.settled(SERVER);
    say(`${state}${error ? `: ${describeError(error)}` : ""}`);
    if (state === "needs-auth") await signIn(player);
    const more = (await MORE_CALLS[scenario]?.(session, context)) ?? CALLS[scenario];
    for (const call of more ?? [["test-tool", {}] satisfies Call]) {
      say(`${call[0]}: ${await callSigningIn(player, call)}`);
    }
    if (scenario === "http-standard-headers") await getPrompt(session);
    const after = await session.settled(SERVER);
    if (after.state !== "connected") throw new Error(`the server is ${after.state}`);
  } finally {
    await session.runtime.stop();
    say(await readFile(join(place.agentDir, "mcp-threads.log"), "utf8"));
    await rm(dir, { recursive: true, force: true });
  }
}

/** Resolves with the exit code of the client: 0 if the scenario's tools were called. `say` gets each line about it. */
export async function drive(asked: Asked, say: Say): Promise<number> {
  try {
    await play(asked, say);
    return 0;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

if (import.meta.main) {
  const { env, argv } = process;
  const asked = {
    url: argv.at(-1) ?? "",
    scenario: env.MCP_CONFORMANCE_SCENARIO ?? "",
    revision: env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "",
    context: env.MCP_CONFORMANCE_CONTEXT ?? "{}",
  };
  /** The worker keeps no process alive, and this one waits for its events. */
  const awake = setInterval(() => undefined, 60_000);
  process.exitCode = await drive(asked, (line) => process.stderr.write(`${line}\n`));
  clearInterval(awake);
}
