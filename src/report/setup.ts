/**
 * What a person reads while servers are set up: what would run, how a trial ended, what was written, what other programs
 * have. Pure.
 */
import { describeErrorOf, wantsKey, withoutServer } from "../shared/protocol/errors.ts";
import type {
  AddedServer,
  DefinedIn,
  EntryMistake,
  FoundFile,
  FoundHost,
  FoundImports,
  FoundServer,
  RemovedServer,
  ServerPreview,
  TakenImports,
  TriedServer,
} from "../shared/protocol/person.ts";
import { counted } from "../shared/text/amounts.ts";
import { describeProblem } from "../shared/text/failure.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { serverName } from "./server-name.ts";

const ERROR_CHARS = 2_000;
const LINE_CHARS = 300;

export const mistakeText = ({ severity, key, message, remedy }: EntryMistake): string => {
  const stop = message.endsWith("?") ? "" : ".";
  return `${severity}: ${key === "" ? "" : `${key}: `}${message}${stop} ${remedy}`;
};

/** What would run or be sent. */
export function runsText({ line, transport }: Pick<ServerPreview, "line" | "transport">): string {
  if (line === undefined) return "What would run is too long to be shown.";
  return transport === "stdio" ? `It would run: ${line}` : `It would connect to: ${line}`;
}

const OWNERS: Readonly<Record<DefinedIn["by"], string>> = {
  user: "your file",
  project: "the project's file",
  import: "another program's file",
  package: "the package's file",
  extension: "the extension",
};

/** For example `your file /home/me/.pi/agent/mcp.json`. */
export const ownerText = ({ by, file }: DefinedIn): string => `${OWNERS[by]} ${file}`;

/** For example `12 tools: read, write and 10 more`. */
function toolsText(count: number, names: readonly string[]): string {
  if (count === 0) return "no tools";
  const more = count - names.length;
  const rest = more > 0 ? ` and ${more.toLocaleString("en")} more` : "";
  return `${counted(count, "tool")}: ${names.join(", ")}${rest}`;
}

const secondsText = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`);

/** How a trial ended, in one line. */
export function triedText(name: string, tried: TriedServer): string {
  const shown = serverName(name);
  switch (tried.outcome) {
    case "connected":
      return `${shown} answers over ${tried.transport} after ${secondsText(tried.tookMs)}, with ${toolsText(tried.toolCount, tried.tools)}.`;
    case "needs-sign-in":
      return `${shown} answers and needs a sign-in. Once it is added: /mcp auth ${shown}`;
    case "failed":
      if (wantsKey(tried.error)) {
        const what = oneLine(withoutServer(name, tried.error.message), ERROR_CHARS);
        return `${shown} answers and wants a key: ${what} Once it is added: /mcp auth ${shown}`;
      }
      return `${shown} did not connect: ${oneLine(describeErrorOf(name, tried.error), ERROR_CHARS)}`;
  }
}

export function addedText(name: string, { file, but }: AddedServer): string {
  return [
    `${serverName(name)} is added to ${file}.`,
    ...(but === undefined ? [] : [oneLine(but, ERROR_CHARS)]),
  ].join(" ");
}

/** What was typed for a server and stays; none: no text. */
export const keptTexts = (kept: readonly string[] = []): string[] =>
  kept.length === 0
    ? []
    : [
        `What you typed for it stays in ${kept.join(" and ")}: the project's file of another branch or worktree may name it.`,
      ];

export function removedText(name: string, { file, also = [], still, values, kept }: RemovedServer): string {
  const shown = serverName(name);
  return [
    `${shown} is removed from ${[file, ...also].join(" and ")}${values ? ", and what you typed for it from mcp-keys" : ""}.`,
    ...(still === undefined ? [] : [`The server ${shown} of ${ownerText(still)} counts now.`]),
    ...keptTexts(kept),
  ].join(" ");
}

const STANDINGS: Readonly<Record<FoundServer["standing"], string>> = {
  new: "new",
  same: "you have it",
  other: "you have another one of this name",
};

/** One found server in one line of at most so many characters. */
export function foundText(
  { name, standing, line, unusable, disabled }: FoundServer,
  chars = LINE_CHARS,
): string {
  const state = [STANDINGS[standing], ...(disabled ? ["disabled there"] : [])].join(", ");
  return oneLine(`${serverName(name)} (${state}): ${line ?? unusable ?? ""}`, chars);
}

/** The file, and whose it is if others may have written it. */
export const ownedFileText = ({ file, ofProject, ofPackage }: FoundFile): string =>
  `${file}${ofProject ? ", a file of this project" : ofPackage ? ", a file of a plugin" : ""}`;

export const isOthers = ({ ofProject, ofPackage }: FoundFile): boolean => ofProject || ofPackage === true;

/** The line that leads to the servers of a file. */
export const fileText = (file: FoundFile): string =>
  `${ownedFileText(file)}: ${counted(file.servers.length + file.more, "server")}`;

/** What the person reads before a server of a file that others may have written becomes their own. */
export const othersText = ({ name, line = "" }: FoundServer, file: FoundFile): string =>
  `${serverName(name)} comes from ${ownedFileText(file)}, which others may have written. As your own server it would run in every folder, without another question:\n${line}`;

const newIn = (host: FoundHost): number =>
  host.files.reduce(
    (sum, { servers }) => sum + servers.filter(({ standing }) => standing === "new").length,
    0,
  );

const allIn = (host: FoundHost): number =>
  host.files.reduce((sum, { servers, more }) => sum + servers.length + more, 0);

/** For example `Cursor: 3 servers, 2 new`. */
export function hostText(host: FoundHost): string {
  const imported = host.imported ? ", imported" : "";
  return `${host.title}: ${counted(allIn(host), "server")}, ${newIn(host)} new${imported}`;
}

/** All that was found, for a list that nobody chooses from. */
export function importsText({ hosts, problems }: FoundImports): string {
  const lines = hosts.flatMap((host) => [
    hostText(host),
    ...host.files.flatMap((file) => [
      `  ${fileText(file)}`,
      ...file.servers.map((server) => `    ${foundText(server)}`),
      ...(file.more > 0 ? [`    and ${file.more.toLocaleString("en")} more`] : []),
    ]),
  ]);
  if (lines.length === 0) lines.push("No other program's configuration of MCP servers was found.");
  return [...lines, ...problems.map(describeProblem)].join("\n");
}

export function takenText({ file, taken, left, notes = [] }: TakenImports): string {
  const names = taken.map(serverName).join(", ");
  return [
    taken.length === 0 ? "Nothing was imported." : `Imported into ${file}: ${names}.`,
    ...left.map(
      ({ name, reason }) => `Left out: ${serverName(name)}, because ${oneLine(reason, LINE_CHARS)}.`,
    ),
    ...notes.map((note) => oneLine(note, ERROR_CHARS)),
  ].join("\n");
}
