/** `call`: one call of a tool. Its arguments are read by the tool's schema before anything of the server runs. */
import { type CatalogTool, inputSchemaOf } from "../../catalog/catalog.ts";
import { nearestTools, resolveTool } from "../../catalog/search.ts";
import { serverName } from "../../report/server-name.ts";
import type { CallProgress } from "../../shared/protocol/calls.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { looksLikeArguments, readArguments } from "../arguments/arguments.ts";
import { EXIT, Failure, usage } from "../console/console.ts";
import { failureOf } from "../state/state.ts";
import type { Command, Context } from "./context.ts";
import { type Known, knownCatalog, knownServer } from "./known.ts";
import { printResult } from "./result.ts";

const NAME_CHARS = 200;
/** A call does something: it must not go to a server whose name is merely alike. */
const EXACT = { exact: true };

function toolOf({ catalog }: Known, written: string, server: string): CatalogTool | undefined {
  const found = resolveTool(catalog, written, server);
  if (found.kind === "several") {
    const names = found.tools.map(({ tool }) => oneLine(tool, NAME_CHARS)).join(", ");
    throw usage(`Several tools of ${serverName(server)} fit ${oneLine(written, NAME_CHARS)}: ${names}.`);
  }
  return found.kind === "tool" ? found.tool : undefined;
}

/** Why the server that was asked now has no such tool. */
async function noTool({ catalog, report }: Known, server: string, written: string): Promise<Failure> {
  const status = report?.servers.find((one) => one.name === server);
  const failure = report && failureOf(report, server);
  if (failure !== undefined) {
    return new Failure(status?.state === "needs-auth" ? EXIT.signIn : EXIT.unreachable, failure);
  }
  const near = (await nearestTools(catalog, written, server)).map((one) => oneLine(one.tool, NAME_CHARS));
  return usage(
    `${serverName(server)} has no tool ${oneLine(written, NAME_CHARS)}.`,
    near.length > 0 ? `Near: ${near.join(", ")}.` : `pi-mcp-threads tools ${serverName(server)} lists them.`,
  );
}

/** The tool as the snapshot knows it, or as its server lists it now. */
async function findTool(context: Context, written: string, name: string): Promise<CatalogTool> {
  const known = await knownCatalog(context, written, EXACT);
  const isKnown = known.catalog.servers.some((one) => one.name === written);
  const tool = isKnown ? toolOf(known, name, written) : undefined;
  if (tool) return tool;
  const refreshing = { ...context, options: { ...context.options, refresh: true } };
  const now = known.report === undefined ? await knownCatalog(refreshing, written, EXACT) : known;
  const server = knownServer(now, written, EXACT);
  const listed = toolOf(now, name, server);
  if (listed) return listed;
  throw await noTool(now, server, name);
}

const progressText = (tool: string, { message, progress, total }: CallProgress): string => {
  const share = progress !== undefined && total ? `${Math.floor((100 * progress) / total)} % ` : "";
  return oneLine(`${tool}: ${share}${message}`, NAME_CHARS);
};

export const call: Command = async (context) => {
  const { console, options, signal } = context;
  const [written = "", name = "", ...words] = context.arguments;
  looksLikeArguments(words);
  const tool = await findTool(context, written, name);
  const server = tool.server.name;
  const args = await readArguments(oneLine(tool.tool, NAME_CHARS), inputSchemaOf(tool), {
    words,
    json: options.args,
    input: context,
  });
  const session = await context.session();
  await session.allow(server);
  const callId = "cli";
  const done = session.onProgress(callId, (event) => console.progress(progressText(tool.tool, event)));
  try {
    const request = { callId, server, tool: tool.tool, args, wantsStructured: true };
    const result = await session.runtime.callTool(request, signal);
    console.progress("");
    await printResult(result, console);
    return result.isError ? EXIT.toolError : EXIT.ok;
  } finally {
    done();
    console.progress("");
  }
};
