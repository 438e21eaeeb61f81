/**
 * Owns: one real Pi with the packed extension, a probe and a scripted model, in the home of an attack: prompts, calls
 * of the healthy server, the time that the main thread spent, and Pi's end.
 * Must not: know rows, or judge results.
 * Called by: run-row.ts and the rows' own steps.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ModelRequest, type ModelTurn, startModel } from "../../support/model.ts";
import { type RpcSession, startRpc } from "../../support/pi-run.ts";
import { processesWithMarker, waitGone } from "../../support/processes.ts";
import {
  notices,
  type RpcDialog,
  type RpcNotice,
  type RpcToolEnd,
  toDialog,
  toolEnds,
} from "../../support/rpc-events.ts";
import { PROBE, STAGE } from "./place.ts";
import type { Place } from "./row.ts";

/** This limit catches hangs only: every other prompt ends sooner. */
export const PROMPT_MS = 60_000;
const START_MS = 60_000;
const EXIT_MS = 20_000;
const POLL_MS = 20;
/** A question to Pi costs more than a look at a file. */
const ASK_MS = 100;

/** Time and CPU time that the main thread spent since the last `spent()`; milliseconds. */
export interface Spent {
  longestMs: number;
  mostCpuMs: number;
  cpuMs: number;
  /** Keys that were added to `Object.prototype` on the main thread. */
  polluted: string[];
}

export interface Answered {
  /** Why the call failed; undefined if the answer is right. */
  failure: string | undefined;
  ms: number;
}

export interface ArenaOptions {
  place: Place;
  extension: string;
  args?: readonly string[] | undefined;
  env?: Record<string, string> | undefined;
  /** Working directory; the project of `place` if left out. */
  cwd?: string | undefined;
  /** True sends every call through the one tool `mcp`, as `settings.proxyTool` requires. */
  proxy?: boolean | undefined;
  /** Lets this Pi move into other homes: the file that names the next one. */
  stageFile?: string | undefined;
}

export const callOf = (name: string, args: Record<string, unknown> = {}): ModelTurn => ({
  toolCalls: [{ name, args }],
});
export const searchOf = (query: string, server?: string): ModelTurn =>
  callOf("ToolSearch", { query, ...(server === undefined ? {} : { server }) });

export class Arena {
  readonly rpc: RpcSession;
  /** Texts of notices that answer a command. */
  readonly asked = new Set<string>();
  /** True while a prompt runs. */
  isBusy = false;
  #place: Place;
  #turns: ModelTurn[];
  #requests: readonly ModelRequest[];
  #closeModel: () => Promise<void>;
  #proxy = false;
  #sinceRecord = 0;
  #sinceRequest = 0;
  #echoes = 0;
  #questions = 0;

  private constructor(
    place: Place,
    rpc: RpcSession,
    model: { turns: ModelTurn[]; requests: readonly ModelRequest[]; close: () => Promise<void> },
  ) {
    this.#place = place;
    this.rpc = rpc;
    this.#turns = model.turns;
    this.#requests = model.requests;
    this.#closeModel = model.close;
  }

  /** The home of the attack that runs now. */
  get place(): Place {
    return this.#place;
  }

  static async start({ place, extension, args, env, cwd, proxy, stageFile }: ArenaOptions): Promise<Arena> {
    const turns: ModelTurn[] = [];
    const model = await startModel(() => turns.shift());
    const home = cwd === undefined ? place.home : { ...place.home, cwd };
    const rpc = await startRpc({
      home,
      model,
      extensions: [PROBE, extension, ...(stageFile === undefined ? [] : [STAGE])],
      ...(args ? { args } : {}),
      env: { ...env, STAGE: stageFile },
    });
    const arena = new Arena(place, rpc, { turns, requests: model.requests, close: model.close });
    arena.#proxy = proxy ?? false;
    try {
      await rpc.ready(START_MS);
    } catch (error) {
      await arena.kill();
      throw error;
    }
    return arena;
  }

  /** Begins another attack, with the record `at`: `notices`, `dialogs` and `requests` start empty. */
  begin(at = this.rpc.events.length): void {
    this.#sinceRecord = at;
    this.#sinceRequest = this.#requests.length;
  }

  /** Begins another attack, in another home. */
  moveTo(place: Place, proxy: boolean, at: number): void {
    this.#place = place;
    this.#proxy = proxy;
    this.begin(at);
  }

  /** The notices since the current attack began. */
  get notices(): RpcNotice[] {
    return notices(this.rpc.events.slice(this.#sinceRecord));
  }
  get dialogs(): RpcDialog[] {
    return this.rpc.events
      .slice(this.#sinceRecord)
      .map(toDialog)
      .filter((dialog) => dialog !== undefined);
  }
  get requests(): readonly ModelRequest[] {
    return this.#requests.slice(this.#sinceRequest);
  }

  /** Sends one prompt, which the model answers with these turns. Resolves with the tool calls that ended. */
  async prompt(...turns: ModelTurn[]): Promise<RpcToolEnd[]> {
    this.#questions++;
    this.#turns.splice(0, this.#turns.length, ...turns);
    this.isBusy = true;
    const events = await this.rpc.prompt("go", PROMPT_MS);
    this.isBusy = false;
    return toolEnds(events);
  }

  /**
   * Loads a tool and calls it in one prompt. Returns the call's result, with the search's answer if no tool was loaded.
   */
  async use(server: string, tool: string, args: Record<string, unknown> = {}): Promise<RpcToolEnd> {
    const ends = await this.prompt(...this.turnsOf(server, tool, args));
    const end = ends.at(-1);
    if (end === undefined) throw new Error(`${server}/${tool} was not called`);
    if (!end.isError || !/^Tool \S+ not found/.test(end.text)) return end;
    return { ...end, text: `${end.text}; the search answered: ${ends[0]?.text.slice(0, 300)}` };
  }

  /** The turn in which the model calls a tool that is loaded. */
  callOf(server: string, tool: string, args: Record<string, unknown>): ModelTurn {
    const name = `${server}__${tool}`;
    return this.#proxy ? callOf("mcp", { tool: name, args }) : callOf(name, args);
  }

  /** The turns in which the model loads a tool and calls it. */
  turnsOf(server: string, tool: string, args: Record<string, unknown>): [find: ModelTurn, call: ModelTurn] {
    const name = `${server}__${tool}`;
    const find = this.#proxy ? callOf("mcp", { describe: name }) : searchOf(`select:${name}`, server);
    return [find, this.callOf(server, tool, args)];
  }

  /** A text for `echo` that no earlier call had. */
  nextText(): string {
    return `hello ${++this.#echoes}`;
  }

  /** Calls a healthy server whose tool is loaded. */
  async echo(server: string): Promise<Answered> {
    const text = this.nextText();
    const begunMs = performance.now();
    const [end] = await this.prompt(this.callOf(server, "echo", { text }));
    return { failure: failureOf(end, text), ms: performance.now() - begunMs };
  }

  /** Does the same as `echo` after a search, which may wait for the server. */
  async loadAndEcho(server: string): Promise<Answered> {
    const text = this.nextText();
    const begunMs = performance.now();
    const ends = await this.prompt(...this.turnsOf(server, "echo", { text }));
    const failure = failureOf(ends.at(-1), text);
    return {
      failure: failure && `${failure}; the search: ${ends[0]?.text.slice(0, 200)}`,
      ms: performance.now() - begunMs,
    };
  }

  /** Returns the text that `/mcp <words>` shows. */
  async status(words = ""): Promise<string> {
    this.#questions++;
    const told = notices(await this.rpc.command(`/mcp ${words}`.trim(), PROMPT_MS));
    for (const { message } of told) this.asked.add(message);
    return told.map(({ message }) => message).join("\n");
  }

  /** Waits until the attacking server has connected or failed. */
  async connected(timeoutMs = 40_000): Promise<void> {
    const { server } = this.place;
    const isOver = async (): Promise<boolean> => !(await this.status()).includes(`${server}: connecting`);
    if (!(await this.until(isOver, timeoutMs))) throw new Error(`${server} still connects`);
  }

  async spent(): Promise<Spent> {
    const file = join(this.place.home.dir, "probe.json");
    await this.rpc.command(`/probe ${file}`, PROMPT_MS);
    return JSON.parse(await readFile(file, "utf8")) as Spent;
  }

  /** Repeats the check until it holds. Resolves with false if it does not hold within the time. */
  async until(check: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<boolean> {
    const endsAtMs = performance.now() + timeoutMs;
    for (;;) {
      const questions = this.#questions;
      if (await check()) return true;
      if (performance.now() > endsAtMs) return false;
      await sleep(this.#questions > questions ? ASK_MS : POLL_MS);
    }
  }

  /** Ends Pi the way a user does. Resolves with a text for each problem. */
  async end(): Promise<string[]> {
    const { code, signal } = await this.rpc.stop(EXIT_MS);
    await this.#closeModel();
    const wrong: string[] = [];
    if (signal === "SIGKILL") wrong.push(`Pi did not end within ${EXIT_MS / 1_000} s`);
    else if (code !== 0) wrong.push(`Pi ended with ${signal ?? code}`);
    return [...wrong, ...(await this.survivors(this.place))];
  }

  /** After the end of a session in this home: waits for the end of its processes. Resolves with a text if one is left. */
  async survivors({ home }: Place): Promise<string[]> {
    const started = (await processesWithMarker(`HOME=${home.dir}`)).filter(({ pid }) => pid !== this.rpc.pid);
    const left = new Set(
      await waitGone(
        started.map(({ pid }) => pid),
        EXIT_MS,
      ),
    );
    const commands = started.filter(({ pid }) => left.has(pid)).map(({ command }) => command.slice(0, 200));
    return commands.length > 0 ? [`still running: ${commands.join("; ")}`] : [];
  }

  async kill(): Promise<void> {
    this.rpc.kill("SIGKILL");
    await this.rpc.exited;
    await this.#closeModel();
  }
}

/** Why this is not the answer of `echo` to the text. */
export function failureOf(end: RpcToolEnd | undefined, text: string): string | undefined {
  if (end === undefined) return "it was not called";
  return end.text === `echo: ${text}` ? undefined : `it answered ${JSON.stringify(end.text.slice(0, 200))}`;
}
