/** The requests of the panel of `/mcp`: what a server is and why, its log, and changes of its keys and its tools. */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PanelRequests } from "../../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import {
  type LogLines,
  SERVERS_WORD,
  type ServerDetails,
  type ToolExposure,
  type ToolExposures,
} from "../../../src/shared/protocol/person.ts";
import { LOG_FILE } from "../../../src/shared/snapshot/contract.ts";
import { entryAbout } from "../../../src/shared/text/log.ts";
import { advice } from "../../shared/commands.ts";
import { readEnd } from "../../shared/files/read-regular.ts";
import { isAppOnly } from "../../shared/signs.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { realFile } from "../config/edit/edit.ts";
import {
  decideIn,
  type EffectiveEdit,
  type EntryIn,
  entriesOf,
  exposureEdits,
  findEffectiveFile,
  keyEdit,
  placeOf,
  type SettingChange,
  sourceEdit,
  writtenSource,
} from "../config/edit/setting-change.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { DecidingRule } from "../config/entry/exposure.ts";
import { sandboxOf } from "../config/entry/sandbox.ts";
import type { Server } from "../servers/server.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { allTools, grantedWishes } from "../tools/listed.ts";
import type { SessionRequests } from "./first-request.ts";
import { shownLine } from "./setup.ts";
import { withoutItsValues } from "./typed-values.ts";
import { writeOwn } from "./user-edits.ts";

/** Read from the end of the file. */
const READ_BYTES = 1024 * 1024;
const LINES = 500;
const LINE_CHARS = 1_000;
/** How often a log that somebody looks at is compared with what was seen, and for how long one request waits. */
const LOOK_MS = 400;
const WAIT_MS = 20_000;

/** A line that belongs to the entry before it. */
const CONTINUED = /^ {4}/;

/** `text`: the end of a log; its first line may be cut. */
function linesOf(text: string, server: string | undefined): string[] {
  const fits = entryAbout(server);
  const found: string[] = [];
  let belongs = false;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    if (!CONTINUED.test(line)) belongs = fits(line);
    if (belongs) found.push(line.slice(0, LINE_CHARS).toWellFormed());
  }
  return found.slice(-LINES);
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );

/** `seen`: the size that an earlier answer told. The request then waits until the file has another size. */
async function readLogLines(
  file: string,
  { server, seen }: { server: string | undefined; seen: number | undefined },
  signal: AbortSignal,
): Promise<LogLines> {
  const endsAt = performance.now() + WAIT_MS;
  while (seen !== undefined && (await sizeOf(file)) === seen && performance.now() < endsAt) {
    // Who has left the log needs no answer, and an error would be a line of that log.
    if (signal.aborted) return { lines: [], size: seen };
    await sleep(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
  const read = await readEnd(file, READ_BYTES);
  if (read.kind !== "end") return { lines: [], size: await sizeOf(file) };
  return { lines: linesOf(read.bytes.toString("utf8"), server), size: read.size };
}

type PanelHandlers = Pick<SessionRequests, keyof PanelRequests>;

interface PanelParts {
  started: Promise<RunningConfiguration>;
  supervisor: Pick<Supervisor, "get" | "servers">;
  agentDir: string;
}

interface Judging {
  server: Server;
  /** Its tools that are declared because it wishes so. */
  wished: ReadonlySet<string> | undefined;
  running: RunningConfiguration;
  entries: readonly EntryIn[];
}

function exposuresOf({ server, running, entries, wished }: Judging): ToolExposures {
  const { definition } = server;
  const decide = decideIn(definition, running.now.settings);
  const all: ToolExposures = { names: [], exposures: [], rules: [], places: [] };
  const known = new Map<string, number>();
  const position = (rule: DecidingRule | undefined): number => {
    if (!rule) return -1;
    const key = `${rule.key} ${rule.pattern ?? ""}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    known.set(key, all.places.length);
    return all.places.push(placeOf(rule, entries, definition.file)) - 1;
  };
  const add = (name: string, exposure: ToolExposure, rule: number): void => {
    all.names.push(name);
    all.exposures.push(exposure);
    all.rules.push(rule);
  };
  for (const tool of allTools(server)) {
    const { name } = tool;
    const { exposure, by } = decide(name);
    if (isAppOnly(tool)) add(name, "hidden", SERVERS_WORD.pages);
    else if (wished?.has(name)) add(name, "direct", SERVERS_WORD.wish);
    else add(name, exposure, position(by));
  }
  return all;
}

function timeoutsOf(definition: ServerDefinition): string[] {
  const { idleTimeoutMinutes, requestTimeoutMs, startupTimeoutMs } = definition;
  return [
    ...(requestTimeoutMs === undefined ? [] : [`call ${requestTimeoutMs / 1_000} s`]),
    ...(startupTimeoutMs === undefined ? [] : [`start ${startupTimeoutMs / 1_000} s`]),
    ...(idleTimeoutMinutes === undefined ? [] : [`idle ${idleTimeoutMinutes} min`]),
  ];
}

/** Undefined if no process of it is shared now. */
async function sharedMemory(server: Server): Promise<number | undefined> {
  const { sharing, pid } = server.status();
  if (!sharing || pid === undefined) return undefined;
  const { groupMemory } = await import("../../shared/programs/processes.ts");
  const known = await groupMemory([pid]).catch(() => undefined);
  return known?.get(pid);
}

/** Why sessions cannot share the server; undefined: they can. */
function whyUnshared({ name, target, definedByProject }: ServerDefinition): ThreadsError | undefined {
  const isRemote = target.kind !== "stdio";
  if (!isRemote && !definedByProject) return undefined;
  const why = isRemote
    ? "is one that Pi does not start: each session has a connection of its own"
    : "is defined by a file of this project, and only your own servers can be shared";
  return new ThreadsError("bad_config", `${name} ${why}.`, {
    ...(isRemote ? {} : { remedy: "Define it in your own mcp.json." }),
    data: { server: name },
  });
}

/** The words of the settings. */
function presetsOf({ now: { settings } }: RunningConfiguration): ServerDetails["presets"] {
  const { approve, toolPrefix } = settings;
  return { approve: typeof approve === "string" ? approve : "rules", toolPrefix };
}

async function detailsOf(
  server: Server,
  running: RunningConfiguration,
  servers: readonly Server[],
): Promise<ServerDetails> {
  const { definition, connectedAt } = server;
  const { target, approve, toolPrefix, file, overrides, lifecycle } = definition;
  const entries = await entriesOf(server.name, running.facts);
  const at = entries.findLast((entry) => entry.file === file);
  const memory = await sharedMemory(server);
  const wished = grantedWishes(servers, running.now.settings).get(server.name);
  const sandbox = sandboxOf(definition.sandbox);
  const env = Object.keys("env" in target ? target.env : "headers" in target ? target.headers : {});
  return {
    runs: shownLine(definition, true) ?? "more than can be shown: see the file",
    file,
    ...(at ? { line: at.line() } : {}),
    overrides,
    env,
    ...(target.kind === "stdio" && target.cwd !== undefined ? { cwd: target.cwd } : {}),
    ...(sandbox ? { sandbox } : {}),
    lifecycle,
    approve: approve === undefined ? "settings" : typeof approve === "string" ? approve : "rules",
    toolPrefix: toolPrefix ?? running.now.settings.toolPrefix,
    ownPrefix: toolPrefix !== undefined,
    presets: presetsOf(running),
    timeouts: timeoutsOf(definition),
    ...(connectedAt === undefined ? {} : { connectedAt }),
    ...(whyUnshared(definition) ? {} : { shared: definition.shared === true }),
    ...(memory === undefined ? {} : { memory }),
    tools: exposuresOf({ server, running, entries, wished }),
  };
}

/** Writes the edit, and applies it at once: alone, if other edits wait for the person. */
async function carryOut(
  { file, edit }: EffectiveEdit,
  server: string,
  running: RunningConfiguration,
): Promise<{ file: string }> {
  const real = await realFile(file, running.facts);
  await writeOwn(running, file, edit, { server });
  return { file: real };
}

const decidedBy = (
  what: string,
  { file, line, rule }: { file: string; line?: number; rule: string },
): ThreadsError => {
  const at = line === undefined ? file : `${file}:${line}`;
  return new ThreadsError("bad_config", `${what}: ${rule} in ${at} decides.`, {
    remedy: `Change that rule: ${advice("edit")}`,
    data: { file, ...(line === undefined ? {} : { line }) },
  });
};

function keyChange(
  { server, ...source }: PanelRequests["setKey"]["params"],
  entries: readonly EntryIn[],
): SettingChange {
  const { header, from } = source;
  const key = header === undefined ? "bearerTokenEnv" : "headers";
  const written = writtenSource(from);
  const isThere = ({ target, auth: { token, tokenEnv } }: ServerDefinition): boolean => {
    if (target.kind !== "http") return false;
    if (header !== undefined) return target.headers[header] === written;
    return "variable" in from ? tokenEnv === from.variable && token === undefined : token === written;
  };
  return {
    server,
    project: false,
    key,
    edits: (file) => [sourceEdit(file, server, source)],
    whyNoEffect: (definition) =>
      isThere(definition)
        ? undefined
        : decidedBy(`The key of ${server} cannot be set there`, placeOf({ key }, entries, definition.file)),
  };
}

export function createPanelRequests({ started, supervisor, agentDir }: PanelParts): PanelHandlers {
  const makeEffective = async (
    change: SettingChange,
    running: RunningConfiguration,
  ): Promise<{ file: string }> => {
    const found = await findEffectiveFile(change, { facts: running.facts, applied: running.applied });
    return carryOut(found, change.server, running);
  };
  return {
    serverDetails: async ({ server }) => {
      const running = await started;
      return detailsOf(supervisor.get(server), running, supervisor.servers);
    },
    serverLog: async ({ server, seen }, signal) =>
      readLogLines(join(agentDir, LOG_FILE), { server, seen }, signal),
    setServer: async ({ server, project, key, value }) => {
      const running = await started;
      const unshared = key === "shared" ? whyUnshared(supervisor.get(server).definition) : undefined;
      if (unshared) throw unshared;
      const entries = await entriesOf(server, running.facts);
      return makeEffective(
        {
          server,
          project,
          key,
          edits: (file) => [keyEdit(file, server, key, value)],
          whyNoEffect: (definition) =>
            definition[key] === value
              ? undefined
              : decidedBy(
                  `${key} of ${server} cannot be set there`,
                  placeOf({ key }, entries, definition.file),
                ),
        },
        running,
      );
    },
    setKey: async (params) => {
      const running = await started;
      const change = keyChange(params, await entriesOf(params.server, running.facts));
      // The key before it may be one that was typed.
      return (await withoutItsValues(running, () => makeEffective(change, running))).done;
    },
    setExposure: async ({ server, tools: chosen, to, project }) => {
      const running = await started;
      const tools = chosen ?? allTools(supervisor.get(server)).map(({ name }) => name);
      const entries = await entriesOf(server, running.facts);
      const change = { server, tools, all: chosen === undefined, to, settings: running.now.settings };
      const written = await makeEffective(
        {
          server,
          project,
          key: "toolExposure",
          edits: (file, definition) => exposureEdits(file, definition, change),
          whyNoEffect: (definition, settings) => {
            const decide = decideIn(definition, settings);
            const other = tools.find((tool) => decide(tool).exposure !== to);
            if (other === undefined) return undefined;
            const { by } = decide(other);
            const place = by
              ? placeOf(by, entries, definition.file)
              : { rule: "no rule", file: definition.file };
            return decidedBy(`${other} of ${server} does not become ${to}`, place);
          },
        },
        running,
      );
      const decide = decideIn(supervisor.get(server).definition, running.now.settings);
      return { ...written, ruled: tools.some((tool) => decide(tool).by !== undefined) };
    },
  };
}
