/**
 * `/mcp import`: what other programs have configured, and what of it is taken over: whole programs by `imports`, or
 * single servers by a copy. A server from a file of the project is shown whole before it can be chosen.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { serverName } from "../../report/server-name.ts";
import { fileText, foundText, hostText, importsText, takenText } from "../../report/setup.ts";
import type { FoundFile, FoundHost, FoundServer, TakenImports } from "../../shared/protocol/setup.ts";
import { counted } from "../../shared/text/counts.ts";
import { describeProblem } from "../../shared/text/problem.ts";
import { cutTo } from "../../shared/text/width.ts";
import { screenOf } from "../screen.ts";
import { choose } from "./dialog.ts";
import type { SetupHost } from "./host.ts";

const ALL = "Use all of them, as that program changes them";
const SOME = "Copy some of them into your own file";
const BACK = "Back";
const CHOOSE = "Choose it";
const LEAVE = "Leave it";
/** Over RPC a program may answer every dialog at once, for ever. */
const CHOICES = 1_000;
/** Servers of one program above the choice what becomes of them. */
const BRIEF_SERVERS = 20;
/** Cells that Pi needs beside a choice. */
const AROUND_COLUMNS = 6;
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
      .map((server) => ({ server, file, chosen: server.standing === "new" && !file.ofProject })),
  );

function rowsOf(ctx: PiContext, candidates: readonly Candidate[]): string[] {
  const columns = (screenOf(ctx)?.columns ?? RPC_COLUMNS) - AROUND_COLUMNS;
  return candidates.map(({ server, chosen }, at) =>
    cutTo(`${chosen ? "[x]" : "[ ]"} ${at + 1}. ${foundText(server, RPC_COLUMNS)}`, columns),
  );
}

/** Chooses a server, or chooses it no longer. What a project's file would run is shown whole first. */
async function toggle(ctx: PiContext, candidate: Candidate): Promise<void> {
  const { server, file } = candidate;
  if (!candidate.chosen && file.ofProject) {
    const text = `${serverName(server.name)} comes from ${file.file}, a file of this project, which others may have written. As your own server it would run in every folder, without another question:\n${server.line}`;
    if ((await choose(ctx, text, [LEAVE, CHOOSE])) !== CHOOSE) return;
  }
  candidate.chosen = !candidate.chosen;
}

/** The ids of the chosen servers; undefined: the person went back. */
async function pick(ctx: PiContext, host: FoundHost): Promise<string[] | undefined> {
  const candidates = candidatesOf(host);
  for (let times = 0; times < CHOICES; times++) {
    const chosen = candidates.filter((one) => one.chosen);
    const copy = `Copy ${counted(chosen.length, "server")}`;
    const rows = rowsOf(ctx, candidates);
    const title = `Which servers of ${host.title}? Choose a line to change it.`;
    const choice = await choose(ctx, title, [...(chosen.length > 0 ? [copy] : []), ...rows, BACK]);
    if (choice === undefined || choice === BACK) return undefined;
    if (choice === copy) return chosen.flatMap(({ server: { id } }) => id ?? []);
    const candidate = candidates[rows.indexOf(choice)];
    if (candidate) await toggle(ctx, candidate);
  }
  return undefined;
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

async function takeFrom(
  ctx: PiContext,
  found: FoundHost,
  host: SetupHost,
): Promise<TakenImports | undefined> {
  const choices = [...(found.imported ? [] : [ALL]), ...(candidatesOf(found).length > 0 ? [SOME] : []), BACK];
  const how = await choose(ctx, briefOf(found), choices);
  if (how === ALL) return host.ask("takeImports", { how: "imports", hosts: [found.host] });
  const ids = how === SOME ? await pick(ctx, found) : undefined;
  return ids && host.ask("takeImports", { how: "copy", ids });
}

export async function importServers(ctx: PiContext, host: SetupHost): Promise<void> {
  if (!ctx.hasUI) {
    const found = await host.ask("findImports", {});
    const remedy = `To use them, write "imports": ["${found.hosts[0]?.host ?? "cursor"}"] into ${found.file}, or run /mcp import in Pi.`;
    return notify(ctx, `${importsText(found)}\n${remedy}`, "info");
  }
  let isFirst = true;
  for (let times = 0; times < CHOICES; times++) {
    const found = await host.ask("findImports", {});
    if (isFirst && found.problems.length > 0)
      notify(ctx, found.problems.map(describeProblem).join("\n"), "warning");
    isFirst = false;
    if (found.hosts.length === 0) return notify(ctx, importsText({ ...found, problems: [] }), "info");
    const rows = found.hosts.map(hostText);
    const choice = await choose(ctx, "Take over the servers of which program?", [...rows, "Done"]);
    const chosen = choice === undefined ? undefined : found.hosts[rows.indexOf(choice)];
    if (!chosen) return;
    const taken = await takeFrom(ctx, chosen, host);
    if (taken) notify(ctx, takenText(taken), taken.left.length > 0 ? "warning" : "info");
  }
}
