/** What servers offer beside tools: `resources`, `read`, `prompts`, `prompt`, `complete`, `skills` and `skill`. */
import { serverName } from "../../report/server-name.ts";
import { skillLine } from "../../report/skills.ts";
import { SKILL_BY_ADDRESS } from "../../shared/naming.ts";
import {
  type CallResult,
  decode,
  type ServerResources,
  type ServerSkills,
} from "../../shared/protocol/calls.ts";
import type { ConnectionMethods } from "../../shared/protocol/contract.ts";
import type { SnapshotPrompt, SnapshotServer } from "../../shared/snapshot/contract.ts";
import { counted } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { cutTo } from "../../shared/text/width.ts";
import type { Console } from "../console/console.ts";
import { EXIT, usage } from "../console/failure.ts";
import { didYouMean } from "../words/parse.ts";
import { printResult } from "./call.ts";
import {
  asked,
  type Command,
  type Context,
  endOfAll,
  knownCatalog,
  knownServer,
  noteAge,
  reachedOrThrow,
} from "./known.ts";

const CHARS = 300;

const argumentsOf = ({ arguments: given = [] }: SnapshotPrompt): string =>
  given.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`)).join(" ");

/** What a server offers: for a program cells with tabs, for a person lines below the server's name. */
function offered(
  console: Console,
  server: string,
  count: string,
  rows: readonly { cells: readonly string[]; line: string }[],
): string[] {
  const name = serverName(server);
  if (!console.isTerminal) return rows.map(({ cells }) => [name, ...cells].join("\t"));
  const lines = rows.map(({ line }) => cutTo(`  ${line}`, console.columns ?? 80));
  return [`${console.paint("bold", name)}: ${count}`, ...lines];
}

/** Without the skills, which are commands as well. */
const promptsOf = ({ prompts = [] }: SnapshotServer): SnapshotPrompt[] =>
  prompts.filter(({ skillTool }) => skillTool === undefined);

function promptLines(server: SnapshotServer, console: Console): string[] {
  const { name } = server;
  const rows = promptsOf(server).map((prompt) => {
    const cells = [prompt.prompt, argumentsOf(prompt), prompt.description ?? ""].map((cell) =>
      oneLine(cell, CHARS),
    );
    const [shown = "", given = "", text = ""] = cells;
    return { cells, line: [shown, given].filter(Boolean).join(" ") + (text && ` - ${text}`) };
  });
  return offered(console, name, counted(rows.length, "prompt"), rows);
}

export const prompts: Command = async (context) => {
  const { console } = context;
  const [written] = context.arguments;
  const known = await knownCatalog(context, written);
  const server = written === undefined ? undefined : knownServer(known, written);
  if (server !== undefined) reachedOrThrow(known.report, server);
  const servers = known.catalog.servers.filter(({ name }) => server === undefined || name === server);
  noteAge(context, known, { server, always: true });
  const document = {
    servers: servers.map((one) => ({ server: one.name, prompts: promptsOf(one) })),
  };
  console.answer(document, () => servers.flatMap((one) => promptLines(one, console)));
  return server === undefined ? endOfAll(context, known.report) : EXIT.ok;
};

function resourceLines({ server, resources, templates }: ServerResources, console: Console): string[] {
  const rows = [...(resources ?? []), ...templates].map(({ uri, title }) => ({
    cells: [uri, title],
    line: `${uri} - ${title}`,
  }));
  const count = resources ? counted(rows.length, "resource") : "its resources are not known";
  return offered(console, server, count, rows);
}

/** The command that lists what a server, or each, offers of a kind. */
const listing =
  <M extends "listResources" | "listSkills">(
    method: M,
    linesOf: (one: ConnectionMethods[M]["value"][number], console: Console) => string[],
  ): Command =>
  async (context) => {
    const { console, options } = context;
    const { session, server, report } = await asked(context, context.arguments[0], (status) =>
      status.state === "disabled" ? false : options.refresh || !status.toolsKnown,
    );
    const known = await session.runtime.ask(method, { server });
    if (server !== undefined) reachedOrThrow(report, server);
    console.answer({ servers: known }, () => known.flatMap((one) => linesOf(one, console)));
    return server === undefined ? endOfAll(context, report) : EXIT.ok;
  };

export const resources = listing("listResources", resourceLines);

function skillLines({ server, skills }: ServerSkills, console: Console): string[] {
  const rows = (skills ?? []).map((skill) => ({
    cells: [skill.name, skill.uri, skill.problem ?? skill.size, skill.description],
    line: skillLine(skill),
  }));
  return offered(
    console,
    server,
    skills ? counted(rows.length, "skill") : "serves none that are known",
    rows,
  );
}

export const skills = listing("listSkills", skillLines);

export const skill: Command = async (context) => {
  const { console, signal } = context;
  const [written, name = "", file] = context.arguments;
  const { session, server = "" } = await asked(context, written, "all", "exact");
  const [known] = await session.runtime.ask("listSkills", { server });
  const listed = known?.skills ?? [];
  const meant = listed.filter((one) => one.uri === name || one.name === name);
  const [found] = meant;
  const isAddress = name.includes(":");
  const shownName = oneLine(name, CHARS);
  if (meant.length > 1) {
    const addresses = meant.map(({ uri }) => oneLine(uri, CHARS)).join(", ");
    throw usage(
      `${serverName(server)} has several skills ${shownName}.`,
      `Name one by its address: ${addresses}.`,
    );
  }
  if (!found && !isAddress) {
    const names = listed.map((one) => one.name);
    const has = `It has: ${oneLine(names.join(", "), 1_000) || "none"}.`;
    throw usage(`${serverName(server)} has no skill ${shownName}.${didYouMean(name, names)}`, has);
  }
  if (found?.problem !== undefined) throw usage(`The skill ${shownName} cannot be loaded: ${found.problem}.`);
  const args = { ...(found ? {} : { uri: name }), ...(file === undefined ? {} : { file }) };
  const tool = found?.tool ?? SKILL_BY_ADDRESS;
  const request = { callId: "cli", server, tool, args, wantsStructured: true, byPerson: true };
  await printResult(await session.runtime.callTool(request, signal), console);
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

/** The prompt as the snapshot knows it, or as its server lists it now. */
async function findPrompt(
  context: Context,
  written: string,
  name: string,
): Promise<{ server: string; prompt: SnapshotPrompt }> {
  const isMeant = ({ prompt, command }: SnapshotPrompt): boolean => prompt === name || command === name;
  const known = await knownCatalog(context, written, "exact");
  const refreshing = { ...context, options: { ...context.options, refresh: true } };
  for (const look of [async () => known, () => knownCatalog(refreshing, written, "exact")]) {
    const now = await look();
    const server = knownServer(now, written, "exact");
    reachedOrThrow(now.report, server);
    const found = now.catalog.servers.find((one) => one.name === server);
    const prompts = found ? promptsOf(found) : [];
    const prompt = prompts.find(isMeant);
    if (prompt) return { server, prompt };
    if (now.writtenAt !== undefined) continue;
    const names = prompts.map((one) => oneLine(one.prompt, CHARS));
    throw usage(
      `${serverName(server)} has no prompt ${oneLine(name, CHARS)}.${didYouMean(name, names)}`,
      `It has: ${oneLine(names.join(", "), 1_000) || "none"}.`,
    );
  }
  throw usage(`${serverName(written)} has no prompt ${oneLine(name, CHARS)}.`);
}

/** `name=value` as the arguments of a prompt, which are all texts. */
function promptValues({ prompt, arguments: declared = [] }: SnapshotPrompt, words: readonly string[]) {
  const names = declared.map(({ name }) => oneLine(name, CHARS));
  const takes = `${oneLine(prompt, CHARS)} takes: ${oneLine(names.join(", "), 1_000) || "no arguments"}.`;
  const values = new Map<string, string>();
  for (const word of words) {
    const at = word.indexOf("=");
    const name = word.slice(0, Math.max(at, 0));
    if (at <= 0) throw usage(`${JSON.stringify(oneLine(word, CHARS))} is not name=value.`, takes);
    if (!declared.some((one) => one.name === name)) {
      throw usage(
        `${oneLine(prompt, CHARS)} has no argument ${oneLine(name, CHARS)}.${didYouMean(name, names)}`,
        takes,
      );
    }
    if (values.has(name)) throw usage(`${oneLine(name, CHARS)} is given twice.`);
    values.set(name, word.slice(at + 1));
  }
  return values;
}

export const prompt: Command = async (context) => {
  const [written = "", name = "", ...words] = context.arguments;
  const found = await findPrompt(context, written, name);
  const values = promptValues(found.prompt, words);
  const missing = (found.prompt.arguments ?? []).filter((one) => one.required && !values.has(one.name));
  if (missing.length > 0) {
    const names = missing.map((one) => oneLine(one.name, CHARS));
    throw usage(`${oneLine(name, CHARS)} needs ${names.join(", ")}.`, `Give ${names[0]}=…`);
  }
  const session = await context.session();
  await session.allow(found.server);
  const args = Object.fromEntries(values);
  const asks = { server: found.server, prompt: found.prompt.prompt, args, wantsStructured: true };
  const bytes = await session.runtime.ask("getPrompt", asks, context.signal);
  await printResult(decode(bytes) as CallResult, context.console);
  return EXIT.ok;
};

export const complete: Command = async (context) => {
  const { console, signal } = context;
  const [written = "", name = "", ...words] = context.arguments;
  const found = await findPrompt(context, written, name);
  const last = words.pop() ?? "";
  const [[argument = "", value = ""] = []] = promptValues(found.prompt, [last]);
  const values = promptValues(found.prompt, words);
  // Only a server that is connected suggests values.
  const { session } = await asked(context, found.server, "all", "exact");
  const asks = { server: found.server, prompt: found.prompt.prompt, argument, value };
  const suggested = await session.runtime.ask(
    "completePrompt",
    { ...asks, context: Object.fromEntries(values) },
    signal,
  );
  console.answer({ values: suggested }, () => suggested.map((one) => oneLine(one, CHARS)));
  if (suggested.length === 0) console.note(`${serverName(found.server)} suggests nothing.`);
  return EXIT.ok;
};
