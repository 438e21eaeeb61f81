/**
 * The subcommands of `/mcp` that set servers up: `add`, `import`, `remove` and `edit`. Owns: what the person is asked, in which
 * order, and what happens without a person. Must not: decide about an entry or a file; the worker does.
 */

import type { PiContext } from "../../pi/api.ts";
import { serverName } from "../../report/server-name.ts";
import {
  fileText,
  foundText,
  hostText,
  importsText,
  isOthers,
  othersText,
  removedText,
  takenText,
} from "../../report/setup.ts";
import { unknownText } from "../../report/status.ts";
import { parseKnown } from "../../shared/known-servers.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import type { FoundFile, FoundHost, FoundServer, TakenImports } from "../../shared/protocol/person.ts";
import { ADD_USAGE, type AddWords, type parseAdd } from "../../shared/setup.ts";
import { counted } from "../../shared/text/amounts.ts";
import { describeProblem } from "../../shared/text/failure.ts";
import { BOM } from "../../shared/text/reading.ts";
import { splitWords } from "../../shared/text/split-words.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { say, sayRefused } from "../say.ts";
import { tickLines } from "../ticks.ts";
import { whileTyped } from "../typing.ts";
import { add } from "./add.ts";
import { type Ask, choose } from "./dialog.ts";
import { asWritten } from "./edited-text.ts";
import { askWords, withName } from "./steps.ts";

const USAGE = ADD_USAGE.replace(/^add /gm, "/mcp add ");

/** `[name] {...}` as it is pasted: its quotes are those of the JSON. */
function asJson(rest: string): { words: string[] } | undefined {
  const [, name, json] = /^([^\s'"{}]+\s+)?(\{.*\})$/s.exec(rest) ?? [];
  return json === undefined
    ? undefined
    : { words: [...(name === undefined ? [] : [name.trim()]), "--", json] };
}

/** `rest`: the text after the subcommand; without one the person is asked step by step. */
export async function addServer(rest: string, ctx: PiContext, ask: Ask): Promise<void> {
  if (rest === "") {
    if (!ctx.hasUI) return sayRefused(ctx, "unusable", USAGE);
    const words = await askWords(ctx);
    if (words === undefined) return say(ctx, "Nothing is added.", "info");
    return Array.isArray(words) ? addSeveral(ctx, words, ask) : add(ctx, words, ask);
  }
  const split = asJson(rest) ?? splitWords(rest);
  const parsed: ReturnType<typeof parseAdd> = "problem" in split ? split : parseKnown(split.words);
  if ("add" in parsed) return add(ctx, parsed.add, ask);
  const { named, several } = parsed.instead ?? {};
  if (!ctx.hasUI || !(named ?? several)) return sayRefused(ctx, "unusable", `${parsed.problem}\n${USAGE}`);
  if (several) return addSeveral(ctx, several, ask);
  const words = named && (await withName(ctx, named));
  return words ? add(ctx, words, ask) : say(ctx, "Nothing is added.", "info");
}

/** The servers of one JSON text: those that are ticked are added one after the other. */
async function addSeveral(ctx: PiContext, all: readonly AddWords[], ask: Ask): Promise<void> {
  const lineOf = ({ name, entry: { command, args, url } }: AddWords): string => {
    const words = Array.isArray(args) ? args.filter((word) => typeof word === "string") : [];
    return oneLine(`${serverName(name)}: ${url ?? [command, ...words].join(" ")}`, RPC_COLUMNS);
  };
  const ticked = await tickLines(ctx, {
    title: `The JSON holds ${counted(all.length, "server")}. Add which? Choose a line to change it.`,
    rows: all.map((words, at) => `${at + 1}. ${lineOf(words)}`),
    ticked: all.map(() => true),
    done: (count) => (count > 0 ? `Add ${counted(count, "server")}` : undefined),
    doneFirst: true,
    back: BACK,
  });
  if (!ticked) return say(ctx, "Nothing is added.", "info");
  for (const words of all.filter((_, at) => ticked[at])) await add(ctx, words, ask);
}

const KEEP = "No, go back";
const REMOVE = "Remove it";

export async function removeServer(name: string, ctx: PiContext, ask: Ask): Promise<void> {
  let file: string | undefined;
  if (ctx.hasUI) {
    const { servers, problems, refused, questions } = await ask("status", {});
    const found = servers.find((server) => server.name === name);
    file = found?.source;
    const isMentioned =
      file !== undefined ||
      problems.some(({ key = "" }) => `${key.replace(/^[^.]*\./, "")}.`.startsWith(`${name}.`)) ||
      [...refused.map((one) => one.name), ...questions.map(({ server }) => server)].includes(name);
    if (!isMentioned) {
      return say(
        ctx,
        unknownText(
          serverName(name),
          servers.map((server) => server.name),
        ),
        "warning",
      );
    }
    const place = file ?? "the file that defines it";
    const text = `Remove ${serverName(name)}?\nIts entry is taken out of ${place}. To keep the entry: /mcp disable.`;
    // Enter at once changes nothing. What cannot be removed is not asked about: the worker says why.
    const answer = found?.isForeign ? REMOVE : await choose(ctx, text, [KEEP, REMOVE]);
    if (answer !== REMOVE) return say(ctx, `${serverName(name)} stays.`, "info");
  }
  const removed = await ask("removeServer", { server: name, ...(file === undefined ? {} : { file }) });
  say(ctx, removedText(name, removed), "info");
}

/** Opens the user's file, or the project's, in Pi's editor. Answers in a sentence what became of it. */
export async function editConfig(project: boolean, ctx: PiContext, ask: Ask): Promise<string> {
  const { file, text: before } = await ask("readConfig", { project });
  // An editor may show a BOM as a character, or drop it, so the editor gets the text without it.
  const bom = before.startsWith(BOM) ? BOM : "";
  const text = before.slice(bom.length);
  if (!ctx.hasUI) return `Edit ${file}; the change is applied when it is saved.`;
  let title = file;
  const start = text.trim() === "" ? '{\n  "mcpServers": {}\n}\n' : text;
  let shown = start;
  for (let times = 0; times < CHOICES; times++) {
    const typed = await whileTyped(ctx, ctx.ui.editor(title, shown));
    const edited = typed === undefined ? start : asWritten(typed, start);
    const isNothing = edited.trim() === "" && text.trim() === "";
    if (typed === undefined || edited === start || isNothing) break;
    const saved = writeOver(ctx, { project, before, text: bom + edited }, ask);
    const problem = await saved.catch((error: unknown) => messageOf(error));
    if (problem === undefined) return `${file} is written.`;
    // What was typed comes back, so that nothing of it is lost.
    title = `Not saved yet: ${problem} Escape leaves the file as it is.`;
    shown = typed;
  }
  return title === file ? `${file} is unchanged.` : `${file} stays as it is: what you typed is not saved.`;
}

const GO_ON = "Go on editing mine";
const OVER = "Write mine over it";
const SHOW = "Show the file as it is now";

/** Writes the text, over what another program has saved meanwhile only after a yes. Answers why it is not written. */
async function writeOver(
  ctx: PiContext,
  edited: { project: boolean; before: string; text: string },
  ask: Ask,
): Promise<string | undefined> {
  let { before } = edited;
  for (let times = 0; times < CHOICES; times++) {
    const { file, problem, now } = await ask("writeConfig", { ...edited, before });
    if (now === undefined) return problem && `${file}: ${problem}`;
    const changed = `${file} has changed while you edited it.`;
    const asked = await choose(ctx, changed, [GO_ON, OVER, SHOW]);
    const choice = asked === SHOW ? await choose(ctx, `${changed} Now it is:\n${now}`, [GO_ON, OVER]) : asked;
    if (choice !== OVER) break;
    before = now;
  }
  return "the file has changed meanwhile.";
}

const ALL = "Use its file (changes there count here too)";
const SOME = "Copy some of its servers into your own file";
const BACK = "Back";
const PLAIN = "Copy them as they are";
const ROOM = "Copy them with a sandbox";
const NAMES_CHARS = 1_000;
const CHOOSE = "Choose it";
const LEAVE = "Leave it";
/** Over RPC a program may answer every dialog at once, for ever. */
const CHOICES = 1_000;
/** Servers of one program above the choice what becomes of them. */
const BRIEF_SERVERS = 20;
const RPC_COLUMNS = 200;

interface Candidate {
  server: FoundServer;
  file: FoundFile;
  chosen: boolean;
}

const candidatesOf = (host: FoundHost): Candidate[] =>
  host.files.flatMap((file) =>
    file.servers
      .filter(({ id }) => id !== undefined)
      .map((server) => ({
        server,
        file,
        chosen: server.standing === "new" && !isOthers(file),
      })),
  );

/** Whether it may be chosen. What a project's file would run is shown whole first. */
async function mayChoose(ctx: PiContext, { server, file }: Candidate): Promise<boolean> {
  return !isOthers(file) || (await choose(ctx, othersText(server, file), [LEAVE, CHOOSE])) === CHOOSE;
}

/** The ids of the chosen servers; undefined: the person went back. */
async function pick(ctx: PiContext, host: FoundHost): Promise<string[] | undefined> {
  const candidates = candidatesOf(host);
  const ticked = await tickLines(ctx, {
    title: `Which servers of ${host.title}? Choose a line to change it.`,
    rows: candidates.map(({ server }, at) => `${at + 1}. ${foundText(server, RPC_COLUMNS)}`),
    ticked: candidates.map(({ chosen }) => chosen),
    done: (count) => (count > 0 ? `Copy ${counted(count, "server")}` : undefined),
    doneFirst: true,
    mayTick: async (at) => {
      const candidate = candidates[at];
      return candidate !== undefined && mayChoose(ctx, candidate);
    },
    back: BACK,
  });
  return ticked && candidates.flatMap(({ server: { id } }, at) => (ticked[at] ? (id ?? []) : []));
}

/** What this program would bring: its files and their first servers. */
function briefOf(host: FoundHost): string {
  let room = BRIEF_SERVERS;
  const lines = host.files.flatMap((file) => {
    const shown = file.servers.slice(0, room);
    room -= shown.length;
    const more = file.servers.length + file.more - shown.length;
    return [
      fileText(file),
      ...shown.map((server) => `  ${foundText(server)}`),
      ...(more > 0 ? [`  and ${more.toLocaleString("en")} more`] : []),
    ];
  });
  return [hostText(host), ...lines].join("\n");
}

async function takeFrom(ctx: PiContext, found: FoundHost, ask: Ask): Promise<TakenImports | undefined> {
  const choices = [...(found.imported ? [] : [ALL]), ...(candidatesOf(found).length > 0 ? [SOME] : []), BACK];
  const how = await choose(ctx, briefOf(found), choices);
  if (how === ALL) return ask("takeImports", { how: "imports", hosts: [found.host] });
  const ids = how === SOME ? await pick(ctx, found) : undefined;
  if (!ids) return undefined;
  const fetched = candidatesOf(found).filter(
    ({ server: { id, lacksRoom } }) => lacksRoom && id !== undefined && ids.includes(id),
  );
  const inRoom = fetched.length === 0 ? PLAIN : await choose(ctx, roomText(fetched), [PLAIN, ROOM]);
  return inRoom && ask("takeImports", { how: "copy", ids, ...(inRoom === ROOM ? { sandbox: true } : {}) });
}

function roomText(fetched: readonly Candidate[]): string {
  const names = fetched.map(({ server }) => serverName(server.name)).join(", ");
  return `These come from a registry of packages: ${oneLine(names, NAMES_CHARS)}.\nIn a sandbox they cannot read your keys and sign-ins, and write only their own files.`;
}

export async function importServers(ctx: PiContext, ask: Ask): Promise<void> {
  if (!ctx.hasUI) {
    const found = await ask("findImports", {});
    const names = found.hosts.filter(({ imported }) => !imported).map(({ host }) => host);
    const list = names.map((name) => JSON.stringify(name)).join(", ");
    const remedy = `To use them, run pi-mcp-threads import ${names.join(" ")}, or add ${list} to "imports" in ${found.file}, or run /mcp import in Pi.`;
    return say(ctx, [importsText(found), ...(names.length > 0 ? [remedy] : [])].join("\n"));
  }
  let isFirst = true;
  for (let times = 0; times < CHOICES; times++) {
    const found = await ask("findImports", {});
    if (isFirst && found.problems.length > 0)
      say(ctx, found.problems.map(describeProblem).join("\n"), "warning");
    isFirst = false;
    if (found.hosts.length === 0) return say(ctx, importsText({ ...found, problems: [] }), "info");
    const rows = found.hosts.map(hostText);
    const choice = await choose(ctx, "Import from which program?", [...rows, "Done"]);
    const chosen = choice === undefined ? undefined : found.hosts[rows.indexOf(choice)];
    if (!chosen) return;
    const taken = await takeFrom(ctx, chosen, ask);
    if (taken) say(ctx, takenText(taken), taken.left.length > 0 || taken.notes ? "warning" : "info");
  }
}
