/** Connects the server that the person named, as a call of one of its tools would, or pings it if it is connected. */

import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { formatMs } from "../../../src/shared/text/amounts.ts";
import { commandFor } from "../../shared/commands.ts";
import { settledWithin } from "../../shared/pace/abort.ts";
import { type DoctorInput, type Examined, staged } from "./check.ts";
import { CONNECT_MS } from "./limits.ts";

const PING_MS = 5_000;

const slow = (server: string, ms: number, waits: string | undefined): Finding => ({
  id: waits === undefined ? "time-out" : "npx",
  severity: "warning",
  server,
  title: waits
    ? `The server waits for its package: ${waits}.`
    : `The server has not started within ${formatMs(ms)}; the attempt goes on.`,
  remedy: `${commandFor("doctor")} once more in a moment tells how it ended. A first start may have to download a package.`,
});

async function ping(server: Examined, stages: DoctorInput["stages"]): Promise<Finding[] | undefined> {
  const asked = server.ifConnected((connection) => staged(stages, "ping", () => connection.ping(PING_MS)));
  if (!asked) return undefined;
  try {
    await asked;
    return [];
  } catch {
    return [
      {
        id: "ended",
        severity: "error",
        server: server.name,
        title: `The server is connected, but does not answer a ping within ${formatMs(PING_MS)}.`,
        remedy: commandFor("reconnect", server.name),
      },
    ];
  }
}

/** `ms`: the longest wait. A failure of the connect is in the server's state, which another check reads afterwards. */
export async function attempt(
  server: Examined,
  { stages }: Pick<DoctorInput, "stages">,
  ms: number = CONNECT_MS,
): Promise<Finding[]> {
  const { enabled, file } = server.definition;
  if (!enabled) {
    return [
      {
        id: "connect",
        severity: "note",
        server: server.name,
        title: "The server is switched off.",
        remedy: commandFor("enable", server.name),
        file,
      },
    ];
  }
  const pinged = await ping(server, stages);
  if (pinged) return pinged;
  const step = staged(stages, "start, handshake and list of tools", () => server.connect("user"));
  const outcome = step.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(await settledWithin(step, ms))) return [slow(server.name, ms, server.status().waits)];
  const error = await outcome;
  // Anything but the errors of the servers is a mistake of our own.
  if (error !== undefined && !(error instanceof ThreadsError)) throw error;
  return [];
}
