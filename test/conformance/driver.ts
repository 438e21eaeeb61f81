/**
 * Owns: the client that the conformance suite tests: the packed connection worker with one server at a time, and a user
 * who agrees to everything and keeps every default, but in a scenario that is about the question. Each scenario is an edit
 * of `mcp.json`, with a server of a name of its own. The suite gives the server's address as the last argument, the
 * scenario in `MCP_CONFORMANCE_SCENARIO`, the revision in `MCP_CONFORMANCE_PROTOCOL_VERSION`, and for some scenarios
 * credentials or calls in `MCP_CONFORMANCE_CONTEXT`.
 * Called by: support.ts, in the process of the tests. As a program: a person who runs one scenario by hand.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describeError, ThreadsError } from "../../src/shared/protocol/errors.ts";
import { endHub } from "../support/end-hub.ts";
import { type PlainSession, startPlainSession } from "../support/plain-session.ts";
import type { User } from "../support/signing-in.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";

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
  valid_jwt?: string;
  idp_client_id?: string;
  idp_id_token?: string;
  idp_issuer?: string;
  toolCalls?: { name: string; arguments: Record<string, unknown> }[];
}

/** What the suite gives a client. */
export interface Asked {
  url: string;
  scenario: string;
  revision: string;
  /** JSON, or empty. */
  context: string;
  over?: Over;
}

/** How the client reaches the suite's server: over HTTP, or over stdio through bridge.mjs, its own or a shared one. */
export type Over = "http" | "stdio" | "stdio, shared";

type Say = (text: string) => void;

type Call = [tool: string, args: Record<string, unknown>];

/** Scenarios of a company that signs in to servers through its identity provider. */
const COMPANY = ["auth/enterprise-managed-authorization", "auth/cross-app-access-complete-flow"];

/** The `settings` of mcp.json. The suite's identity provider has no page to sign in at: it gives the identity. */
function settingsOf(scenario: string, context: Context): Record<string, unknown> {
  if (!COMPANY.includes(scenario)) return {};
  const { idp_issuer: issuer, idp_client_id: clientId, idp_id_token: assertion } = context;
  return { identityProvider: { issuer, clientId, assertion } };
}

/** The `oauth` key of the entry, as a user would write it for the scenario. */
function oauthOf(scenario: string, context: Context): Record<string, unknown> {
  if (scenario === "auth/basic-cimd") {
    return { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" };
  }
  const client = {
    ...(context.client_id === undefined ? {} : { clientId: context.client_id }),
    ...(context.client_secret === undefined ? {} : { clientSecret: context.client_secret }),
  };
  if (scenario === "auth/wif-jwt-bearer") {
    return { ...client, grantType: "jwt_bearer", assertion: context.valid_jwt };
  }
  if (COMPANY.includes(scenario)) return { ...client, grantType: "identity_provider" };
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
  // Nothing may be read before the skill is loaded.
  "sep-2640-client-no-prefetch": [],
  // The worker reads resources by tools of its own.
  "http-standard-headers": [
    ["test_headers", {}],
    ["my-hyphenated-tool", {}],
    ["get_file_with_spaces", {}],
    ["get_resource_with_query_string", {}],
  ],
};

/** Calls that a scenario gives, or that need what the server has listed. */
const MORE_CALLS: Record<string, (player: Player, context: Context) => Promise<Call[]>> = {
  "http-custom-headers": async (_player, { toolCalls = [] }) =>
    toolCalls.map((call): Call => [call.name, call.arguments]),
  // A tool that the client keeps is one that a model may call.
  "http-invalid-tool-headers": async ({ session, server }) =>
    (await session.tools(server)).map((tool): Call => [tool, { region: "us-west1" }]),
  "json-schema-2020-12-preservation": async ({ session, server }) => {
    const declared = { server, tool: "json_schema_2020_12_tool" };
    const schema = await session.runtime.ask("declaredSchema", declared);
    return [["json_schema_echo", { schema: JSON.parse(schema ?? "null") }]];
  },
};

/** Asks for the prompt. The suite answers it without messages, which is an error for a person. */
async function getPrompt({ session, server }: Player): Promise<void> {
  const asking = session.runtime.ask("getPrompt", { server, prompt: "test_prompt", args: {} });
  const error = await asking.catch((reason: unknown) => reason);
  if (!(error instanceof ThreadsError) || !error.message.endsWith("without messages.")) {
    throw new Error("the prompt is not answered as the suite answers it", { cause: error });
  }
}

/** Scenarios in which the client must go no further than its question to the user. */
const USER_DECLINES = ["auth/metadata-issuer-mismatch"];

interface Player {
  session: PlainSession;
  /** The server's name. */
  server: string;
  user: User;
  say: Say;
}

/** Calls the tool. Signs in as often as the server asks for it, and calls again. */
async function callSigningIn(player: Player, [tool, args]: Call): Promise<string> {
  for (let signIns = 0; ; signIns += 1) {
    try {
      return JSON.stringify((await player.session.call(player.server, tool, args)).content);
    } catch (error) {
      const mayHelp = error instanceof ThreadsError && error.code === "needs_auth";
      if (!mayHelp || signIns === MOST_SIGN_INS) throw error;
      player.say(describeError(error));
      await signIn(player);
    }
  }
}

async function signIn({ session, server, user, say }: Player): Promise<void> {
  const { result, says, page } = await session.signIn(server, user);
  say(`sign-in: ${says}${page ? ` (the browser shows status ${page.status})` : ""}`);
  if (!result.ok) throw new Error(says);
}

/** The server's entry, as a user would write it for the scenario. */
function entryOf(
  { url, scenario, revision, over = "http" }: Asked,
  context: Context,
): Record<string, unknown> {
  const oauth = oauthOf(scenario, context);
  const bridge = { command: process.execPath, args: [join(import.meta.dirname, "bridge.mjs"), url] };
  return {
    ...(over === "http" ? { url } : { ...bridge, shared: over === "stdio, shared" }),
    lifecycle: "eager",
    ...(revision === STATELESS ? { protocol: STATELESS } : {}),
    ...(Object.keys(oauth).length > 0 ? { oauth } : {}),
  };
}

/** The address of the skill of all `sep-2640` scenarios, and of the file that a client reads only if it took the skill. */
const SKILL = "skill_pdf_processing";
const SKILL_FILE = "references/FORMS.md";
/** Scenarios in which the skill is not what was listed. */
const TAMPERED = ["digest", "size", "frontmatter"].map((what) => `sep-2640-client-verify-${what}`);

/** Loads a skill that is not what was listed: the client must refuse it, and reads no further. */
async function refuseSkill({ session, server, say }: Player): Promise<void> {
  const load = (args: Record<string, unknown>) =>
    session.call(server, SKILL, args).then(
      () => "loaded",
      (error: unknown) => (error instanceof ThreadsError ? error : String(error)),
    );
  const loaded = await load({});
  say(loaded instanceof ThreadsError ? describeError(loaded) : loaded);
  if (!(loaded instanceof ThreadsError) || loaded.code !== "skill_refused")
    throw new Error("the skill was not refused");
  say(`${SKILL_FILE} is not asked for`);
}

async function play(player: Player, scenario: string, context: Context): Promise<void> {
  const { session, server, say } = player;
  const { state, error } = await session.settled(server);
  say(`${state}${error ? `: ${describeError(error)}` : ""}`);
  if (state === "needs-auth") await signIn(player);
  if (TAMPERED.includes(scenario)) await refuseSkill(player);
  const more = TAMPERED.includes(scenario)
    ? []
    : ((await MORE_CALLS[scenario]?.(player, context)) ?? CALLS[scenario]);
  for (const call of more ?? [["test-tool", {}] satisfies Call]) {
    say(`${call[0]}: ${await callSigningIn(player, call)}`);
  }
  if (scenario === "http-standard-headers") await getPrompt(player);
  const after = await session.settled(server);
  if (after.state !== "connected") throw new Error(`the server is ${after.state}`);
}

export interface Client {
  /**
   * Plays one scenario; one at a time. Resolves with the exit code of the client: 0 if the scenario's tools were called.
   * `say` gets each line about it.
   */
  drive(asked: Asked, say: Say): Promise<number>;
  close(): Promise<void>;
}

/** Starts the client, without a server. */
export async function startClient(): Promise<Client> {
  const dir = await makeTempFolder("pmt-conformance");
  const place = { agentDir: join(dir, "agent"), cwd: dir };
  await mkdir(place.agentDir);
  const configure = (mcpServers: Record<string, unknown>, settings = {}): Promise<void> =>
    writeFile(join(place.agentDir, "mcp.json"), JSON.stringify({ settings, mcpServers }));
  const readLog = (): Promise<string> => readFile(join(place.agentDir, "mcp-threads.log"), "utf8");
  await configure({});
  const session = await startPlainSession(place, { limits: { heartbeatMs: HANGS_MS } });
  let scenarios = 0;
  return {
    drive: async (asked, say) => {
      const server = `conformance-${++scenarios}`;
      const context = JSON.parse(asked.context || "{}") as Context;
      const user = { agrees: !USER_DECLINES.includes(asked.scenario) };
      const before = (await readLog()).length;
      try {
        await configure({ [server]: entryOf(asked, context) }, settingsOf(asked.scenario, context));
        await session.begun(server);
        await play({ session, server, user, say }, asked.scenario, context);
        return 0;
      } catch (error) {
        say(error instanceof Error ? error.message : String(error));
        return 1;
      } finally {
        await configure({});
        await session.removed(server);
        say((await readLog()).slice(before));
      }
    },
    close: async () => {
      await session.runtime.stop();
      await endHub(place.agentDir);
      await removeFolder(dir);
    },
  };
}

if (import.meta.main) {
  const { env, argv } = process;
  const asked = {
    url: argv.at(-1) ?? "",
    scenario: env.MCP_CONFORMANCE_SCENARIO ?? "",
    revision: env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "",
    context: env.MCP_CONFORMANCE_CONTEXT ?? "",
  };
  /** The worker keeps no process alive, and this one waits for its events. */
  const awake = setInterval(() => undefined, 60_000);
  const client = await startClient();
  process.exitCode = await client.drive(asked, (line) => process.stderr.write(`${line}\n`));
  await client.close();
  clearInterval(awake);
}
