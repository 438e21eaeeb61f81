/**
 * Entry of the hub of shared servers: a guard and wiring. The connection worker that first needs the hub starts this file as a
 * process of its own, which outlives the session. Its argument is a `HubBoot` as JSON, and it prints one line: `ready`, or
 * why it cannot start.
 */
import { isMainThread } from "node:worker_threads";
import { messageOf } from "../src/shared/protocol/errors.ts";
import { Hub, type HubTimes } from "./hub/hub.ts";
import type { HubPlace } from "./shared/hub/place.ts";
import { createLog } from "./shared/log.ts";

export interface HubBoot {
  place: HubPlace;
  logFile: string;
  /** Absent: `LIMITS`. */
  times?: HubTimes;
}

if (!isMainThread) throw new Error("workers/hub must run as a process");

const boot = JSON.parse(process.argv[2] ?? "{}") as HubBoot;
const log = createLog({ file: boot.logFile, label: "hub" });
const fatal = async (why: string, error: unknown): Promise<void> => {
  log.error(`${why}: ${error instanceof Error ? error.stack : String(error)}`);
  await log.flush();
  process.exit(1);
};
process.on("unhandledRejection", (reason) => log.error(`unhandled rejection: ${messageOf(reason)}`));
// Its state is not known any more. The servers end with their stdin, and each session starts another hub.
process.on("uncaughtException", (error) => void fatal("an uncaught error", error));
// The starter closes its end after the first line.
process.stdout.on("error", () => undefined);

const hub = new Hub({
  place: boot.place,
  log,
  ...(boot.times ? { times: boot.times } : {}),
  onEnd: () => process.exit(0),
});
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void hub.close());
// The end of the terminal in which it was started is not its end.
process.on("SIGHUP", () => undefined);
try {
  await hub.start();
  process.stdout.write("ready\n");
} catch (error) {
  process.stdout.write(`${messageOf(error)}\n`);
  await fatal("it cannot start", error);
}
