/** `/mcp add`: shows what would run, tries it, asks for the file and writes it. */

import type { PiContext } from "../../pi/api.ts";
import { serverName } from "../../report/server-name.ts";
import { addedText, mistakeText, ownerText, runsText, triedText } from "../../report/setup.ts";
import { knownServer } from "../../shared/known-servers.ts";
import type { ConnectionMethods } from "../../shared/protocol/contract.ts";
import { type JsonValue, ThreadsError } from "../../shared/protocol/errors.ts";
import type {
  ProposedServer,
  ServerEntry,
  ServerPreview,
  TriedServer,
} from "../../shared/protocol/person.ts";
import type { AddWords } from "../../shared/setup.ts";
import { splitWords } from "../../shared/text/split-words.ts";
import { say, sayRefused } from "../say.ts";
import { type Ask, choose, whileWaiting } from "./dialog.ts";
import { askKey } from "./key.ts";
import { askValues, askVariable, wantedVariable } from "./values.ts";

const TEST = "Test it, then add it";
const NO_TEST = "Add it without a test";
const CANCEL = "Cancel";
const REPLACE = "Replace it";
const KEEP = "Keep what is there";
const ANYWAY = "Add it anyway";
const WITH_KEY = "Add it, and say where its key is";
const NOT = "Do not add it";

/** Shows the mistakes. False: the entry cannot be used. */
function isUsable(ctx: PiContext, name: string, { mistakes }: ServerPreview): boolean {
  if (mistakes.length === 0) return true;
  const isWrong = mistakes.some(({ severity }) => severity === "error");
  const lead = isWrong ? `${serverName(name)} cannot be added:` : `${serverName(name)}:`;
  const text = [lead, ...mistakes.map(mistakeText)].join("\n");
  if (isWrong) sayRefused(ctx, "unusable", text, "error");
  else say(ctx, text, "warning");
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
  sayRefused(ctx, "unusable", `${taken} Choose another name, or write --replace.`, "error");
  return false;
}

/** Undefined: the person cancelled the test. */
async function tryIt(ctx: PiContext, proposal: ProposedServer, ask: Ask): Promise<TriedServer | undefined> {
  if (!ctx.hasUI) return ask("tryServer", proposal);
  const text = `Testing ${serverName(proposal.name)}. A package that npm must fetch first may take minutes: the lowest line says how far it is.`;
  try {
    return await whileWaiting(ctx, text, (signal) => ask("tryServer", proposal, signal));
  } catch (error) {
    if (error instanceof ThreadsError && error.code === "cancelled") return undefined;
    throw error;
  }
}

/** Whether the server has answered, and wants a key that its entry does not have. */
const lacksKey = (tried: TriedServer): boolean =>
  tried.outcome === "failed" && tried.error.data?.reason === "key-wanted";

/**
 * What follows this test: the server is written or not, or is tried again with a value for the variable that it lacks.
 * `tried`: undefined if the person cancelled it.
 */
async function goesOn(
  ctx: PiContext,
  { name, entry }: AddWords,
  tried: TriedServer | undefined,
): Promise<"yes" | "no" | { wanted: string }> {
  if (tried && tried.outcome !== "failed") return "yes";
  const text = tried ? triedText(name, tried) : `The test of ${serverName(name)} is cancelled.`;
  if (!ctx.hasUI) {
    sayRefused(ctx, "failed", text, "error");
    return "no";
  }
  const yes = tried && lacksKey(tried) ? WITH_KEY : ANYWAY;
  const wanted = tried?.outcome === "failed" ? wantedVariable(entry, tried.error.message) : undefined;
  const give = wanted === undefined ? [] : [`Say where ${wanted} is, and test it again`];
  const choice = await choose(ctx, text, [...give, NOT, yes]);
  if (choice === yes) return "yes";
  return wanted !== undefined && choice !== undefined && give.includes(choice) ? { wanted } : "no";
}

/** Whether the project's file is to be written; undefined: none is. `lead`: what the person reads first. */
async function whichFile(
  ctx: PiContext,
  { name, entry, project, saysWhere }: AddWords,
  { lead, file }: { lead: string; file: string },
  ask: Ask,
): Promise<boolean | undefined> {
  if (!ctx.hasUI || saysWhere || !ctx.isProjectTrusted()) return project;
  // A file of the project that cannot be changed is no choice.
  const of = await ask("previewServer", { name, entry, project: true }).catch(() => undefined);
  const mine = `For you: ${file}`;
  const projects = of && `For this project: ${of.file}`;
  const choice = await choose(ctx, `${lead}\nAdd it where?`, [mine, ...(projects ? [projects] : []), CANCEL]);
  return choice === mine ? false : choice !== undefined && choice === projects ? true : undefined;
}

/** A server may lack one variable after the other. */
const TRIALS = 5;

interface Tested {
  tried: TriedServer | "untested";
  /** With the values that the server turned out to lack. */
  entry: ServerEntry;
}

/** The tick for a sandbox, with what it means for this server. */
function roomTick(name: string, entry: ServerEntry): { label: string; sandbox: JsonValue } {
  const known = knownServer(name);
  const works = known?.sandbox !== undefined && known.entry.command === entry.command;
  const why = works ? "; it works in one" : "";
  return {
    label: `In a sandbox, which hides your keys and sign-ins from it${why}`,
    sandbox: works && known.sandbox !== undefined ? known.sandbox : true,
  };
}

const TICKS = 100;

/** Shows what would run, which a sandbox may change. Undefined: the person goes back. */
async function confirmed(
  ctx: PiContext,
  { name, entry, project }: AddWords,
  preview: ServerPreview,
  ask: Ask,
): Promise<{ entry: ServerEntry; tests: boolean } | undefined> {
  const { label, sandbox } = roomTick(name, entry);
  let isTicked = false;
  let shown = preview;
  for (let times = 0; times < TICKS; times++) {
    const tick = preview.lacksRoom ? [`[${isTicked ? "x" : " "}] ${label}`] : [];
    const title = `Add ${serverName(name)}?\n${runsText(shown)}`;
    const choice = await choose(ctx, title, [TEST, NO_TEST, ...tick, CANCEL]);
    const chosen = isTicked ? { ...entry, sandbox } : entry;
    if (choice === TEST || choice === NO_TEST) return { entry: chosen, tests: choice === TEST };
    if (choice === undefined || choice === CANCEL) return undefined;
    isTicked = !isTicked;
    shown = isTicked ? await ask("previewServer", { name, entry: { ...entry, sandbox }, project }) : preview;
  }
  return undefined;
}

/** The test before the server is added; a person may leave it out. Undefined: the server is not to be added. */
async function test(
  ctx: PiContext,
  words: AddWords,
  preview: ServerPreview,
  ask: Ask,
): Promise<Tested | undefined> {
  const { name } = words;
  let { entry } = words;
  if (ctx.hasUI) {
    const choice = await confirmed(ctx, words, preview, ask);
    if (!choice?.tests) return choice && { tried: "untested", entry: choice.entry };
    entry = choice.entry;
  }
  for (let trial = 0; trial < TRIALS; trial++) {
    const tried = await tryIt(ctx, { ...words, entry }, ask);
    const next = await goesOn(ctx, { ...words, entry }, tried);
    if (next === "yes") return { tried: tried ?? "untested", entry };
    const filled = next === "no" ? undefined : await askVariable(ctx, { name, entry, ...next }, ask);
    if (filled === undefined) return undefined;
    entry = filled;
  }
  return undefined;
}

const DIVIDE = "Divide it";
const AS_IT_IS = "Leave it: it is one path";

/** `"command": "npx -y pkg"` as command and arguments, if the person agrees. */
async function divided(ctx: PiContext, { name, entry }: AddWords): Promise<ServerEntry> {
  const { command, args = [] } = entry;
  if (!ctx.hasUI || typeof command !== "string" || !Array.isArray(args)) return entry;
  const split = splitWords(command.trim());
  if ("problem" in split || split.words.length < 2) return entry;
  const [first = "", ...rest] = split.words;
  const title = `The command of ${serverName(name)} holds its arguments too, and no shell reads it:\n${command}`;
  const choices = /[\\/]/.test(first) ? [AS_IT_IS, DIVIDE] : [DIVIDE, AS_IT_IS];
  const choice = await choose(ctx, title, choices);
  return choice === DIVIDE ? { ...entry, command: first, args: [...rest, ...args] } : entry;
}

/** `ask`, and the files of the values that it has kept. */
function keeping(ask: Ask): { ask: Ask; files: string[] } {
  const files: string[] = [];
  return {
    files,
    ask: async (method, params, signal) => {
      const answer = await ask(method, params, signal);
      if (method === "keepValue") files.push((answer as ConnectionMethods["keepValue"]["value"]).file);
      return answer;
    },
  };
}

/** Asks for what the entry lacks, shows it, tries it and writes it. What was typed for it is kept only if it is written. */
export async function add(ctx: PiContext, given: AddWords, worker: Ask): Promise<void> {
  const { ask, files } = keeping(worker);
  let tried: Tested["tried"] | undefined;
  try {
    tried = await addOrLeave(ctx, given, ask);
  } finally {
    if (tried === undefined && files.length > 0) await worker("dropValues", { files });
  }
  if (ctx.hasUI && tried && tried !== "untested" && lacksKey(tried))
    await askKey(ctx, { server: given.name, why: `${serverName(given.name)} is added.` }, worker);
}

/** Undefined: nothing is written. */
async function addOrLeave(ctx: PiContext, given: AddWords, ask: Ask): Promise<Tested["tried"] | undefined> {
  const { name, project } = given;
  const shown = serverName(name);
  const unchanged = (): undefined => {
    say(ctx, `${shown} is not added; no file has changed.`, "info");
  };
  const whole = await divided(ctx, given);
  const before = await ask("previewServer", { name, entry: whole, project });
  if (!(await mayReplace(ctx, given, before))) return unchanged();
  const entry = await askValues(ctx, { name, entry: whole }, ask);
  if (!entry) return unchanged();
  const words: AddWords = { ...given, entry };
  const preview = entry === whole ? before : await ask("previewServer", { name, entry, project });
  if (!isUsable(ctx, name, preview)) return undefined;
  const tested = await test(ctx, words, preview, ask);
  if (tested === undefined) return unchanged();
  const { tried } = tested;
  // The person has read a failure, and has said that the server is added all the same.
  const result = tried === "untested" || tried.outcome === "failed" ? "" : triedText(name, tried);
  const lead = result || `${shown} ${tried === "untested" ? "was not tested" : "did not connect"}.`;
  const isProject = await whichFile(ctx, words, { lead, file: preview.file }, ask);
  if (isProject === undefined) return unchanged();
  const replace = words.replace || preview.exists !== undefined;
  const params = { name, entry: tested.entry, project: isProject, ...(replace ? { replace } : {}) };
  const added = await ask("addServer", params);
  say(ctx, [addedText(name, added), ...(result === "" ? [] : [result])].join("\n"), "info");
  return tried;
}
