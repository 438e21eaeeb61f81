/**
 * Which tool a call means: `files list_directory`, or the whole name `files__list_directory` or `files.list_directory`. A call
 * does something, so the server must be named exactly: a name that is merely alike is never called, only proposed.
 */
import type { CatalogTool } from "../../catalog/catalog.ts";
import { nearestTools, resolveTool } from "../../catalog/search.ts";
import { serverName } from "../../report/server-name.ts";
import { plainToolName } from "../../shared/naming.ts";
import { fromWireError } from "../../shared/protocol/errors.ts";
import { slipsBetween } from "../../shared/text/reading.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { EXIT, Failure, usage } from "../console/failure.ts";
import {
  type Context,
  fromSnapshot,
  type Known,
  knownCatalog,
  knownServer,
  reachedOrThrow,
  serversOf,
} from "./known.ts";

const NAME_CHARS = 200;
const SLIPS = 2;
const shown = (name: string): string => oneLine(name, NAME_CHARS);

function toolOf({ catalog }: Known, written: string, server: string): CatalogTool | undefined {
  const found = resolveTool(catalog, written, server);
  if (found.kind === "several") {
    const names = found.tools.map(({ tool }) => shown(tool)).join(", ");
    throw usage(`Several tools of ${serverName(server)} fit ${shown(written)}: ${names}.`);
  }
  return found.kind === "tool" ? found.tool : undefined;
}

/**
 * The words that call these tools, as a sentence; empty without any. One that differs by slips of the keyboard is the one.
 * `isNamed`: the server is there already, as one that no file names always is.
 */
const proposal = (written: string, near: readonly CatalogTool[], isNamed = false): string => {
  const local = written.replace(/^.*(?:__|[./:])/, "").toLowerCase();
  const first = near.find(({ tool }) => slipsBetween(local, tool.toLowerCase(), SLIPS) <= SLIPS);
  const tools = first ? [first] : near;
  const words = tools.map(({ server, tool }) =>
    isNamed ? shown(tool) : `call ${shown(server.name)} ${shown(tool)}`,
  );
  return words.length === 0 ? "" : `Did you mean: ${words.join(", or: ")}?`;
};

/** Why the server that was asked now has no such tool. */
async function noTool(
  { catalog, report }: Known,
  server: string,
  written: string,
  isOnce: boolean,
): Promise<Failure> {
  reachedOrThrow(report, server);
  const near = proposal(written, await nearestTools(catalog, written, server), isOnce);
  return usage(
    `${serverName(server)} has no tool ${shown(written)}.`,
    near || `pi-mcp-threads tools ${serverName(server)} lists them.`,
  );
}

/** The tool as the snapshot knows it, or as its server lists it now. `written`: the server's exact name. */
async function findTool(context: Context, written: string, name: string): Promise<CatalogTool> {
  const known = await knownCatalog(context, written, "exact");
  const isKnown = known.catalog.servers.some((one) => one.name === written);
  const tool = isKnown ? toolOf(known, name, written) : undefined;
  if (tool) return tool;
  const refreshing = { ...context, options: { ...context.options, refresh: true } };
  const now = known.report === undefined ? await knownCatalog(refreshing, written, "exact") : known;
  const server = knownServer(now, written, "exact");
  const listed = toolOf(now, name, server);
  if (listed) return listed;
  const { runtime } = await context.session();
  const why = await runtime.ask("explainMissing", { name: plainToolName(server, name) });
  if (why) throw fromWireError(why);
  throw await noTool(now, server, name, context.place.logDir !== undefined);
}

/** `a=1`, `a:=1`, `{"a": 1}`: no name of a tool is written so. */
const isArgument = (word: string | undefined): boolean => word === undefined || /^(?:[^=]+=|\{)/.test(word);

const MARKS = ["__", ".", "/", ":"];

/** The longest server whose exact name begins the whole one, and what follows. */
function divided(written: string, servers: readonly string[]): [server: string, tool: string] | undefined {
  let best: [string, string] | undefined;
  for (const server of servers) {
    const mark = MARKS.find((one) => written.startsWith(`${server}${one}`));
    if (mark === undefined || server.length <= (best?.[0].length ?? -1)) continue;
    const tool = written.slice(server.length + mark.length);
    if (tool !== "") best = [server, tool];
  }
  return best;
}

async function unknownName(written: string, known: Known | undefined): Promise<Failure> {
  const near = known ? proposal(written, await nearestTools(known.catalog, written)) : "";
  return new Failure(EXIT.usage, `No server or tool named ${shown(written)} is known.`, {
    code: "unknown_server",
    remedy:
      near || "A call names both: pi-mcp-threads call <server> <tool>. pi-mcp-threads tools lists them.",
  });
}

/** The tool that one word names: as `tools` prints it, or its server's name, a mark and its own. */
async function findWhole(context: Context, written: string): Promise<CatalogTool> {
  const known = fromSnapshot(context);
  const exact = known?.catalog.get(written);
  if (exact) return exact;
  const names = known?.catalog.servers.map(({ name }) => name) ?? [];
  const isServer = names.includes(written);
  const parts = isServer ? undefined : divided(written, names);
  if (parts) return findTool(context, ...parts);
  // The files may name servers that the snapshot does not know.
  const planned = serversOf(await (await context.session()).planned());
  if (isServer || planned.includes(written)) {
    const shownServer = serverName(written);
    throw new Failure(EXIT.usage, `call ${shownServer} needs the name of a tool.`, {
      remedy: `pi-mcp-threads tools ${shownServer} lists them.`,
      data: { missing: "tool" },
    });
  }
  const now = divided(written, planned);
  if (now) return findTool(context, ...now);
  throw await unknownName(written, known);
}

/** The tool of a call, and the words that are left. */
export async function whichTool(context: Context): Promise<{ tool: CatalogTool; words: string[] }> {
  const [first = "", second, ...words] = context.arguments;
  if (second !== undefined && !isArgument(second)) {
    return { tool: await findTool(context, first, second), words };
  }
  return { tool: await findWhole(context, first), words: second === undefined ? [] : [second, ...words] };
}
