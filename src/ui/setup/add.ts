/** `/mcp add`: shows what would run, tries it, asks for the file and writes it. */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { serverName } from "../../report/server-name.ts";
import { addedText, MCP_COMMANDS, mistakeText, ownerText, runsText, triedText } from "../../report/setup.ts";
import { ThreadsError } from "../../shared/protocol/errors.ts";
import type { ProposedServer, ServerPreview, TriedServer } from "../../shared/protocol/setup.ts";
import type { AddWords } from "../../shared/setup/add-words.ts";
import { choose, whileWaiting } from "./dialog.ts";
import type { SetupHost } from "./host.ts";
import { askKey } from "./key.ts";

const TEST = "Test it, then add it";
const NO_TEST = "Add it without a test";
const CANCEL = "Cancel";
const REPLACE = "Replace it";
const KEEP = "Keep what is there";
const ANYWAY = "Add it anyway";
const WITH_KEY = "Add it, and say where its key is";
const NOT = "Do not add it";

const unchanged = (ctx: PiContext, name: string): void =>
  notify(ctx, `${serverName(name)} is not added; no file has changed.`, "info");

/** Shows the mistakes. False: the entry cannot be used. */
function isUsable(ctx: PiContext, name: string, { mistakes }: ServerPreview): boolean {
  if (mistakes.length === 0) return true;
  const isWrong = mistakes.some(({ severity }) => severity === "error");
  const lead = isWrong ? `${serverName(name)} cannot be added:` : `${serverName(name)}:`;
  notify(ctx, [lead, ...mistakes.map(mistakeText)].join("\n"), isWrong ? "error" : "warning");
  return !isWrong;
}

/** Whether the server may take the place of the one that has its name. */
async function mayReplace(
  ctx: PiContext,
  { name, replace }: AddWords,
  { exists }: ServerPreview,
): Promise<boolean> {
  if (!exists || replace) return true;
  const taken = `A server named ${serverName(name)} is there already, in ${ownerText(exists)}.`;
  if (ctx.hasUI) return (await choose(ctx, taken, [KEEP, REPLACE])) === REPLACE;
  notify(ctx, `${taken} Choose another name, or write --replace.`, "error");
  return false;
}

/** Undefined: the person cancelled the test. */
async function tryIt(
  ctx: PiContext,
  proposal: ProposedServer,
  host: SetupHost,
): Promise<TriedServer | undefined> {
  if (!ctx.hasUI) return host.ask("tryServer", proposal);
  const text = `Testing ${serverName(proposal.name)}. A package that npm must fetch first may take minutes: the lowest line says how far it is.`;
  try {
    return await whileWaiting(ctx, text, (signal) => host.ask("tryServer", proposal, signal));
  } catch (error) {
    if (error instanceof ThreadsError && error.code === "cancelled") return undefined;
    throw error;
  }
}

/** Whether the server has answered, and wants a key that its entry does not have. */
const lacksKey = (tried: TriedServer): boolean =>
  tried.outcome === "failed" && tried.error.data?.reason === "key-wanted";

/** Whether the server is to be written after this test. `tried`: undefined if the person cancelled it. */
async function goesOn(ctx: PiContext, name: string, tried: TriedServer | undefined): Promise<boolean> {
  if (tried && tried.outcome !== "failed") return true;
  const text = tried ? triedText(name, tried, MCP_COMMANDS) : `The test of ${serverName(name)} is cancelled.`;
  if (ctx.hasUI) {
    const yes = tried && lacksKey(tried) ? WITH_KEY : ANYWAY;
    return (await choose(ctx, text, [NOT, yes])) === yes;
  }
  notify(ctx, text, "error");
  return false;
}

/** Whether the project's file is to be written; undefined: none is. `lead`: what the person reads first. */
async function whichFile(
  ctx: PiContext,
  { add, lead, file }: { add: AddWords; lead: string; file: string },
  host: SetupHost,
): Promise<boolean | undefined> {
  if (add.saysWhere || !ctx.isProjectTrusted()) return add.project;
  const { name, entry } = add;
  const of = await host.ask("previewServer", { name, entry, project: true });
  const mine = `For you: ${file}`;
  const projects = `For this project: ${of.file}`;
  const choice = await choose(ctx, `${lead}\nWhere is it to be added?`, [mine, projects, CANCEL]);
  return choice === mine ? false : choice === projects ? true : undefined;
}

/** The rest of `add` with a person: a test, the file, the write. */
async function withPerson(
  ctx: PiContext,
  add: AddWords,
  preview: ServerPreview,
  host: SetupHost,
): Promise<TriedServer | "untested" | undefined> {
  const { name } = add;
  const choice = await choose(ctx, `Add ${serverName(name)}?\n${runsText(preview)}`, [TEST, NO_TEST, CANCEL]);
  if (choice === NO_TEST) return "untested";
  if (choice !== TEST) return undefined;
  const tried = await tryIt(ctx, add, host);
  if (!(await goesOn(ctx, name, tried))) return undefined;
  return tried ?? "untested";
}

export async function add(ctx: PiContext, words: AddWords, host: SetupHost): Promise<void> {
  const { name, entry, project } = words;
  const preview = await host.ask("previewServer", { name, entry, project });
  if (!isUsable(ctx, name, preview)) return;
  if (!(await mayReplace(ctx, words, preview))) return unchanged(ctx, name);
  const tried = ctx.hasUI ? await withPerson(ctx, words, preview, host) : await tryIt(ctx, words, host);
  if (tried === undefined) return unchanged(ctx, name);
  if (!ctx.hasUI && tried !== "untested" && !(await goesOn(ctx, name, tried))) return unchanged(ctx, name);
  const result = tried === "untested" ? "" : triedText(name, tried, MCP_COMMANDS);
  const isProject = ctx.hasUI
    ? await whichFile(
        ctx,
        { add: words, lead: result || `${serverName(name)} was not tested.`, file: preview.file },
        host,
      )
    : project;
  if (isProject === undefined) return unchanged(ctx, name);
  const replace = words.replace || preview.exists !== undefined;
  const added = await host.ask("addServer", {
    name,
    entry,
    project: isProject,
    ...(replace ? { replace } : {}),
  });
  notify(ctx, [addedText(name, added), ...(result === "" ? [] : [result])].join("\n"), "info");
  if (!ctx.hasUI || tried === "untested" || !lacksKey(tried)) return;
  await askKey(ctx, name, `${serverName(name)} is added.`, host);
}
