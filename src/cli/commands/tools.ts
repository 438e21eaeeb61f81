/** `tools`: the tools of all servers, or of one. */

import { type CatalogTool, inputSchemaOf, outputSchemaOf } from "../../catalog/catalog.ts";
import { type CatalogHit, nearestTools, resolveTool, searchCatalog } from "../../catalog/search.ts";
import { serverName } from "../../report/server-name.ts";
import { parameterLines } from "../../report/tool.ts";
import { decode } from "../../shared/protocol/calls.ts";
import { counted } from "../../shared/text/amounts.ts";
import { parameterList } from "../../shared/text/signature.ts";
import { cleanText, firstSentence, oneLine, shownName } from "../../shared/text/unprintable.ts";
import { cutTo } from "../../shared/text/width.ts";
import type { Console } from "../console/console.ts";
import { EXIT, usage } from "../console/failure.ts";
import { countOption } from "../words/parse.ts";
import {
  type Command,
  endOfAll,
  type Known,
  knownCatalog,
  knownTools,
  noteAge,
  reachedOrThrow,
  toolRecord,
} from "./known.ts";

function* toolLines(
  tools: readonly CatalogTool[],
  servers: Known["catalog"]["servers"],
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
  for (const { name: server, toolsKnown } of servers) {
    const own = ofServer.get(server) ?? [];
    const count = toolsKnown ? counted(own.length, "tool") : "its tools are not known";
    yield `${console.paint("bold", serverName(server))}: ${count}`;
    for (const { name, description } of own)
      yield cutTo(`  ${name} - ${firstSentence(description)}`, columns);
  }
}

export const tools: Command = async (context) => {
  const { console } = context;
  const { known, server } = await knownTools(context, context.arguments[0]);
  const all = known.catalog.tools.filter((tool) => server === undefined || tool.server.name === server);
  const servers = known.catalog.servers.filter(({ name }) => server === undefined || name === server);
  if (server !== undefined) reachedOrThrow(known.report, server);
  noteAge(context, known, { server, always: true });
  console.answer({ tools: all.map(toolRecord) }, () => [...toolLines(all, servers, console)]);
  if (console.isTerminal && !console.json && all.length > 0) {
    console.note(
      "To call one: pi-mcp-threads call <name> key=value. pi-mcp-threads tool <name> shows its keys.",
    );
  }
  return server === undefined ? endOfAll(context, known.report) : EXIT.ok;
};

const NAME_CHARS = 200;

/** A server's words begin with a bar, so that none of their lines passes for a line of ours. */
const barred = (text: string): string[] => text.split("\n").map((line) => `| ${line}`);

async function find({ catalog }: Known, written: string): Promise<CatalogTool> {
  const found = resolveTool(catalog, written);
  if (found.kind === "tool") return found.tool;
  if (found.kind === "several") {
    const names = found.tools.map(({ name }) => name).join(", ");
    throw usage(`Several tools are called ${oneLine(written, NAME_CHARS)}: ${names}.`, "Name one of them.");
  }
  const near = (await nearestTools(catalog, written)).map(({ name }) => name);
  throw usage(
    `No tool named ${oneLine(written, NAME_CHARS)} is known.`,
    near.length > 0
      ? `Did you mean ${near.join(" or ")}?`
      : "pi-mcp-threads tools lists them; --refresh asks the servers first.",
  );
}

export const tool: Command = async (context) => {
  const { console } = context;
  const known = await knownCatalog(context);
  const found = await find(known, context.arguments[0] ?? "");
  const schema = inputSchemaOf(found);
  noteAge(context, known, { server: found.server.name, always: false });
  if (console.json) {
    const output = outputSchemaOf(found);
    const { annotations } = found;
    console.document({
      ...toolRecord(found),
      inputSchema: schema,
      ...(output ? { outputSchema: decode(output) } : {}),
      ...(annotations ? { annotations } : {}),
    });
    return EXIT.ok;
  }
  console.lines([
    found.name,
    `Server: ${oneLine(found.server.name, NAME_CHARS)}`,
    ...barred(cleanText(found.description)),
    "Parameters:",
    ...parameterLines(found).map((line) => `  ${line}`),
    "Schema:",
    cleanText(JSON.stringify(schema, undefined, 2)),
  ]);
  return EXIT.ok;
};

const HITS = 10;

/** For a person a hit has two lines, for a program one with tabs. */
function hitLines({ tool }: CatalogHit, console: Console): string[] {
  const sentence = firstSentence(tool.description);
  if (!console.isTerminal) return [[tool.name, shownName(tool.server.name), sentence].join("\t")];
  const columns = console.columns ?? 80;
  const parameters = parameterList(inputSchemaOf(tool));
  const head = cutTo(parameters, Math.max(2, columns - tool.name.length));
  return [
    `${console.paint("bold", tool.name)}${console.paint("dim", head)}`,
    `  ${cutTo(sentence, columns - 2)}`,
  ];
}

export const search: Command = async (context) => {
  const { console, options } = context;
  const query = context.arguments.join(" ");
  const limit = countOption(options, "limit", HITS);
  const written = typeof options.server === "string" ? options.server : undefined;
  const { known, server } = await knownTools(context, written);
  if (server !== undefined) reachedOrThrow(known.report, server);
  const end = () => (server === undefined ? endOfAll(context, known.report) : EXIT.ok);
  const { hits, unmatched } = searchCatalog(known.catalog, query, limit, server);
  noteAge(context, known, { server, always: false });
  if (console.json) {
    const tools = hits.map(({ tool, score }) => ({ ...toolRecord(tool), score }));
    console.document({ query, tools, unmatched });
    return end();
  }
  console.lines(hits.flatMap((hit) => hitLines(hit, console)));
  if (hits.length === 0) {
    console.note(known.catalog.count === 0 ? "No tools are known." : "No tool fits these words.");
  }
  return end();
};
