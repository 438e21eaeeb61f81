/**
 * Owns: that each of several sessions gets exactly the answers to its own requests, whatever they send and in whatever order a
 * server answers, asks, and loses sessions. `HUB_SEED` repeats a run.
 */
import { expect, test } from "vitest";
import { amount, repeats } from "../../../support/long.ts";
import { call, type Message, makeRoutes, type Named } from "./make-routes.ts";

const ROUNDS = repeats("HUB_ROUNDS", amount(60, 300));
const STEPS = 300;
const seed = Number(process.env.HUB_SEED ?? Date.now() % 1e9);

/** Repeats itself for the same seed. */
function random(from: number): (below: number) => number {
  let state = from;
  return (below) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Session {
  party: Named;
  /** What was asked, by the id as JSON; each request names itself. */
  open: Map<string, string>;
  tokens: Map<string, string>;
}

/** A server that holds requests and answers any of them, with what it was asked. */
function play(round: number): void {
  const below = random(seed + round);
  const all = makeRoutes("a", "b", "c", "d");
  const sessions: Session[] = [all.a, all.b, all.c, all.d].map((party) => ({
    party,
    open: new Map(),
    tokens: new Map(),
  }));
  const held: Message[] = [];
  const asked = new Map<string, Session>();
  let last = 0;

  const ask = ({ party, open, tokens }: Session): void => {
    const id = [below(5), `id ${below(5)}`, -below(5), 2 ** 40 + below(5)][below(4)];
    const key = JSON.stringify(id);
    if (open.has(key)) return;
    const name = `request ${++last}`;
    const token = below(2) === 0 ? `token of ${name}` : undefined;
    open.set(key, name);
    if (token !== undefined) tokens.set(JSON.stringify(token), name);
    const _meta = token === undefined ? {} : { _meta: { progressToken: token } };
    if (below(3) === 0) party.says({ id, method: "tools/list", params: { name, ..._meta } });
    else party.says(call(id, { name, ..._meta }));
  };
  const cancel = ({ party, open }: Session): void => {
    const [key] = open.keys();
    if (key === undefined) return;
    open.delete(key);
    party.says({ method: "notifications/cancelled", params: { requestId: JSON.parse(key) } });
  };
  const readServer = (): void => {
    for (const message of all.server()) {
      const { method, id, params } = message as { method?: string; id?: unknown; params?: Message };
      if (method === "notifications/cancelled") {
        const at = held.findIndex((one) => one.id === params?.requestId);
        // A cancel of the hub's own is about what the server has.
        expect(at).not.toBe(-1);
        // A server may have answered already, or answer all the same.
        if (below(2) === 0) held.splice(at, 1);
      } else if (method !== undefined) held.push(message);
      else {
        const session = asked.get(JSON.stringify(id));
        asked.delete(JSON.stringify(id));
        if (session && "result" in message) expect(message.result).toBe(sessions.indexOf(session));
      }
    }
  };
  const answer = (): void => {
    const [request] = held.splice(below(held.length), 1);
    if (!request) return;
    const { name, _meta } = request.params as { name: string; _meta?: { progressToken: unknown } };
    if (_meta)
      all.serverSays({
        method: "notifications/progress",
        params: { progressToken: _meta.progressToken, message: name },
      });
    all.serverSays({ id: request.id, result: name });
    if (below(10) === 0) all.serverSays({ id: request.id, result: "twice" });
  };
  const question = (): void => all.serverSays({ id: `q${++last}`, method: "elicitation/create" });
  const read = (session: Session): void => {
    const { party, open, tokens } = session;
    for (const message of party.got()) {
      const { id, method, result, params } = message as Message & { params?: Message };
      if (method === "notifications/progress") {
        const name = tokens.get(JSON.stringify(params?.progressToken));
        // The hub's own names no request: the token must be one of this session.
        const isOfHub = params?._meta !== undefined && name !== undefined;
        expect(isOfHub ? params.message : name).toBe(params?.message);
      } else if (method !== undefined) {
        asked.set(JSON.stringify(id), session);
        party.says({ id, result: sessions.indexOf(session) });
      } else {
        expect(open.get(JSON.stringify(id))).toBe(result);
        open.delete(JSON.stringify(id));
      }
    }
  };
  const settle = (): void => {
    readServer();
    for (const session of sessions) read(session);
    readServer();
  };

  for (let step = 0; step < STEPS; step++) {
    const session = sessions[below(sessions.length)];
    const what = below(20);
    if (session && what < 9) ask(session);
    else if (session && what < 11) cancel(session);
    else if (what < 18) answer();
    else if (what === 18 && below(20) === 0) question();
    settle();
  }
  const [gone] = sessions.splice(below(sessions.length), 1);
  gone?.party.leaves();
  settle();
  while (held.length > 0) {
    answer();
    settle();
  }
  expect(sessions.map(({ open }) => open.size)).toEqual([0, 0, 0]);
  expect(gone?.party.got()).toEqual([]);
  expect(all.routes.openRequests).toBe(0);
}

test(`${ROUNDS} rounds of four sessions and a server in random order -> each gets exactly its own answers`, () => {
  for (let round = 0; round < ROUNDS; round++) {
    try {
      play(round);
    } catch (error) {
      throw new Error(`HUB_SEED=${seed}, round ${round}: ${String(error)}`, { cause: error });
    }
  }
});
