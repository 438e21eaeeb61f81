/**
 * What sharing would save, and why it does not: servers that run several times on this machine, sessions that differ in
 * something that keeps them apart, and a hub that cannot be used. Starts no hub.
 */
import type { Finding, HubReport } from "../../../src/shared/protocol/person.ts";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { commandFor } from "../../shared/commands.ts";
import { HubUnusable } from "../../shared/hub/place.ts";
import { HUB_LOG } from "../hub/link.ts";
import type { DoctorInput, Examined } from "./check.ts";
import { othersLike } from "./command-lines.ts";

const NAMES_SHOWN = 8;
const NAME_CHARS = 60;

const namesText = (names: readonly string[]): string => {
  const shown = names.slice(0, NAMES_SHOWN).map((name) => oneLine(name, NAME_CHARS));
  const more = names.length - shown.length;
  const all = more > 0 ? [...shown, `${more} more`] : shown;
  return all.length > 1 ? `${all.slice(0, -1).join(", ")} and ${all.at(-1)}` : (all[0] ?? "");
};

const isLocal = ({ definition }: Examined): boolean => definition.target.kind === "stdio";
const wantsSharing = (server: Examined): boolean => isLocal(server) && server.definition.shared === true;

/** Servers with a process of their own that run for others too. `hub`: processes of shared servers, which no more sharing saves. */
async function repeated({ servers, all, machine }: DoctorInput, hub: readonly number[]): Promise<Finding[]> {
  const own = servers.flatMap((server) => {
    const { pid, sharing } = server.status();
    const isOwn = isLocal(server) && !wantsSharing(server) && pid !== undefined && !sharing;
    return isOwn ? [{ server, pid }] : [];
  });
  const rows = await machine.commandLines(own.map(({ pid }) => pid));
  // Two servers of one session are two entries, which differ in something.
  const known = new Set([...hub, ...all.map((server) => server.status().pid)]);
  return own.flatMap(({ server, pid }): Finding[] => {
    const { count, bytes } = othersLike(
      pid,
      rows.filter(({ group }) => group === pid || !known.has(group)),
    );
    if (count === 0) return [];
    const where = server.definition.definedByProject ? " in your own mcp.json" : "";
    const others = count === 1 ? "the other one takes" : `the ${count} others take`;
    return [
      {
        id: "sharing",
        severity: "note",
        server: server.name,
        title: `It runs ${count + 1} times on this machine; ${others} ${formatBytes(bytes)}.`,
        detail: `"shared": true${where} would save about ${formatBytes(bytes)}, as far as these are sessions of Pi. It is not for a server that keeps something for each session, such as a browser.`,
      },
    ];
  });
}

/** Sessions that would share the server if something did not differ. */
function apart(server: Examined, report: HubReport): Finding[] {
  const processes = report.servers.filter(
    ({ labels, isRetired }) => labels.includes(server.name) && !isRetired,
  );
  const differs = [...new Set(processes.flatMap((one) => one.differs))];
  if (differs.length === 0) return [];
  const times =
    processes.length > 1 ? `${processes.length} processes of it run` : "It runs beside another one";
  return [
    {
      id: "sharing",
      severity: "note",
      server: server.name,
      title: `${times}, because sessions differ in ${namesText(differs)}.`,
      detail: "Sessions share a process only if its program, folder and variables are the same for all.",
    },
  ];
}

/** A server that is to be shared, and has a process of this session alone. */
function unshared(server: Examined): Finding[] {
  const { state, sharing, pid } = server.status();
  if (state !== "connected" || sharing || pid === undefined) return [];
  return [
    {
      id: "sharing",
      severity: "warning",
      server: server.name,
      title: '"shared" is true, but this session runs a process of its own.',
      detail: `The hub of shared servers could not be used when the server was started. ${HUB_LOG} may say why.`,
      remedy: `${commandFor("reconnect", server.name)} tries again.`,
    },
  ];
}

/** What the hub runs; or why it cannot be used. */
type Hub = { report: HubReport | undefined } | { unusable: string };

const askHub = ({ machine, agentDir }: DoctorInput): Promise<Hub> =>
  machine.sharedServers(agentDir).then(
    (report) => ({ report }),
    (error: unknown) => {
      if (error instanceof HubUnusable) return { unusable: error.message };
      throw error;
    },
  );

function unusable(why: string, servers: readonly Examined[]): Finding {
  const names = namesText(servers.map(({ name }) => name));
  return {
    id: "sharing",
    severity: "warning",
    title: `Shared servers cannot be used: ${why}.`,
    detail: `Each session runs a process of its own of ${names}. ${HUB_LOG} may say more.`,
  };
}

export async function checkSharing(input: DoctorInput): Promise<Finding[]> {
  const hub = await askHub(input);
  const report = "report" in hub ? hub.report : undefined;
  const found = await repeated(input, report?.servers.map(({ pid }) => pid) ?? []);
  const shared = input.servers.filter(wantsSharing);
  if (shared.length === 0) return found;
  if ("unusable" in hub) return [...found, unusable(hub.unusable, shared)];
  const differ = report ? shared.flatMap((server) => apart(server, report)) : [];
  return [...found, ...differ, ...shared.flatMap(unshared)];
}
