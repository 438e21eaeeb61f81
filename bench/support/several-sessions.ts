/**
 * Owns: several sessions of the real Pi with one home at the same time, each with its own servers or with shared ones: their
 * first calls, their processes and memory, and what is left when they have ended.
 * Must not: compare clients or make rows.
 * Called by: the scenario `shared`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type ModelRequest, type ModelTurn, startModel, toolResultTexts } from "../../test/support/model.ts";
import { createHome, type RpcSession, startRpc } from "../../test/support/pi-run.ts";
import { waitGone } from "../../test/support/processes.ts";
import { epochMs } from "./measured-pi.ts";
import { ECHO, npmServers } from "./npm-servers.ts";
import { processesOf, pssMb, settledPids } from "./process-memory.ts";
import type { Variant } from "./variants.ts";

/** A client, and what its entries say besides. */
export interface Arm {
  label: string;
  variant: Variant;
  isShared: boolean;
}

export interface SessionFigures {
  /** From the prompt until the model had the right answer; of a Pi without servers, from its own tool `read`. */
  callMs: number;
  /** From the spawn of this Pi until then. */
  startMs: number;
  /** Prompts until the answer was right: a client may not know the tool yet. */
  prompts: number;
  /** Of all sessions so far, their servers and the hub. */
  memoryMb: number;
  processes: number;
}

export interface SittingFigures {
  sessions: SessionFigures[];
  /** Processes when all sessions have ended, and when the hub was told to end as well. */
  left: number;
  leftAfterHub: number;
}

const QUIET = { quietMs: 5_000, longestMs: 90_000 };
/** The servers of a session get this long to end after it. */
const END_MS = 5_000;
const PROMPT_TIMEOUT_MS = 90_000;
const MOST_PROMPTS = 20;
/** What a Pi without servers reads. */
const FILE = { name: "answer.txt", content: "the answer of a file" };
/** Before the model is asked again for a tool that its client does not know yet. */
const AGAIN_MS = 250;

/** Keys with which the called tool is declared to the model from the first request on, so that no search is measured. */
const DECLARED: Readonly<Record<Variant["id"], Record<string, unknown>>> = {
  ours: { directTools: [ECHO.tool] },
  builtin: { exposure: "direct" },
  adapter: {},
  none: {},
};

const endHub = async (homeDir: string): Promise<void> => {
  const hubs = (await processesOf(homeDir)).filter(({ command }) => /[\\/]hub\.js\b/.test(command));
  for (const { pid } of hubs) process.kill(pid, "SIGTERM");
  const servers = (await processesOf(homeDir)).map(({ pid }) => pid);
  await waitGone(servers, END_MS);
};

/** One home with its servers and a scripted model. */
async function openHome({ variant, isShared }: Arm, few: boolean) {
  const home = await createHome({ settings: variant.settings, files: { [FILE.name]: FILE.content } });
  const servers = await npmServers(home.cwd, { few });
  const { entry } = variant;
  if (entry) {
    const entries = Object.entries(servers).map(([name, server]) => {
      const more = name === ECHO.server ? DECLARED[variant.id] : {};
      return [name, { ...entry(server, "eager"), ...more, ...(isShared ? { shared: true } : {}) }];
    });
    await home.writeMcp({ mcpServers: Object.fromEntries(entries) });
  }
  const turns: ModelTurn[] = [];
  const model = await startModel(() => turns.shift());
  return { home, model, turns };
}

type Home = Awaited<ReturnType<typeof openHome>>;

/** Whether the request tells the model that `text` is the answer of its call. */
const isAnswered = (request: ModelRequest, text: string): boolean =>
  (toolResultTexts(request).at(-1) ?? "").includes(text);

/** What the model calls, and what must be in the answer. */
function questionOf({ pid }: RpcSession, { call, entry }: Variant): { turn: ModelTurn; text: string } {
  if (!entry)
    return { turn: { toolCalls: [{ name: "read", args: { path: FILE.name } }] }, text: FILE.content };
  const message = `answer ${pid}`;
  return { turn: call(ECHO.server, [{ tool: ECHO.tool, args: { message } }]), text: `Echo: ${message}` };
}

async function firstCall(session: RpcSession, { variant, label }: Arm, { model, turns }: Home) {
  const promptedAtMs = epochMs();
  const { turn, text } = questionOf(session, variant);
  for (let prompts = 1; prompts <= MOST_PROMPTS; prompts++) {
    model.forget();
    turns.splice(0, turns.length, turn);
    await session.prompt("go on", PROMPT_TIMEOUT_MS);
    const answered = model.requests.find((request) => isAnswered(request, text));
    if (answered) return { atMs: answered.arrivedAtMs, promptedAtMs, prompts };
    await sleep(AGAIN_MS);
  }
  const last = model.requests.at(-1);
  throw new Error(`${label} answered with: ${last ? toolResultTexts(last).at(-1) : "nothing"}`);
}

async function addSession(arm: Arm, opened: Home): Promise<{ session: RpcSession; figures: SessionFigures }> {
  const { home, model } = opened;
  const session = await startRpc({ home, model, extensions: [arm.variant.extension] });
  await session.ready();
  const { atMs, promptedAtMs, prompts } = await firstCall(session, arm, opened);
  const pids = await settledPids(home.dir, QUIET);
  return {
    session,
    figures: {
      callMs: atMs - promptedAtMs,
      startMs: atMs - session.startedAtMs,
      prompts,
      memoryMb: await pssMb(pids),
      processes: pids.length,
    },
  };
}

/** Sessions one after the other, each beside all earlier ones. The tools of the servers are known from an earlier session. */
export async function measureSitting(
  arm: Arm,
  { sessions, few, progress }: { sessions: number; few: boolean; progress: (session: number) => void },
): Promise<SittingFigures> {
  const opened = await openHome(arm, few);
  const open: RpcSession[] = [];
  try {
    progress(0);
    const learning = await addSession(arm, opened);
    await learning.session.stop();
    await endHub(opened.home.dir);
    const figures: SessionFigures[] = [];
    for (let index = 1; index <= sessions; index++) {
      progress(index);
      const added = await addSession(arm, opened);
      open.push(added.session);
      figures.push(added.figures);
    }
    for (const session of open.splice(0)) await session.stop();
    await sleep(END_MS);
    const left = (await processesOf(opened.home.dir)).length;
    await endHub(opened.home.dir);
    return { sessions: figures, left, leftAfterHub: (await processesOf(opened.home.dir)).length };
  } finally {
    for (const session of open) await session.stop();
    await endHub(opened.home.dir);
    await opened.model.close();
    await opened.home.dispose();
  }
}
