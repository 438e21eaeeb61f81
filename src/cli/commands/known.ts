/**
 * The catalog that a command works with: the snapshot of the last session in this folder, or, if there is none or
 * `--refresh` is given, what the servers answer now.
 */

import type { Catalog, CatalogTool } from "../../catalog/catalog.ts";
import { createCatalogStore, snapshotIsOlder, snapshotWrittenAt } from "../../catalog/store.ts";
import { nameLine } from "../../report/search.ts";
import { serverName } from "../../report/server-name.ts";
import { isOfWholeFile } from "../../report/status.ts";
import type { ServerStatus, StatusReport } from "../../shared/protocol/session.ts";
import { durationText } from "../../shared/text/amounts.ts";
import { describeProblem } from "../../shared/text/failure.ts";
import type { Console } from "../console/console.ts";
import { asFailure, EXIT, Failure, usage } from "../console/failure.ts";
import { failureOf, isTrusted, leftOutServers, type Place } from "../place/place.ts";
import type { CliSession, Stays } from "../session/session.ts";
import { didYouMean, type Options } from "../words/parse.ts";

export interface Context {
  console: Console;
  place: Place;
  options: Options;
  arguments: readonly string[];
  /** Aborts when the command ends before its time. */
  signal: AbortSignal;
  /** The worker's session, which starts with the first call. Main ends it. `stays`: counts in the first call. */
  session(stays?: Stays): Promise<CliSession>;
  /** All of stdin up to a limit; undefined if there is more. */
  stdin(): Promise<Buffer | undefined>;
  /** From now on a signal does not end the command, and goes to `taker`. */
  takeSignals(taker: (signal: NodeJS.Signals) => void): void;
}

/** Answers the exit code, which is one of `EXIT` but for a program that the command runs; a failure is thrown. */
export type Command = (context: Context) => Promise<number>;

export interface Known {
  catalog: Catalog;
  /** When the snapshot was written, in milliseconds since the epoch; undefined: the servers were asked now. */
  writtenAt: number | undefined;
  /** The state of the servers, if the worker was asked. */
  report: StatusReport | undefined;
}

/** The snapshot without servers that this folder may not show; undefined if there is none. */
export function fromSnapshot({ place }: Context): Known | undefined {
  const store = createCatalogStore(place.agentDir, place.key);
  if (store.checksum() === undefined) return undefined;
  const foreign = store.current().servers.filter(({ project }) => project && !isTrusted(place));
  if (foreign.length > 0) store.leaveOut({ servers: foreign.map(({ name }) => name), tools: [] });
  const writtenAt = snapshotWrittenAt(place.agentDir, place.key);
  return { catalog: store.current(), writtenAt, report: undefined };
}

/** `exact`: a name that is merely alike would be another server's. */
type Naming = "exact" | "alike";

/** A server that no file has is a mistake of the file if the worker says so. */
async function connectNamed(session: CliSession, server: string, { problems }: StatusReport): Promise<void> {
  try {
    await session.connect(server);
  } catch (error) {
    const { code, message, remedy, exitCode } = asFailure(error);
    const isOfFile = code === "unknown_server" && problems.some(({ file }) => remedy?.includes(file));
    throw new Failure(isOfFile ? EXIT.configuration : exitCode, message, {
      remedy,
      code: isOfFile ? "bad_config" : code,
    });
  }
}

/** Connects the server, or all that are on, or, for a first look, those whose tools are unknown. */
async function fromServers(context: Context, written: string | undefined, naming: Naming): Promise<Known> {
  const { console, options } = context;
  const isUnknown = ({ toolsKnown, state }: ServerStatus): boolean => !toolsKnown && state !== "disabled";
  const wants = written !== undefined || options.refresh ? "all" : isUnknown;
  const { session, server, report } = await asked(context, written, wants, naming);
  for (const { name } of server === undefined ? report.servers : []) {
    const failure = failureOf(report, name);
    if (failure === undefined) continue;
    console.warn(failure.startsWith(`${name}: `) ? failure : `${serverName(name)}: ${failure}`);
  }
  // Without a change the worker sends no catalog: the store still has the one of the file.
  return { catalog: session.store.current(), writtenAt: undefined, report };
}

/**
 * `server`: the only one that matters. A snapshot without it may be older than the file, so the file is asked; so it is where
 * there is no server at all, since it may say why.
 */
export async function knownCatalog(
  context: Context,
  server?: string,
  naming: Naming = "alike",
): Promise<Known> {
  const snapshot = context.options.refresh ? undefined : fromSnapshot(context);
  const names = snapshot?.catalog.servers.map(({ name }) => name) ?? [];
  const isThere = server === undefined ? names.length > 0 : fitting(names, server, naming) !== undefined;
  return snapshot && isThere ? snapshot : await fromServers(context, server, naming);
}

/** The same, where nothing that is known of the named server could be shown if it was never connected. */
export async function knownTools(
  context: Context,
  written: string | undefined,
): Promise<{ known: Known; server: string | undefined }> {
  const known = await knownCatalog(context, written);
  if (written === undefined) return { known, server: undefined };
  const server = knownServer(known, written);
  const isUnknown = known.catalog.servers.some(({ name, toolsKnown }) => name === server && !toolsKnown);
  if (!isUnknown || known.writtenAt === undefined) return { known, server };
  const now = await knownCatalog({ ...context, options: { ...context.options, refresh: true } }, server);
  return { known: now, server: knownServer(now, server) };
}

/** The code of an answer about all servers: that of a file of which nothing counts. */
export const codeOf = ({ problems }: StatusReport): typeof EXIT.ok | typeof EXIT.configuration =>
  problems.some(isOfWholeFile) ? EXIT.configuration : EXIT.ok;

/** The end of an answer about all servers: a line for each mistake that hides one, and the code. `report`: as in `Known`. */
export function endOfAll({ console }: Context, report: StatusReport | undefined): ReturnType<typeof codeOf> {
  if (report === undefined) return EXIT.ok;
  const errors = report.problems.filter(({ severity }) => severity === "error");
  for (const problem of errors) console.warn(describeProblem(problem));
  return codeOf(report);
}

/**
 * Says what the snapshot cannot answer: how old it is, whether the configuration has changed since, and, in an answer about all
 * servers (`server` is undefined), which ones were never reached.
 */
export function noteAge(
  { console, place }: Context,
  { catalog, writtenAt }: Known,
  { server, always }: { server: string | undefined; always: boolean },
): void {
  if (writtenAt === undefined) return;
  const unknown = catalog.servers.filter(({ toolsKnown }) => server === undefined && !toolsKnown);
  for (const line of nameLine(
    "Nothing is known yet of these servers, and --refresh asks them",
    unknown.map(({ name }) => name),
  )) {
    console.note(line);
  }
  const { agentDir, key } = place;
  if (snapshotIsOlder(agentDir, key, catalog.settings.files)) {
    console.note("The configuration has changed since these tools were listed. --refresh lists them again.");
  } else if (always) {
    console.note(
      `From the last look, ${durationText(Date.now() - writtenAt)} ago. --refresh asks the servers.`,
    );
  }
}

/** The name that is meant: the same, or one that differs in case and punctuation only. */
function fitting(names: readonly string[], written: string, naming: Naming): string | undefined {
  if (naming === "exact" || names.includes(written)) return names.find((name) => name === written);
  const plain = (name: string): string => name.toLowerCase().replaceAll(/[\s_\-./:]/g, "");
  return names.find((name) => plain(name) === plain(written));
}

/** All servers that the files name, also those that may not run yet. */
export const serversOf = ({ servers, questions, refused }: StatusReport): string[] => [
  ...new Set([
    ...servers.map(({ name }) => name),
    ...questions.map(({ server }) => server),
    ...refused.map(({ name }) => name),
  ]),
];

/** The name as it is configured; throws a failure with the nearest name for any other. */
export function knownServer({ catalog, report }: Known, written: string, naming: Naming = "alike"): string {
  // A snapshot may know servers that the files no longer name.
  const names = report ? serversOf(report) : catalog.servers.map(({ name }) => name);
  const found = fitting(names, written, "alike");
  if (naming === "exact" && found !== undefined && found !== written) {
    throw usage(
      `No server named ${serverName(written)} is configured.`,
      `One is named ${serverName(found)}. This command needs the exact name.`,
    );
  }
  if (found !== undefined) return found;
  const list = [...new Set(names)].slice(0, 50).map(serverName).join(", ");
  throw new Failure(
    EXIT.usage,
    `No server named ${serverName(written)} is configured.${didYouMean(written, names)}`,
    { code: "unknown_server", remedy: `Configured: ${list || "none"}. pi-mcp-threads list shows more.` },
  );
}

export const toolRecord = ({ name, server, tool, description }: CatalogTool) => ({
  name,
  server: server.name,
  tool,
  description,
});

/** Throws if the named server was asked now and could not be reached. */
export function reachedOrThrow(report: StatusReport | undefined, server: string): void {
  const { state, error } = report?.servers.find(({ name }) => name === server) ?? {};
  if (!error) return;
  const { code, message, remedy, data } = error;
  throw new Failure(state === "needs-auth" ? EXIT.signIn : EXIT.unreachable, message, { code, remedy, data });
}

/** The session, and the configured name of a server that may wait for consent or be off. */
export async function configured(
  context: Context,
  written: string,
  naming: Naming = "alike",
): Promise<{ session: CliSession; server: string; planned: StatusReport }> {
  const session = await context.session();
  const planned = await session.planned();
  const { questions, refused, problems } = planned;
  const withheld = [...questions.map(({ server }) => server), ...refused.map(({ name }) => name)];
  // The worker explains a name that no readable file has.
  const isLeft = withheld.includes(written) || problems.some(({ severity }) => severity === "error");
  const known: Known = { catalog: session.store.current(), writtenAt: undefined, report: planned };
  return { session, server: isLeft ? written : knownServer(known, written, naming), planned };
}

/**
 * The session after a look at servers: the named one may run, and those that `wants` names are connected, or all that are on.
 * `report`: their state then.
 */
export async function asked(
  context: Context,
  written: string | undefined,
  wants: "all" | ((status: ServerStatus) => boolean),
  naming: Naming = "alike",
): Promise<{ session: CliSession; server: string | undefined; report: StatusReport }> {
  const session = await context.session();
  const planned = await session.planned();
  if (written === undefined) {
    for (const line of leftOutServers(planned)) context.console.note(line);
    const wanted = wants === "all" ? undefined : planned.servers.filter(wants).map(({ name }) => name);
    if (wanted?.length !== 0) await session.connectAll(wanted);
    return { session, server: undefined, report: await session.status() };
  }
  const { server } = await configured(context, written, naming);
  await session.allow(server);
  const status = (await session.status()).servers.find(({ name }) => name === server);
  // The worker explains the name of a server that is not there.
  if (!status || wants === "all" || wants(status)) await connectNamed(session, server, planned);
  return { session, server, report: await session.status() };
}
