/** A call of the proxy tool `mcp`, in one of its modes. A failure becomes an error result. */
import type { ToolResult } from "../../pi/tools.ts";
import { errorLineOf } from "../../report/search.ts";
import { serverName } from "../../report/server-name.ts";
import { describeTool } from "../../report/tool.ts";
import { describeError, ThreadsError } from "../../shared/protocol/errors.ts";
import type { ServerStatus } from "../../shared/protocol/status.ts";
import { counted, offerText } from "../../shared/text/counts.ts";
import { cleanText } from "../../shared/text/unprintable.ts";
import { expectedLine } from "../definition/definition.ts";
import type { ProxyHost } from "./host.ts";
import { knownServer, type ProxyCall, parseArgs, Refusal, text, toolNamed } from "./request.ts";
import { type Listed, searchMode, serverMode } from "./search.ts";

/** Calls the tool through Pi, so that extensions that watch or block calls see the tool itself. */
async function callMode(
  host: ProxyHost,
  name: string,
  { callId, params, signal, onUpdate, ctx }: ProxyCall,
): Promise<ToolResult> {
  const server = text(params.server);
  const within = server === undefined ? undefined : knownServer(host, server);
  const args = parseArgs(params.args);
  const tool = host.provide(await toolNamed(host, name, within, signal));
  const options = { ...(signal ? { signal } : {}), ...(onUpdate ? { onUpdate } : {}) };
  const outcome = await host.forModel(callId, () => ctx.executeTool(tool.name, args, options));
  const { content, details } = outcome.result;
  if (!outcome.isError) return { content, details };
  if (outcome.durationMs !== undefined) return { content, details, isError: true };
  if (!ctx.tools.some((known) => known.name === tool.name)) {
    throw new Refusal(`Pi does not allow ${tool.name} in this session (--tools, --exclude-tools).`);
  }
  return { content: [...content, { type: "text", text: expectedLine(tool) }], details, isError: true };
}

function serverLine(status: ServerStatus): string {
  const error = status.error ? `: ${errorLineOf(status.name, status.error)}` : "";
  return `${serverName(status.name)}: ${status.state}, ${offerText(status)}${error}`;
}

function statusMode(host: ProxyHost): string {
  const servers = host.servers();
  const connected = servers.filter(({ state }) => state === "connected").length;
  const tools = servers.reduce((total, { toolCount }) => total + toolCount, 0);
  const head = `MCP: ${connected}/${counted(servers.length, "server")}, ${counted(tools, "tool")}`;
  return [head, ...servers.map(serverLine)].join("\n");
}

async function connectMode(
  host: ProxyHost,
  written: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  const server = knownServer(host, written);
  await host.connect(server, signal);
  const status = host.servers().find(({ name }) => name === server);
  if (status?.state !== "connected")
    throw new Refusal(status ? serverLine(status) : `${server}: not connected`);
  return serverLine(status);
}

/** The first parameter that is given decides: tool, connect, describe, search, server. Without any: the status. */
async function run(host: ProxyHost, call: ProxyCall): Promise<ToolResult> {
  const { params, signal, ctx } = call;
  const answer = (lines: string): ToolResult => ({ content: [{ type: "text", text: lines }], details: {} });
  const listed = async ({ text: lines, servers }: Listed): Promise<ToolResult> => {
    const told = await host.tell(servers, () => ctx.sessionManager.getBranch());
    if (!told) return answer(lines);
    const content = [lines, told.text].map((part) => ({ type: "text" as const, text: part }));
    return { content, details: { instructed: told.servers } };
  };
  const [tool, connect, describe, search, server] = ["tool", "connect", "describe", "search", "server"].map(
    (key) => text(params[key]),
  );
  if (tool !== undefined) return callMode(host, tool, call);
  if (connect !== undefined) return answer(await connectMode(host, connect, signal));
  if (describe !== undefined) {
    const within = server === undefined ? undefined : knownServer(host, server);
    const found = await toolNamed(host, describe, within, signal);
    return listed({ text: describeTool(found), servers: [found.server.name] });
  }
  if (search !== undefined) return listed(await searchMode(host, search, call));
  if (server !== undefined) return listed(await serverMode(host, server, call));
  return answer(statusMode(host));
}

export async function runProxyTool(host: ProxyHost, call: ProxyCall): Promise<ToolResult> {
  try {
    return await run(host, call);
  } catch (error) {
    const known = error instanceof Error ? error : { message: String(error) };
    const details = error instanceof ThreadsError ? { ...error.data, code: error.code } : {};
    return { content: [{ type: "text", text: cleanText(describeError(known)) }], details, isError: true };
  }
}
