/** Owns: a hub in the test's own process, with a real socket and real servers, and sessions that use it. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findHub, placeOf } from "../../../../workers/connection/hub/link.ts";
import { SharedServerProcess } from "../../../../workers/connection/transports/stdio/shared.ts";
import { Hub } from "../../../../workers/hub/hub.ts";
import { ensureFolder, writeSecret } from "../../../../workers/shared/hub/place.ts";
import type { Attach } from "../../../../workers/shared/hub/wire.ts";
import { createLog } from "../../../../workers/shared/log.ts";
import { onCleanup } from "../../../support/cleanup.ts";
import { makeTempFolder, removeFolder } from "../../../support/temp-folder.ts";

type Message = Record<string, unknown>;

export interface Client {
  process: SharedServerProcess;
  /** What the server or the hub for it has sent. */
  got: Message[];
  errors: () => string;
  /** Settles with the number of sessions, as the hub tells it last, when `count` use the process. */
  sessions(count: number): Promise<void>;
  say(message: Message): void;
  /** The answer to a request of this id. */
  ask(id: unknown, method: string, params?: Message): Promise<Message>;
  /** Settles with how the process ended for this session. */
  ended: Promise<[code: number | null, signal: string | null, why: string | undefined]>;
}

export const program = (source: string): string[] => ["-e", source];
/** Answers each request with its method and its process, and ends with its stdin. */
export const ANSWERS = `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { method, pid: process.pid } }));
});`;

const until = async (emitter: SharedServerProcess, isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await once(emitter, "look");
};

export async function makeHub() {
  const agentDir = await makeTempFolder("pmt-hub");
  const place = placeOf(agentDir);
  await ensureFolder(place);
  await writeSecret(place);
  const logFile = join(agentDir, "mcp-hub.log");
  const log = createLog({ file: logFile, label: "hub" });
  const gone = Promise.withResolvers<void>();
  const hub = new Hub({ place, log, onEnd: () => gone.resolve() });
  await hub.start();
  onCleanup(async () => {
    await hub.close();
    await gone.promise;
    for (const folder of [place.folder, agentDir]) await removeFolder(folder);
  });

  /** A session that asks for the program. `found`: a connection that nobody else uses. */
  const ask = async (
    source: string,
    more: Partial<Attach> = {},
    env: Record<string, string> = {},
    found = findHub(agentDir),
  ): Promise<SharedServerProcess> => {
    const socket = await found;
    if (!socket) throw new Error("there is no hub");
    const attach: Attach = {
      launch: {
        program: process.execPath,
        args: program(source),
        env: { PMT: agentDir, ...env },
        cwd: agentDir,
      },
      offer: "",
      label: "s",
      idleMs: 60_000,
      maxMessageBytes: 1_000_000,
      isWanted: false,
      pid: process.pid,
      ...more,
    };
    const used: SharedServerProcess = new SharedServerProcess(Promise.resolve(socket), attach, () =>
      used.emit("look"),
    );
    return used;
  };
  /** The same; settles when the process runs, rejects as its start fails. */
  const join_ = async (...wanted: Parameters<typeof ask>): Promise<Client> => {
    const used = await ask(...wanted);
    const got: Message[] = [];
    let rest = "";
    let errors = "";
    used.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      got.push(...lines.map((line) => JSON.parse(line) as Message));
      used.emit("look");
    });
    used.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors += text;
    });
    for (const stream of [used.stdin, used.stdout, used.stderr]) stream.on("error", () => undefined);
    const ended = once(used, "exit").then(([code, signal, why]) => [code, signal, why] as const);
    ended.catch(() => undefined);
    const say = (message: Message): void =>
      void used.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    await once(used, "spawn");
    return {
      process: used,
      got,
      errors: () => errors,
      sessions: (count) => until(used, () => used.sharing?.sessions === count),
      say,
      ask: async (id, method, params) => {
        say({ id, method, ...(params ? { params } : {}) });
        const find = (): Message | undefined => got.find((one) => one.id === id && !("method" in one));
        await until(used, () => find() !== undefined);
        return find() ?? {};
      },
      ended: ended as Client["ended"],
    };
  };
  return { agentDir, place, hub, gone: gone.promise, ask, join: join_, log: () => readFile(logFile, "utf8") };
}
