/** `prompts`: the prompts of servers with their arguments. */
import { serverName } from "../../report/server-name.ts";
import type { SnapshotPrompt, SnapshotServer } from "../../shared/snapshot/contract.ts";
import { counted } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { cutTo } from "../../shared/text/width.ts";
import { type Console, EXIT } from "../console/console.ts";
import type { Command } from "./context.ts";
import { knownCatalog, knownServer, noteAge, reachedOrThrow } from "./known.ts";

const CHARS = 300;

const argumentsOf = ({ arguments: given = [] }: SnapshotPrompt): string =>
  given.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`)).join(" ");

function linesOf({ name, prompts = [] }: SnapshotServer, console: Console): string[] {
  const rows = prompts.map((prompt) => [
    oneLine(prompt.prompt, CHARS),
    oneLine(argumentsOf(prompt), CHARS),
    oneLine(prompt.description ?? "", CHARS),
  ]);
  if (!console.isTerminal) return rows.map((cells) => [serverName(name), ...cells].join("\t"));
  const lines = rows.map(([prompt, given, text]) =>
    cutTo(`  ${[prompt, given].filter(Boolean).join(" ")}${text ? ` - ${text}` : ""}`, console.columns ?? 80),
  );
  return [`${console.paint("bold", serverName(name))}: ${counted(rows.length, "prompt")}`, ...lines];
}

export const prompts: Command = async (context) => {
  const { console } = context;
  const [written] = context.arguments;
  const known = await knownCatalog(context, written);
  const server = written === undefined ? undefined : knownServer(known, written);
  if (server !== undefined) reachedOrThrow(known.report, server);
  const servers = known.catalog.servers.filter(({ name }) => server === undefined || name === server);
  noteAge(context, known, true);
  if (console.json) {
    console.document({
      servers: servers.map(({ name, prompts: own = [] }) => ({ server: name, prompts: own })),
    });
  } else console.lines(servers.flatMap((one) => linesOf(one, console)));
  return EXIT.ok;
};
