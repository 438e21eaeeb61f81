/**
 * What each subcommand of `/mcp` does: a file of its own in the build, which main loads with the first command. Owns: a row for
 * each word that the shell does not carry out alike (those are in report/actions.ts), and when words do not fit.
 */
import { randomBytes } from "node:crypto";
import { lstat, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type CatalogTool, inputSchemaOf } from "../../catalog/catalog.ts";
import { nearestTools, resolveTool } from "../../catalog/search.ts";
import type { PiContext } from "../../pi/api.ts";
import { guardStale, notify } from "../../pi/extension.ts";
import { ACTIONS, type ActionName, doneText, isAction, OF_SESSION } from "../../report/actions.ts";
import { renderDoctor, renderIssueReport, surroundingFindings, withFindings } from "../../report/doctor.ts";
import { interruptText } from "../../report/hub.ts";
import { isDisabled, stateNote } from "../../report/search.ts";
import { refusedLine, serverName } from "../../report/server-name.ts";
import { renderSkills } from "../../report/skills.ts";
import {
  absentText,
  configLines,
  isOfWholeFile,
  renderResources,
  renderStatus,
  renderTools,
  unknownText,
} from "../../report/status.ts";
import { renderTool, severalToolsText, unknownToolText } from "../../report/tool.ts";
import { describeThrown, messageOf, ThreadsError } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { ServerStatus, StatusReport } from "../../shared/protocol/session.ts";
import { LOG_FILE } from "../../shared/snapshot/contract.ts";
import { parametersIn } from "../../shared/text/signature.ts";
import { TRUST_IT, unreadFiles, unreadLine } from "../../shared/untrusted.ts";
import type { McpHost } from "../mcp-host.ts";
import { areToldWhole } from "../notices.ts";
import { openPanel } from "../panel/panel.ts";
import { endAs } from "../refuse.ts";
import { say, sayRefused } from "../say.ts";
import { choose } from "../setup/dialog.ts";
import { askedKey } from "../setup/key.ts";
import { addServer, editConfig, importServers, removeServer } from "../setup/setup.ts";
import { tryTool } from "../try/try.ts";
import { withinSession } from "../within-session.ts";
import { helpText, logText, unknownWordText, usageText } from "./help.ts";
import { splitWord, subcommand, WORDS } from "./words.ts";

/**
 * What a session opens as well, seldom enough to be here: lines to tick, and what a skill of a server asks. What completes a
 * command is here, because the command follows.
 */
export { judge } from "../../skills/gate.ts";
export { answerPrompt } from "../sampling/prompt.ts";
export { askAboutSkill } from "../skills/questions.ts";
export { tickLines } from "../ticks.ts";
export { completeMcp, completeServer } from "./complete.ts";

const PROJECT = "--project";
export const REPORT_FILE = "mcp-doctor.md";
/** Only the user may read it. */
const PRIVATE = 0o600;
/** Pi takes no other command while one runs, and npm may fetch a package for minutes. */
const RECONNECT_MS = 4_000;

/** Separates `--project` from the server's name in the text after a subcommand. */
function readOptions(rest: string): { server: string | undefined; project: boolean } {
  const words = rest.split(/\s+/).filter((word) => word !== "");
  const server = words.filter((word) => word !== PROJECT).join(" ");
  return { server: server === "" ? undefined : server, project: words.includes(PROJECT) };
}

/** Pi keeps a cell free on both sides of a notice. In other modes than the TUI no line is too wide. */
const columnsOf = ({ mode }: PiContext): number =>
  mode === "tui" ? (process.stdout.columns ?? 80) - 2 : Number.MAX_SAFE_INTEGER;

/** An answer that says what is wrong with the words. */
function unusable(ctx: PiContext, text: string): string {
  endAs(ctx, "unusable");
  return text;
}

/** Why a configured server offers nothing; undefined if it may, is unknown, or none is named. */
async function absent(server: string | undefined, host: McpHost): Promise<string | undefined> {
  if (server === undefined) return undefined;
  const known = host.servers().find(({ name }) => name === server);
  if (known) return isDisabled(known) ? stateNote(known).join(" ") : undefined;
  return absentText(server, await host.ask("status", {}));
}

/** The status when no server is connecting any more, as a session of one command would end before. */
async function settledStatus({ ask, onChange }: McpHost): Promise<StatusReport> {
  const late = performance.now() + LIMITS.startupTimeoutMs;
  for (;;) {
    const { promise: changed, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, late - performance.now());
    const stop = onChange(() => resolve());
    try {
      const report = await ask("status", {});
      const isSettled = report.servers.every(({ state }) => state !== "connecting");
      if (isSettled || performance.now() >= late) return report;
      await changed;
    } finally {
      clearTimeout(timer);
      stop();
    }
  }
}

const isWrong = ({ state }: ServerStatus): boolean => state === "failed" || state === "needs-auth";

/**
 * Without a person, notices have told before what is wrong in the files. `judged`: the servers that decide the exit code of the
 * command. Absent: all servers and files decide, once no server is connecting, as for `pi-mcp-threads list`.
 */
async function status(ctx: PiContext, host: McpHost, judged?: readonly string[]): Promise<string> {
  const [report, unread] = await Promise.all([
    ctx.hasUI || judged ? host.ask("status", {}) : settledStatus(host),
    unreadIn(ctx),
  ]);
  const { servers, problems } = report;
  const of = judged ? servers.filter(({ name }) => judged.includes(name)) : servers;
  if (of.some(isWrong) || (!judged && problems.some(isOfWholeFile))) endAs(ctx, "failed");
  const isTold = !ctx.hasUI && areToldWhole(configLines(report));
  const text = renderStatus(report, { isTold });
  return unread === undefined ? text : `${text}\n${unread}`;
}

const unreadIn = async (ctx: PiContext): Promise<string | undefined> =>
  unreadLine(
    await unreadFiles({ cwd: ctx.cwd, projectTrusted: ctx.isProjectTrusted() }, { lstat, resolve }),
    TRUST_IT,
  );

/** The servers' lists in words, or why the named server has none. */
async function offered<T>(
  { server, ctx, host }: Pick<Given, "server" | "ctx" | "host">,
  { known, render }: { known: readonly T[]; render: (known: readonly T[]) => string },
): Promise<string> {
  const why = await absent(server, host);
  if (why !== undefined) endAs(ctx, "failed");
  if (why !== undefined || server === undefined || known.length > 0) return why ?? render(known);
  const names = (await plannedServers(host)).map(({ name }) => name);
  return unusable(ctx, unknownText(server, names));
}

/** A session of one command ends before its servers have told what they offer. */
async function settled({ ctx, host }: Pick<Given, "ctx" | "host">): Promise<void> {
  if (!ctx.hasUI) await host.ask("settleTools", { timeoutMs: LIMITS.startupTimeoutMs });
}

/** The tool of this name, or why the name means none. */
async function toolNamed(name: string, ctx: PiContext, host: McpHost): Promise<CatalogTool | string> {
  const found = resolveTool(host.catalog(), name);
  if (found.kind === "tool") return found.tool;
  if (found.kind === "several") return unusable(ctx, severalToolsText(name, found.tools));
  return unusable(ctx, unknownToolText(name, await nearestTools(host.catalog(), name)));
}

async function tool(name: string, ctx: PiContext, host: McpHost): Promise<string> {
  const found = await toolNamed(name, ctx, host);
  if (typeof found === "string") return found;
  return renderTool(found, await host.ask("declaredSchema", { server: found.server.name, tool: found.tool }));
}

const KEEP = "No, go back";
const INTERRUPT = "Reconnect anyway";

/** Whether the person agrees that other sessions are interrupted. Without a person nobody is. */
async function mayInterrupt(
  server: string | undefined,
  ctx: PiContext,
  { servers }: McpHost,
): Promise<boolean> {
  const wanted = servers().filter(({ name }) => server === undefined || name === server);
  const text = interruptText(wanted);
  if (text === undefined) return true;
  if (ctx.hasUI) {
    // Enter at once changes nothing.
    if ((await choose(ctx, text, [KEEP, INTERRUPT])) === INTERRUPT) return true;
    notify(ctx, "Nothing is reconnected.", "info");
    return false;
  }
  const stop = "pi-mcp-threads hub stop <server> ends a shared server for all sessions.";
  sayRefused(ctx, "failed", `Nothing is reconnected, because no one can be asked here: ${text} ${stop}`);
  return false;
}

/** Without a person it waits to the end. */
async function reconnect(server: string | undefined, ctx: PiContext, host: McpHost): Promise<void> {
  if (!(await mayInterrupt(server, ctx, host))) return;
  const done = host
    .ask("reconnect", { server })
    .then(() => status(ctx, host, server === undefined ? undefined : [server]))
    .then((text) => say(ctx, text));
  if (!ctx.hasUI) return done;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), RECONNECT_MS).unref();
  });
  if ((await Promise.race([done, late]).finally(() => clearTimeout(timer))) !== "late") return;
  // The session may be another one by then, and Pi refuses its old objects.
  done.catch((error: unknown) =>
    guardStale(
      () => notify(ctx, `/mcp: ${describeThrown(error)}`, "error"),
      () => undefined,
    ),
  );
  const waits = host
    .servers()
    .flatMap(({ name, waits: text }) =>
      text && (server === undefined || name === server) ? [`${serverName(name)}: ${text}.`] : [],
    );
  notify(ctx, [...waits, "It goes on, and its end is told. /mcp shows it."].join(" "), "info");
}

/** In a terminal the panel shows the form and the result. Without a person nobody can fill the form in. */
async function tryNamed(name: string, ctx: PiContext, host: McpHost): Promise<string | undefined> {
  const found = await toolNamed(name, ctx, host);
  if (typeof found === "string") return found;
  const { tool: own, server } = found;
  const wanted = { server: server.name, tool: own };
  if (ctx.mode === "tui") {
    await openPanel(ctx, host, wanted);
    return undefined;
  }
  if (!ctx.hasUI) {
    endAs(ctx, "failed");
    const takes = parametersIn(inputSchemaOf(found)).length > 0;
    return takes
      ? "Nobody can fill in its arguments here. pi-mcp-threads call takes them in one line."
      : "Nobody can say yes to the call here. pi-mcp-threads call runs it; --yes answers a question of your rules.";
  }
  return tryTool(wanted, ctx, host, { signal: new AbortController().signal });
}

/** Replaces the file in one step, so that a link at its place is replaced and not followed. */
async function writeReport(file: string, text: string): Promise<void> {
  const temp = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await writeFile(temp, text, { mode: PRIVATE, flag: "wx" });
    await rename(temp, file);
  } catch (error) {
    await rm(temp, { force: true });
    throw error;
  }
}

function homely(path: string): string {
  const home = homedir();
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** The findings, and where the report for others is: a private file beside the log. */
async function doctor(server: string | undefined, ctx: PiContext, host: McpHost): Promise<string> {
  const asked = await host.ask("diagnose", server === undefined ? {} : { server });
  const { agentDir, ...around } = host.surroundings();
  const report = withFindings(asked, surroundingFindings(around, homedir()));
  if (report.findings.some(({ severity }) => severity === "error")) endAs(ctx, "failed");
  const file = join(agentDir, REPORT_FILE);
  const shown = homely(file);
  const written = await writeReport(file, renderIssueReport(report)).then(
    () => `A report without secrets, for others to read: ${shown}`,
    (error: unknown) => `The report for others could not be written: ${messageOf(error)}`,
  );
  return `${renderDoctor(report, columnsOf(ctx))}\n${written}`;
}

const NOTHING_TO_ASK =
  "No server of this project or of a package waits for your consent, and none was refused.";

interface Given {
  ctx: PiContext;
  host: McpHost;
  /** The text after the word. */
  rest: string;
  server: string | undefined;
  project: boolean;
}

const switchNow =
  (word: keyof typeof OF_SESSION) =>
  async ({ server = "", host }: Given): Promise<string> =>
    doneText(await OF_SESSION[word].run(host.ask, { server, project: false, words: "", columns: 0 }));

/** Each answers the text of a notice, or anything else if the person has read it already. */
const DO: Readonly<Record<Exclude<keyof typeof WORDS, ActionName>, (given: Given) => Promise<unknown>>> = {
  status: ({ ctx, host }) => status(ctx, host),
  tools: async (given) => {
    await settled(given);
    const { server, host } = given;
    const servers = await plannedServers(host);
    const known = [...servers, ...host.catalog().servers].filter(({ name }) => name === server);
    return offered(given, { known, render: () => renderTools(host.catalog(), servers, server) });
  },
  tool: ({ server = "", ctx, host }) => tool(server, ctx, host),
  resources: async (given) => {
    const known = await given.host.ask("listResources", { server: given.server });
    return offered(given, { known, render: renderResources });
  },
  skills: async (given) => {
    await settled(given);
    const known = await given.host.ask("listSkills", { server: given.server });
    return offered(given, { known, render: renderSkills });
  },
  reconnect: ({ server, ctx, host }) => reconnect(server, ctx, host),
  try: ({ rest, ctx, host }) => tryNamed(rest, ctx, host),
  auth: async ({ server, ctx, host }) => {
    const known = ctx.hasUI ? undefined : (await plannedServers(host)).find(({ name }) => name === server);
    if (known && (known.transport === "stdio" || known.transport === "socket"))
      return unusable(ctx, `${serverName(known.name)} is a local program and needs no sign-in.`);
    return askedKey(await host.signIn(server), ctx, host.ask);
  },
  add: ({ rest, ctx, host }) => addServer(rest, ctx, host.ask),
  import: ({ ctx, host }) => importServers(ctx, host.ask),
  remove: ({ rest, ctx, host }) => removeServer(rest, ctx, host.ask),
  edit: ({ project, ctx, host }) => editConfig(project, ctx, host.ask),
  on: switchNow("on"),
  off: switchNow("off"),
  trust: async ({ ctx, host }) => {
    const unread = await unreadIn(ctx);
    if (unread !== undefined) return unread;
    const { questions, refused } = await host.ask("status", {});
    const asked = questions.length + refused.filter(({ byPerson }) => byPerson).length;
    if (asked > 0) {
      await host.askConsents();
      // A dialog asks, and its answer has its own words.
      return ctx.hasUI ? undefined : status(ctx, host, []);
    }
    return refused.length === 0 ? NOTHING_TO_ASK : refused.map(refusedLine).join("\n");
  },
  logs: async ({ server, ctx, host }) => {
    const { lines } = await host.ask("serverLog", { server, seen: undefined });
    // A server that was removed has lines, too.
    if (lines.length === 0 && server !== undefined) {
      const names = (await plannedServers(host)).map(({ name }) => name);
      const isThere = names.includes(server) || (await absent(server, host)) !== undefined;
      if (!isThere) return unusable(ctx, unknownText(server, names));
    }
    return logText(lines, { server, file: homely(join(host.surroundings().agentDir, LOG_FILE)) });
  },
  help: async ({ ctx }) => helpText(columnsOf(ctx)),
  doctor: ({ server, ctx, host }) => doctor(server, ctx, host),
};

/** Whether the words behind a subcommand have the form that WORDS gives. `add` reads its own words. */
function fits(word: keyof typeof WORDS, { server, project, rest }: Given): boolean {
  if (word === "add") return true;
  if (isAction(word) && ACTIONS[word].takes === "words") return ACTIONS[word].fits?.(rest) === true;
  const form = WORDS[word];
  if (project && word !== "remove" && !form.includes(PROJECT)) return false;
  return server === undefined ? !form.startsWith("<") : /^[<[](server|name)/.test(form);
}

/** The servers; of a session that has just begun those that the worker is reading. */
async function plannedServers({ servers, ask }: McpHost): Promise<ReturnType<McpHost["servers"]>> {
  const known = servers();
  if (known.length > 0) return known;
  return ask("status", {}).then(
    (report) => report.servers,
    () => known,
  );
}

/** Whether no file names the server, so that the words of the command are wrong. */
async function isUnknown(error: unknown, { server, host }: Pick<Given, "server" | "host">): Promise<boolean> {
  if (server === undefined || !(error instanceof ThreadsError) || error.code !== "unknown_server")
    return false;
  return (await absent(server, host).catch(() => undefined)) === undefined;
}

/** `args`: the text after `/mcp`. A failure becomes an error notice; with the session the command ends without a word. */
export async function runMcp(args: string, ofPi: PiContext, host: McpHost): Promise<void> {
  try {
    await withinSession(ofPi, host, (ctx) => run(args, ctx, host));
  } catch (error) {
    const { server } = readOptions(splitWord(args.trim()).rest ?? "");
    const outcome = (await isUnknown(error, { server, host })) ? "unusable" : "failed";
    sayRefused(ofPi, outcome, `/mcp: ${describeThrown(error)}`, "error");
  }
}

async function run(args: string, ctx: PiContext, host: McpHost): Promise<void> {
  const { word: written, rest = "" } = splitWord(args.trim());
  const word = (subcommand(written) || "status") as keyof typeof WORDS;
  const given = { ctx, host, rest: rest.trim(), ...readOptions(rest) };
  if (!Object.hasOwn(WORDS, word)) return sayRefused(ctx, "unusable", unknownWordText(word));
  if (!fits(word, given)) return sayRefused(ctx, "unusable", usageText(word, await plannedServers(host)));
  if (written === "" && ctx.mode === "tui") return openPanel(ctx, host);
  const { server = "", project, rest: words } = given;
  const text = isAction(word)
    ? doneText(await ACTIONS[word].run(host.ask, { server, project, words, columns: columnsOf(ctx) }))
    : await DO[word](given);
  if (typeof text === "string") say(ctx, text);
}
