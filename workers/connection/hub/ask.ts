/** What a person asks of the hub of shared servers: what it runs, and to end it. Starts no hub. */
import type { Socket } from "node:net";
import type { ConnectionMethods } from "../../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { HubReport } from "../../../src/shared/protocol/person.ts";
import { HubUnusable } from "../../shared/hub/place.ts";
import { controlFrame, FrameReader, type FromHub, type ToHub } from "../../shared/hub/wire.ts";
import { findHub } from "./link.ts";

const NAMES_SHOWN = 50;
/** Ending a server takes as long as its processes need. */
const ANSWER_MS = LIMITS.hubStartMs + LIMITS.closeKillMs;

/** Undefined: the hub ended meanwhile. Throws `HubUnusable` if it does not answer in time. */
async function answerOf(socket: Socket, question: ToHub): Promise<FromHub | undefined> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    socket.destroy();
  }, ANSWER_MS);
  try {
    socket.write(controlFrame(question));
    const frames = new FrameReader<FromHub>();
    for await (const chunk of socket as AsyncIterable<Buffer>)
      for (const came of frames.push(chunk)) if (came.kind === "control") return came.message;
  } catch {
    // As a connection that ends without an answer.
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
  if (isLate) throw new HubUnusable("it does not answer");
  return undefined;
}

async function ask(agentDir: string, question: ToHub): Promise<FromHub | undefined> {
  const socket = await findHub(agentDir);
  return socket && answerOf(socket, question);
}

/** What the hub runs; undefined if there is none. Throws `HubUnusable`. */
export async function hubReport(agentDir: string): Promise<HubReport | undefined> {
  const answer = await ask(agentDir, { do: "list" });
  if (answer?.is !== "servers") return undefined;
  const { is: _, ...report } = answer;
  return report;
}

type Hub = ConnectionMethods["hub"];

export async function answerHub(agentDir: string, { stop }: Hub["params"]): Promise<Hub["value"]> {
  try {
    const report = await hubReport(agentDir);
    if (!report || !stop) return report ? { report } : {};
    const { server } = stop;
    const known = [...new Set(report.servers.flatMap(({ labels }) => labels))];
    if (server !== undefined && !known.includes(server))
      throw new ThreadsError("unknown_server", `No shared server named ${server} runs.`, {
        remedy: `Shared now: ${known.slice(0, NAMES_SHOWN).join(", ") || "none"}.`,
        data: { known },
      });
    const answer = await ask(agentDir, { do: "stop", ...stop });
    return { report, stopped: answer?.is === "stopped" ? answer.servers : 0 };
  } catch (error) {
    if (!(error instanceof HubUnusable)) throw error;
    throw new ThreadsError("bad_config", `The hub of shared servers cannot be used: ${error.message}.`);
  }
}
