/** `add`, `remove`, `enable` and `disable`: changes of the configuration files, which the worker makes. */
import { serverName } from "../../report/server-name.ts";
import type { ServerPreview, TriedServer } from "../../shared/protocol/setup.ts";
import { ADD_USAGE, type AddWords, parseAdd } from "../../shared/setup.ts";
import { counted, formatMs } from "../../shared/text/amounts.ts";
import { type Console, EXIT, Failure, usage } from "../console/console.ts";
import type { Command } from "./context.ts";
import { configured } from "./known.ts";

function say(console: Console, text: string, document: Record<string, unknown>): void {
  if (console.json) console.document(document);
  else console.lines([text]);
}

/** Throws for an entry that cannot be written; shows what would run for every other. */
function judge({ line, mistakes, exists }: ServerPreview, add: AddWords, console: Console): void {
  const [error] = mistakes.filter(({ severity }) => severity === "error");
  const textOf = ({ key, message, remedy }: ServerPreview["mistakes"][number]): string =>
    `${key === "" ? "" : `${key}: `}${message}. ${remedy}`;
  if (error) throw new Failure(EXIT.usage, `${serverName(add.name)}: ${textOf(error)}`);
  if (exists && !add.replace) {
    throw usage(
      `${serverName(add.name)} is configured already, in ${exists.file}.`,
      "--replace before the name replaces it.",
    );
  }
  if (line !== undefined) console.note(`Runs: ${line}`);
  for (const mistake of mistakes) console.note(textOf(mistake));
}

function checkTried(tried: TriedServer, add: AddWords, console: Console): void {
  const name = serverName(add.name);
  if (tried.outcome === "failed") {
    const { message, remedy } = tried.error;
    throw new Failure(EXIT.unreachable, `${name} is not added: ${message}`, {
      remedy: [remedy, "--no-test before the name adds it all the same."].filter(Boolean).join(" "),
    });
  }
  if (tried.outcome === "needs-sign-in") console.note(`It wants a sign-in: pi-mcp-threads login ${name}`);
  else console.note(`It connects: ${counted(tried.toolCount, "tool")}, in ${formatMs(tried.tookMs)}.`);
}

export const add: Command = async (context) => {
  const { console, options, signal } = context;
  const parsed = parseAdd(context.arguments);
  if ("problem" in parsed) throw usage(parsed.problem, `Usage: ${ADD_USAGE.split("\n").join("\n  ")}`);
  const { name, entry, project, replace } = parsed.add;
  const session = await context.session();
  await session.planned();
  const { runtime } = session;
  const proposed = { name, entry, project };
  judge(await runtime.ask("previewServer", proposed), parsed.add, console);
  if (!options["no-test"]) checkTried(await runtime.ask("tryServer", proposed, signal), parsed.add, console);
  const { file, but } = await runtime.ask("addServer", { ...proposed, ...(replace ? { replace } : {}) });
  say(console, `${serverName(name)} is added to ${file}.`, { server: name, file, ...(but ? { but } : {}) });
  if (but) console.warn(but);
  return EXIT.ok;
};

export const remove: Command = async (context) => {
  const { console } = context;
  const { session, server } = await configured(context, context.arguments[0] ?? "", { exact: true });
  const { file, also = [], still } = await session.runtime.ask("removeServer", { server });
  const files = [file, ...also].join(" and ");
  say(console, `${serverName(server)} is removed from ${files}.`, {
    server,
    file,
    also,
    ...(still ? { still } : {}),
  });
  if (still) console.warn(`${serverName(server)} of ${still.file} counts now.`);
  return EXIT.ok;
};

const switchTo =
  (enabled: boolean): Command =>
  async (context) => {
    const { console, options } = context;
    const { session, server } = await configured(context, context.arguments[0] ?? "", { exact: true });
    const project = options.project === true;
    const { file, but } = await session.runtime.ask("setEnabled", { server, enabled, project });
    say(console, `${serverName(server)} is ${enabled ? "enabled" : "disabled"} in ${file}.`, {
      server,
      enabled,
      file,
      ...(but ? { but } : {}),
    });
    if (but) console.warn(but);
    return EXIT.ok;
  };

export const enable = switchTo(true);
export const disable = switchTo(false);
