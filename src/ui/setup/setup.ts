/**
 * The subcommands of `/mcp` that set servers up: `add`, `import` and `remove`. Owns: what the person is asked, in which
 * order, and what happens without a person. Must not: decide about an entry or a file; the worker does.
 * Called by: command/screens.ts, loaded with the first `/mcp`.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { serverName } from "../../report/server-name.ts";
import { removedText } from "../../report/setup.ts";
import { ADD_USAGE, parseAdd } from "../../shared/setup/add-words.ts";
import { splitWords } from "../../shared/setup/split-words.ts";
import { add } from "./add.ts";
import { choose } from "./dialog.ts";
import type { SetupHost } from "./host.ts";
import { importServers } from "./import.ts";
import { askWords } from "./steps.ts";

export type { SetupHost } from "./host.ts";
export { askedKey } from "./key.ts";

const USAGE = ADD_USAGE.replace(/^add /gm, "/mcp add ");

/** `[name] {...}` as it is pasted: its quotes are those of the JSON. */
function asJson(rest: string): { words: string[] } | undefined {
  const [, name, json] = /^([^\s'"{}]+\s+)?(\{.*\})$/s.exec(rest) ?? [];
  return json === undefined
    ? undefined
    : { words: [...(name === undefined ? [] : [name.trim()]), "--", json] };
}

async function runAdd(rest: string, ctx: PiContext, host: SetupHost): Promise<void> {
  if (rest === "") {
    if (!ctx.hasUI) return notify(ctx, USAGE, "warning");
    const words = await askWords(ctx);
    return words ? add(ctx, words, host) : notify(ctx, "Nothing is added.", "info");
  }
  const split = asJson(rest) ?? splitWords(rest);
  const parsed = "problem" in split ? split : parseAdd(split.words);
  if ("problem" in parsed) return notify(ctx, `${parsed.problem}\n${USAGE}`, "warning");
  return add(ctx, parsed.add, host);
}

const KEEP = "No, go back";
const REMOVE = "Remove it";

async function remove(name: string, ctx: PiContext, host: SetupHost): Promise<void> {
  let file: string | undefined;
  if (ctx.hasUI) {
    const { servers } = await host.ask("status", {});
    file = servers.find((server) => server.name === name)?.source;
    const place = file ?? "the file that defines it";
    const text = `Remove ${serverName(name)}?\nIts entry is taken out of ${place}. To keep the entry: /mcp disable.`;
    // Enter at once changes nothing.
    const answer = await choose(ctx, text, [KEEP, REMOVE]);
    if (answer !== REMOVE) return notify(ctx, `${serverName(name)} stays.`, "info");
  }
  const removed = await host.ask("removeServer", { server: name, ...(file === undefined ? {} : { file }) });
  notify(ctx, removedText(name, removed), "info");
}

/** `rest`: the text after the subcommand. Answers false if the subcommand is another one, or lacks its server. */
export async function runSetup(
  word: string,
  rest: string,
  ctx: PiContext,
  host: SetupHost,
): Promise<boolean> {
  if (word === "add") await runAdd(rest, ctx, host);
  else if (word === "import" && rest === "") await importServers(ctx, host);
  else if (word === "remove" && rest !== "") await remove(rest, ctx, host);
  else return false;
  return true;
}
