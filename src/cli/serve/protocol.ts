/**
 * `serve` as a server of the protocol, by the SDK's own: one definition for both eras. Must not: know servers, or what a tool
 * does.
 *
 * Up to 2025-11-25 a client is asked while its call is open. In 2026-07-28 nothing is asked: the answer of the call holds the
 * question, and the client calls again with the answer and the call's id (`requestState`), for which the call waits.
 */
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ElicitRequestFormParams,
  type InputRequiredResult,
  inputRequired,
  isCallToolResult,
  type McpRequestContext,
  Server,
  type ServerContext,
  type Tool,
} from "@modelcontextprotocol/server";
import manifest from "../../../package.json" with { type: "json" };
import type { CallProgress } from "../../shared/protocol/calls.ts";
import { isObject } from "../../shared/protocol/values.ts";
import type { ServerResult } from "../session/result.ts";
import type { Asked, Shows } from "./calls.ts";
import type { Listing, ServedTools } from "./tools.ts";

const INSTRUCTIONS =
  "The tools of the user's MCP servers. ToolSearch finds a tool by what it should do, and lists it with its parameters; then call it by its name, or with call where your client does not list it.";

/** The worker has judged every answer, so the SDK's schema compiler is never started. */
const noValidator = {
  getValidator:
    <T>() =>
    (input: unknown) => ({ valid: true as const, data: input as NonNullable<T>, errorMessage: undefined }),
};

/** As long as the worker lets a question stand. */
const ANSWER_MS = 10 * 60 * 1_000;

const capabilitiesOf = (server: Server, { mcpReq }: ServerContext): unknown =>
  (mcpReq.envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] ??
  server.getClientCapabilities();

/** A capability that names no mode means forms (MCP 2025-11-25, client/elicitation). */
function showsOf(capabilities: unknown): Shows {
  const elicitation = isObject(capabilities) ? capabilities.elicitation : undefined;
  if (!isObject(elicitation)) return { form: false, url: false };
  const url = elicitation.url !== undefined;
  return { form: elicitation.form !== undefined || !url, url };
}

/** Progress must grow from one message to the next, and servers repeat it. */
const STEP = 0.001;

function progressTo({ mcpReq }: ServerContext): ((progress: CallProgress) => void) | undefined {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let last = -STEP;
  return ({ message, progress = last + 1, total }) => {
    last = progress > last ? progress : last + STEP;
    const params = { progressToken, progress: last, message, ...(total === undefined ? {} : { total }) };
    // The client may have gone.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
  };
}

/** Of what a server sent, what a result may hold: a key more could make it a question of ours to the client. */
function soundResult({ content, structuredContent, isError }: ServerResult): CallToolResult {
  const isSound = (block: unknown): boolean => isCallToolResult({ content: [block] });
  const blocks = content.map((block) =>
    isSound(block) ? block : { type: "text", text: JSON.stringify(block) },
  );
  return {
    content: blocks as CallToolResult["content"],
    ...(isError === true ? { isError } : {}),
    ...(structuredContent === undefined ? {} : { structuredContent: structuredContent as never }),
  };
}

const embedded = ({ params }: Asked) =>
  params.mode === "url"
    ? inputRequired.elicitUrl(params)
    : inputRequired.elicit(params as ElicitRequestFormParams);

/** Asks the client while its call is open. Undefined: it did not answer. */
async function elicit({ mcpReq }: ServerContext, { id, params, signal }: Asked): Promise<unknown> {
  const how = {
    timeout: ANSWER_MS,
    signal: AbortSignal.any([signal, mcpReq.signal]),
    // In the answer to the call (MCP 2025-11-25, basic/transports): the SDK alone would use the stream of a GET, which a client
    // may not have opened yet, or never opens.
    relatedRequestId: mcpReq.id,
  };
  try {
    return params.mode === "url"
      ? await mcpReq.elicitInput({ ...params, elicitationId: id }, how)
      : await mcpReq.elicitInput(params as ElicitRequestFormParams, how);
  } catch {
    return undefined;
  }
}

export function createServer(
  tools: ServedTools,
  listing: Listing,
  { era }: Pick<McpRequestContext, "era">,
): Server {
  const { name, version } = manifest;
  const server = new Server(
    { name, version },
    {
      capabilities: { tools: { listChanged: true } },
      instructions: INSTRUCTIONS,
      jsonSchemaValidator: noValidator,
      // Names an open call and its question, which nobody can guess. Any other one is refused.
      requestState: {
        verify: (state) => {
          if (!tools.calls.withState(state)) throw new Error("no such call is open");
        },
      },
    },
  );

  const answer = async (
    called: { name: string; arguments?: Record<string, unknown> | undefined },
    ctx: ServerContext,
  ): Promise<CallToolResult | InputRequiredResult> => {
    const { signal, inputResponses } = ctx.mcpReq;
    const how = { signal, onProgress: progressTo(ctx) };
    const state = era === "modern" ? ctx.mcpReq.requestState<string>() : undefined;
    // Verified: the call is open.
    const open = state === undefined ? undefined : tools.calls.withState(state);
    for (const [question, response] of Object.entries(inputResponses ?? {})) open?.answer(question, response);
    let turn =
      state === undefined
        ? await tools.begin(listing, {
            ...how,
            name: called.name,
            args: called.arguments ?? {},
            shows: showsOf(capabilitiesOf(server, ctx)),
          })
        : await tools.goOn(open, how);
    while ("asked" in turn) {
      const { asked } = turn;
      const call = tools.calls.get(turn.id);
      if (era === "modern")
        return inputRequired({
          inputRequests: { [asked.id]: embedded(asked) },
          requestState: call?.state ?? "",
        });
      const answered = await elicit(ctx, asked);
      if (signal.aborted) call?.cancel();
      else call?.answer(asked.id, answered);
      turn = await tools.goOn(call, how);
    }
    return server.projectCallToolResult(soundResult(turn.result), undefined);
  };

  server.setRequestHandler("tools/list", async () => ({ tools: (await tools.list(listing)) as Tool[] }));
  server.setRequestHandler("tools/call", ({ params }, ctx) => answer(params, ctx));
  return server;
}
