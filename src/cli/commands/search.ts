/** `search`: finds tools by words in the catalog of the snapshot. Starts no worker if there is one. */
import { inputSchemaOf } from "../../catalog/catalog.ts";
import { type CatalogHit, searchCatalog } from "../../catalog/search.ts";
import { firstSentence } from "../../shared/text/sentence.ts";
import { parameterList } from "../../shared/text/signature.ts";
import { shownName } from "../../shared/text/unprintable.ts";
import { cutTo } from "../../shared/text/width.ts";
import { type Console, EXIT } from "../console/console.ts";
import { countOption } from "../words/words.ts";
import type { Command } from "./context.ts";
import { knownCatalog, knownServer, noteAge, toolRecord } from "./known.ts";

const HITS = 10;

/** For a person a hit has two lines, for a program one with tabs. */
function linesOf({ tool }: CatalogHit, console: Console): string[] {
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
  const known = await knownCatalog(context);
  const server = typeof options.server === "string" ? knownServer(known, options.server) : undefined;
  const { hits, unmatched } = searchCatalog(known.catalog, query, limit, server);
  noteAge(context, known, false);
  if (console.json) {
    const tools = hits.map(({ tool, score }) => ({ ...toolRecord(tool), score }));
    console.document({ query, tools, unmatched });
    return EXIT.ok;
  }
  console.lines(hits.flatMap((hit) => linesOf(hit, console)));
  if (hits.length === 0) {
    console.note(
      known.catalog.count === 0
        ? "No tools are known. pi-mcp-threads list --refresh connects the servers."
        : "No tool fits these words.",
    );
  }
  return EXIT.ok;
};
