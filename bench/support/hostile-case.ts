/**
 * Owns: one attack against one client in the real Pi, and its outcome in words.
 * Must not: contain the attacks or compare clients.
 * Called by: the hostile scenario. The attacks are rows of test/hostile.
 */
import { readFile } from "node:fs/promises";
import { Arena } from "../../test/hostile/support/arena.ts";
import type { Baseline } from "../../test/hostile/support/baseline.ts";
import { mainProblem } from "../../test/hostile/support/checks.ts";
import { healthyServer, type OpenPlace, openPlace } from "../../test/hostile/support/place.ts";
import type { Row as Attack, Entry } from "../../test/hostile/support/row.ts";
import { PEER_TIMEOUT, type ServerEntry, type Variant } from "./variants.ts";

/** Limit for the whole case, from Pi's start to its end. */
const CASE_MS = 40_000;
const HAPPENS_MS = 8_000;
const ANSWER_MS = 2_000;

const INJECTED = /Before any other step/;

export interface CaseOutcome {
  /** Longest stall of main by the clock; undefined if Pi no longer answered. */
  stallMs: number | undefined;
  /** Descriptions of the harm; empty if the client held. */
  harm: string[];
}

/** One running case. */
interface Case {
  attack: Attack;
  variant: Variant;
  place: OpenPlace;
  outcome: CaseOutcome;
  /** Figures of bare Pi, measured in the same run of the bench. */
  bare: Baseline;
}

async function configure({ attack, variant, place }: Case): Promise<void> {
  const { home } = place;
  for (const [path, content] of Object.entries(attack.files?.(place) ?? {}))
    await home.writeFile(path, content);
  await attack.lay?.(place);
  const attacker = await attack.server?.(place);
  const entries: Record<string, Entry> = {
    healthy: healthyServer(),
    ...(attacker ? { [place.server]: attacker } : {}),
    ...(await attack.servers?.(place)),
  };
  const limits = variant.id === "ours" ? {} : PEER_TIMEOUT;
  const mcpServers = Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => [
      name,
      { ...variant.entry?.(entry as unknown as ServerEntry, "eager"), ...limits },
    ]),
  );
  await home.writeMcp({ mcpServers });
}

/** Finds and calls the healthy server's tool, and answers the harm, if any. */
async function callHealthy(arena: Arena, variant: Variant, when: string): Promise<string[]> {
  const begunMs = performance.now();
  const calls = [{ tool: "echo", args: { text: when } }];
  const ends = await arena.prompt(variant.find("healthy", "echo"), variant.call("healthy", calls));
  const ms = performance.now() - begunMs;
  const text = ends.at(-1)?.text ?? "";
  if (!text.includes(`echo: ${when}`)) return [`healthy server did not answer ${when}`];
  return ms > ANSWER_MS ? [`healthy server took ${(ms / 1_000).toFixed(1)} s ${when}`] : [];
}

/** Calls the user's server that is the target of the attack until it answers; npm may delay its start. */
async function useOwn(arena: Arena, variant: Variant, name: string): Promise<void> {
  await arena.until(async () => {
    const calls = [{ tool: "echo", args: { text: "mine" } }];
    const ends = await arena.prompt(variant.find(name, "echo"), variant.call(name, calls));
    return ends.at(-1)?.text.includes("echo: mine") ?? false;
  }, HAPPENS_MS);
}

/** Answers harm if the declared tools of the first request contain words of the server. */
function declared({ requests }: Arena): string[] {
  const [first] = requests;
  const text = JSON.stringify(first?.tools ?? []);
  return INJECTED.test(text) ? ["words of the server in the declared tools"] : [];
}

/** Runs the attack until it is over or Pi no longer answers. */
async function play({ attack, variant, place, outcome, bare }: Case, arena: Arena): Promise<void> {
  const { server } = place;
  const { harm } = outcome;
  const start = await arena.spent();
  const startHarm = await mainProblem("at the start", start, bare.start);
  harm.push(...(await callHealthy(arena, variant, "at first")));
  harm.push(...declared(arena));
  const firstHarm = await mainProblem("in the first prompt", await arena.spent(), bare.first);
  if (attack.server) {
    const line = attack.happened ?? "tools/list";
    await arena.until(async () => (await place.seen()).includes(line), HAPPENS_MS);
  }
  harm.push(...(await callHealthy(arena, variant, "during the attack")));
  for (const { tool, args = {} } of attack.calls ?? [])
    await arena.prompt(variant.find(server, tool), variant.call(server, [{ tool, args }]));
  for (const name of Object.keys((await attack.servers?.(place)) ?? {})) await useOwn(arena, variant, name);
  if (attack.anyClient) await attack.act?.(arena);
  harm.push(...(await callHealthy(arena, variant, "after the attack")));
  if (attack.anyClient) harm.push(...((await attack.check?.(arena)) ?? []));
  const spent = await arena.spent();
  // Bare Pi stalls at its start too, so the stall at the start counts only if the client adds to it.
  outcome.stallMs = Math.max(spent.longestMs, startHarm.length > 0 ? start.longestMs : 0);
  harm.push(...startHarm, ...firstHarm, ...(await mainProblem("during the attack", spent, bare.later)));
}

const lastWords = (error: unknown): string =>
  String(error instanceof Error ? error.message : error).split("\n", 1)[0] ?? "";

async function run(the: Case, opened: (arena: Arena) => void): Promise<void> {
  const { attack, variant, place, outcome } = the;
  const start = async (): Promise<Arena> => {
    const arena = await Arena.start({ place, extension: variant.extension });
    opened(arena);
    return arena;
  };
  await configure(the);
  try {
    for (let count = 0; count < (attack.startsBefore ?? 0); count++) {
      const before = await start();
      await callHealthy(before, variant, "before");
      await before.end();
    }
    const arena = await start();
    await play(the, arena).catch((error: unknown) => {
      outcome.harm.push(lastWords(error).replace(/^nothing in .*/, "a prompt never came to its end"));
    });
    outcome.harm.push(...(await arena.end()));
  } catch (error) {
    outcome.harm.push(`Pi did not start: ${lastWords(error)}`);
  }
}

async function afterwards({ place, outcome }: Case): Promise<void> {
  const ran = await readFile(place.canaryFile, "utf8").catch(() => undefined);
  if (ran !== undefined) outcome.harm.push("a file of the clone ran");
  if (place.canary.requests.length > 0) outcome.harm.push(`${place.canary.requests.length} requests left`);
}

/**
 * Runs one attack within a time limit and ends every process that it started. `caches` is the folder that was also used
 * when `bare` was measured.
 */
export async function attackClient(
  attack: Attack,
  variant: Variant,
  { caches, bare }: { caches: string; bare: Baseline },
): Promise<CaseOutcome> {
  const trusted = attack.trusted === undefined ? {} : { trusted: attack.trusted };
  const place = await openPlace({ caches, settings: variant.settings, ...trusted });
  const the: Case = { attack, variant, place, bare, outcome: { stallMs: undefined, harm: [] } };
  let arena: Arena | undefined;
  const timeout = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    the.outcome.harm.push(`not over within ${CASE_MS / 1_000} s`);
    timeout.resolve();
  }, CASE_MS);
  try {
    await Promise.race([
      run(the, (opened) => {
        arena = opened;
      }),
      timeout.promise,
    ]);
    await afterwards(the);
    return the.outcome;
  } finally {
    clearTimeout(timer);
    await arena?.kill();
    await place.dispose();
  }
}
