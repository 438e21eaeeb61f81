/** `tools`: the tools of all servers, or of one. */
import type { CatalogTool } from "../../catalog/catalog.ts";
import { serverName } from "../../report/server-name.ts";
import { counted } from "../../shared/text/amounts.ts";
import { firstSentence, shownName } from "../../shared/text/unprintable.ts";
import { cutTo } from "../../shared/text/width.ts";
import { type Console, EXIT } from "../console/console.ts";
import type { Command } from "./context.ts";
import { knownCatalog, knownServer, noteAge, reachedOrThrow, toolRecord } from "./known.ts";

function* linesOf(
  tools: readonly CatalogTool[],
  names: readonly string[],
  console: Console,
): Generator<string> {
  if (!console.isTerminal) {
    for (const { name, server, description } of tools) {
      yield [name, shownName(server.name), firstSentence(description)].join("\t");
    }
    return;
  }
  const ofServer = Map.groupBy(tools, ({ server }) => server.name);
  const columns = console.columns ?? 80;
  for (const server of names) {
    const own = ofServer.get(server) ?? [];
    yield `${console.paint("bold", serverName(server))}: ${counted(own.length, "tool")}`;
    for (const { name, description } of own)
      yield cutTo(`  ${name} - ${firstSentence(description)}`, columns);
  }
}

export const tools: Command = async (context) => {
  const { console } = context;
  const [written] = context.arguments;
  let known = await knownCatalog(context, written);
  let server = written === undefined ? undefined : knownServer(known, written);
  const isUnknown = known.catalog.servers.some(({ name, toolsKnown }) => name === server && !toolsKnown);
  if (server !== undefined && isUnknown && known.writtenAt !== undefined) {
    // The server was never connected: nothing is known that could be shown.
    known = await knownCatalog({ ...context, options: { ...context.options, refresh: true } }, server);
    server = knownServer(known, server);
  }
  const all = known.catalog.tools.filter((tool) => server === undefined || tool.server.name === server);
  const names = server === undefined ? known.catalog.servers.map(({ name }) => name) : [server];
  if (server !== undefined) reachedOrThrow(known.report, server);
  noteAge(context, known, true);
  if (console.json) console.document({ tools: all.map(toolRecord) });
  else console.lines([...linesOf(all, names, console)]);
  return EXIT.ok;
};
