/** `resources` and `read`: what servers offer to be read, and the content of one. */
import { serverName } from "../../report/server-name.ts";
import type { CallResult } from "../../shared/protocol/calls.ts";
import { decode } from "../../shared/protocol/codec.ts";
import type { ServerResources } from "../../shared/protocol/resources.ts";
import { counted } from "../../shared/text/amounts.ts";
import { cutTo } from "../../shared/text/width.ts";
import { type Console, EXIT } from "../console/console.ts";
import type { Command } from "./context.ts";
import { asked, reachedOrThrow } from "./known.ts";
import { printResult } from "./result.ts";

function linesOf({ server, resources, templates }: ServerResources, console: Console): string[] {
  const all = [...(resources ?? []), ...templates];
  const name = serverName(server);
  if (!console.isTerminal) return all.map(({ uri, title }) => [name, uri, title].join("\t"));
  const count = resources ? counted(all.length, "resource") : "its resources are not known";
  const rows = all.map(({ uri, title }) => cutTo(`  ${uri} - ${title}`, console.columns ?? 80));
  return [`${console.paint("bold", name)}: ${count}`, ...rows];
}

export const resources: Command = async (context) => {
  const { console, options } = context;
  const { session, server, report } = await asked(context, context.arguments[0], (status) =>
    status.state === "disabled" ? false : options.refresh || !status.toolsKnown,
  );
  const known = await session.runtime.ask("listResources", { server });
  if (server !== undefined) reachedOrThrow(report, server);
  if (console.json) console.document({ servers: known });
  else console.lines(known.flatMap((one) => linesOf(one, console)));
  return EXIT.ok;
};

export const read: Command = async (context) => {
  const { console, signal } = context;
  const [written, uri = ""] = context.arguments;
  const { session, server = "" } = await asked(context, written, () => false);
  const bytes = await session.runtime.ask("readResource", { server, uri, wantsStructured: true }, signal);
  await printResult(decode(bytes) as CallResult, console);
  return EXIT.ok;
};
