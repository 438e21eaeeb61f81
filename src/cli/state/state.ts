/**
 * What the state of the servers means to the person, in sentences. Apart from the session, so that a command without a
 * worker does not load it. Pure. Called by: session, commands.
 */
import { refusedLine } from "../../report/refused.ts";
import { serverName } from "../../report/server-name.ts";
import { describeError } from "../../shared/protocol/errors.ts";
import type { StatusReport } from "../../shared/protocol/status.ts";

export const HOW_TO_CONSENT =
  "Run the command in a terminal to see what would run and to be asked, or add --yes, which shows and allows it.";

/** A line for each server of the project that may not run yet. */
export const leftOutServers = ({ questions, refused }: StatusReport): string[] => [
  ...questions.map(({ server }) => `${serverName(server)} waits for your consent: ${HOW_TO_CONSENT}`),
  ...refused.map(refusedLine),
];

/** Why a server could not be reached, as its status tells; undefined if it was. */
export function failureOf(report: StatusReport, server: string): string | undefined {
  const found = report.servers.find(({ name }) => name === server);
  return found?.error && describeError(found.error);
}
