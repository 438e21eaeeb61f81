/**
 * Which message of a shared server is for which session: ids and progress tokens, the handshake that all sessions share, the
 * server's questions, and what the sessions want of it together (log level, subscriptions). Owns no process and no socket.
 *
 * Ids: each request of a session gets a number of the hub's own, and its answer the session's id again. A server's question
 * keeps its id, since only one session gets it. Sources: JSON-RPC 2.0, sections 4 and 5; MCP 2025-11-25, basic/lifecycle,
 * basic/utilities/cancellation and progress, client/elicitation; MCP 2026-07-28, basic/subscriptions.
 */
import { isObject } from "../../src/shared/protocol/values.ts";
import { WAITS } from "../shared/hub/wire.ts";
import { type Change, type Envelope, type Part, withChanges, wordOf } from "./envelope.ts";

/** One message: its bytes without the line end, and what was read of it. */
export interface Line {
  pieces: readonly Buffer[];
  bytes: number;
  envelope: Envelope;
}

/** A session that uses the server. */
export interface Party {
  /** Sends the session one message of the server. */
  deliver(pieces: readonly Buffer[]): void;
}

interface RoutesOptions<P extends Party> {
  /** Sends the server one message. */
  toServer: (pieces: readonly Buffer[]) => void;
  /** Answers the server's own question, for no session. */
  reply: (pieces: readonly Buffer[]) => void;
  /** Gets one line about something odd; it holds no content of a message. */
  onNote: (note: string) => void;
  parties: () => Iterable<P>;
  /** Milliseconds of a clock that is never set. */
  now: () => number;
}

interface Request<P> {
  party: P;
  id: string;
  token: string | undefined;
  method: string;
}

/** Requests in which a server may ask the person something (MCP 2025-11-25, client/elicitation and client/sampling). */
const CALLS = new Set(["tools/call", "prompts/get", "resources/read", "completion/complete"]);
/**
 * A call that was given up may still ask: its server has not read that, or works on. It holds back the questions for other
 * sessions until its answer comes, which need not come (MCP 2025-11-25, basic/utilities/cancellation), or for so long.
 */
const GIVEN_UP_MS = 60_000;
const GIVEN_UP_CALLS = 1_000;
/** What one session asks here counts for others as well, so its end cancels none of it. */
const JOINT = new Set(["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);
/** What the hub parses whole is far shorter. */
const SHORT_BYTES = 64 * 1024;
/** RFC 5424, as MCP 2025-11-25, server/utilities/logging: the most detailed first. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const ROOTS = "roots/list";
/** JSON-RPC 2.0, section 5.1: an internal error; the hub is no party that a server knows codes of. */
const REFUSED = -32_603;

const message = (value: object): Buffer[] => [Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...value }))];
/** `id`: as JSON text. */
const answer = (id: string, rest: string): Buffer[] => [
  Buffer.from(`{"jsonrpc":"2.0","id":${id},${rest}}`, "latin1"),
];
/** `id`: as JSON text. */
const question = (id: string, method: string): Buffer[] => [
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"${method}"}`, "latin1"),
];
/** `token`: as JSON text. */
const waiting = (token: string, waits: boolean): Buffer[] => {
  const message = `${waits ? "waits" : "no longer waits"} for a call of another session`;
  const rest = JSON.stringify({ progress: 0, message, _meta: { [WAITS]: waits } }).slice(1);
  const params = `{"progressToken":${token},${rest}`;
  return [Buffer.from(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`, "latin1")];
};
const EMPTY = '"result":{}';

/** Why nobody is asked: what the server is told, and what is noted. */
const UNASKED = {
  several: {
    told: "Several sessions use this server, and a question does not say which one it is for. From now on their calls run one after the other: try the call again.",
    noted: "while several sessions use it: from now on their calls run one after the other",
  },
  givenUp: {
    told: "A call of another session was cancelled less than a minute ago, and a question does not say which call it is of: try the call again in a minute.",
    noted: "less than a minute after a call of another session was cancelled",
  },
  nobody: {
    told: "No session uses this server now, so nobody can be asked.",
    noted: "while no session uses it",
  },
} as const;

/** The hub's own id in an answer: servers may answer a number as a text. */
const numberOf = ({ text }: Part): number =>
  Number(text.startsWith('"') ? text.slice(1, -1) : text || Number.NaN);

/** One text for all spellings of an id, such as `1` and `1.0`, or `"a\/b"` and `"a/b"`. */
function meaningOf({ text }: Part): string {
  try {
    return JSON.stringify(JSON.parse(Buffer.from(text, "latin1").toString("utf8")));
  } catch {
    return text;
  }
}

/** The `params` of a short message; undefined if there are none that can be read. */
function paramsOf({ pieces, bytes }: Line): Record<string, unknown> | undefined {
  if (bytes > SHORT_BYTES) return undefined;
  try {
    const { params }: { params?: unknown } = JSON.parse(Buffer.concat(pieces).toString("utf8"));
    return isObject(params) ? params : undefined;
  } catch {
    return undefined;
  }
}

export class Routes<P extends Party> {
  readonly #options: RoutesOptions<P>;
  #lastId = 0;
  readonly #open = new Map<number, Request<P>>();
  /** Calls whose answer nobody waits for any more, the oldest first. Without a party: it has left. */
  readonly #givenUp = new Map<number, { party: P | undefined; atMs: number }>();
  /** Questions of the server. The key is what the id means, which the session may write in another way. */
  readonly #asked = new Map<string, { party: P; id: Part; method: string }>();
  #handshake:
    | { kind: "asked"; id: number; waiting: { party: P; id: string }[] }
    | { kind: "answered"; line: Line; at: Part }
    | undefined;
  #isInitialized = false;
  /** From the first question on that several sessions could have been asked: calls of different sessions run one after the other. */
  #isSerial = false;
  #queue: { party: P; id: string; line: Line; method: string }[] = [];
  readonly #levels = new Map<P, string>();
  #level: string | undefined;
  readonly #subscribed = new Map<string, Set<P>>();

  constructor(options: RoutesOptions<P>) {
    this.#options = options;
  }

  /** Requests of sessions that the server has not answered. */
  get openRequests(): number {
    return this.#open.size + this.#queue.length;
  }

  fromSession(party: P, line: Line): void {
    const { envelope } = line;
    const method = wordOf(envelope.method);
    const id = envelope.id?.text;
    if (method === undefined) this.#answered(party, line);
    else if (id === undefined) this.#told(party, line, method);
    else if (id === "") this.#options.onNote("was sent a request with an unreadable id, which is dropped");
    else this.#requested(party, { id, line, method });
  }

  /** Some servers write null for a member that they leave out. */
  fromServer(line: Line): void {
    const { id: numbered, method: named } = line.envelope;
    const id = numbered?.text === "null" ? undefined : numbered;
    const method = named?.text === "null" ? undefined : wordOf(named);
    if (id?.text === "") this.#options.onNote("sent a message with an unreadable id, which is dropped");
    else if (method === undefined && id) this.#serverAnswered(line, id);
    else if (method !== undefined && id) this.#serverAsked(line, id, method);
    else this.#serverTold(line, method);
  }

  /** The session is gone: what is open of it is cancelled. */
  leave(party: P): void {
    this.#queue = this.#queue.filter((waiting) => waiting.party !== party);
    for (const [id, request] of this.#open) if (request.party === party) this.#cancel(id, request);
    for (const call of this.#givenUp.values()) if (call.party === party) call.party = undefined;
    if (this.#handshake?.kind === "asked")
      this.#handshake.waiting = this.#handshake.waiting.filter((waiting) => waiting.party !== party);
    for (const { party: of, id, method } of this.#asked.values())
      if (of === party) this.#askAnother(id, method);
    if (this.#levels.delete(party)) this.#lowerLevel();
    for (const [uri, parties] of this.#subscribed) {
      if (!parties.delete(party) || parties.size > 0) continue;
      this.#subscribed.delete(uri);
      this.#ask({ method: "resources/unsubscribe", params: { uri } });
    }
    this.#sendQueued();
  }

  /** The session that was asked has ended. All sessions of one process have the same roots. */
  #askAnother(id: Part, method: string): void {
    const [other] = method === ROOTS ? this.#options.parties() : [];
    if (other) {
      this.#asked.set(meaningOf(id), { party: other, id, method });
      other.deliver(question(id.text, method));
    } else {
      this.#asked.delete(meaningOf(id));
      this.#refuse(id.text, "The session that was asked has ended.");
    }
  }

  #lowerLevel(): void {
    const wanted = this.#wantedLevel();
    if (wanted === undefined || wanted === this.#level) return;
    this.#level = wanted;
    this.#ask({ method: "logging/setLevel", params: { level: wanted } });
  }

  /** The most detailed level that a session wants. */
  #wantedLevel(): string | undefined {
    const wanted = new Set(this.#levels.values());
    return LEVELS.find((level) => wanted.has(level));
  }

  #sendQueued(): void {
    for (let next = this.#queue[0]; next && this.#mayCall(next.party); next = this.#queue[0]) {
      this.#queue.shift();
      // First: should the hub die in between, no session takes a call that was sent for one that was not.
      this.#tellWaiting(next, false);
      this.#send(next.party, next);
    }
  }

  /** Tells the session that its call waits, or waits no more: the clock of the call stands still meanwhile. */
  #tellWaiting({ party, line }: { party: P; line: Line }, waits: boolean): void {
    const token = line.envelope.token?.text;
    if (token) party.deliver(waiting(token, waits));
  }

  /** A request of the hub's own, whose answer nobody needs. */
  #ask(request: object): void {
    this.#options.toServer(message({ id: ++this.#lastId, ...request }));
  }

  #refuse(id: string, why: string): void {
    this.#options.reply(answer(id, `"error":${JSON.stringify({ code: REFUSED, message: why })}`));
  }

  #cancel(id: number, request: Request<P>): void {
    this.#giveUp(id, request);
    if (JOINT.has(request.method)) return;
    const params = { requestId: id, reason: "The session has ended." };
    this.#options.toServer(message({ method: "notifications/cancelled", params }));
  }

  #giveUp(id: number, { party, method }: Request<P>): void {
    this.#open.delete(id);
    if (!CALLS.has(method)) return;
    this.#givenUp.set(id, { party, atMs: this.#options.now() });
    const [oldest] = this.#givenUp.keys();
    if (oldest !== undefined && this.#givenUp.size > GIVEN_UP_CALLS) this.#givenUp.delete(oldest);
  }

  /** A session answers a question. */
  #answered(party: P, { pieces, envelope }: Line): void {
    const { id } = envelope;
    const asked = id && this.#asked.get(meaningOf(id));
    if (!id || asked?.party !== party) return;
    this.#asked.delete(meaningOf(id));
    this.#options.toServer(withChanges(pieces, [[id, asked.id.text]]));
  }

  /** A notification of a session. */
  #told(party: P, line: Line, method: string): void {
    const { toServer } = this.#options;
    if (method === "notifications/initialized") {
      if (this.#isInitialized) return;
      this.#isInitialized = true;
    }
    const { cancels } = line.envelope;
    if (method !== "notifications/cancelled" || !cancels) {
      toServer(line.pieces);
      return;
    }
    this.#queue = this.#queue.filter((waiting) => waiting.party !== party || waiting.id !== cancels.text);
    for (const [id, request] of this.#open) {
      if (request.party !== party || request.id !== cancels.text || JOINT.has(request.method)) continue;
      this.#giveUp(id, request);
      toServer(withChanges(line.pieces, [[cancels, String(id)]]));
    }
    this.#sendQueued();
  }

  #requested(party: P, request: { id: string; line: Line; method: string }): void {
    const { id, line, method } = request;
    if (method === "initialize") this.#initialize(party, id, line);
    else if (this.#isKnown(party, line, method)) party.deliver(answer(id, EMPTY));
    else if (CALLS.has(method) && !(this.#queue.length === 0 && this.#mayCall(party))) {
      this.#queue.push({ party, ...request });
      this.#tellWaiting({ party, line }, true);
    } else this.#send(party, request);
  }

  #mayCall(party: P): boolean {
    if (!this.#isSerial) return true;
    for (const open of this.#open.values()) if (open.party !== party && CALLS.has(open.method)) return false;
    return true;
  }

  #send(party: P, { id, line, method }: { id: string; line: Line; method: string }): number {
    const ours = ++this.#lastId;
    const { id: idPart, token: named } = line.envelope;
    // One that is neither text nor number stands nowhere that could be replaced (MCP 2025-11-25, basic/utilities/progress).
    const token = named?.text ? named : undefined;
    this.#open.set(ours, { party, id, token: token?.text, method });
    const changes: Change[] = [];
    if (idPart) changes.push([idPart, String(ours)]);
    if (token) changes.push([token, String(ours)]);
    this.#options.toServer(withChanges(line.pieces, changes));
    return ours;
  }

  /** The server gets the first one, and every session its answer. */
  #initialize(party: P, id: string, line: Line): void {
    const handshake = this.#handshake;
    if (handshake?.kind === "answered")
      party.deliver(withChanges(handshake.line.pieces, [[handshake.at, id]]));
    else if (handshake) handshake.waiting.push({ party, id });
    else {
      const ours = this.#send(party, { id, line, method: "initialize" });
      this.#handshake = { kind: "asked", id: ours, waiting: [{ party, id }] };
    }
  }

  /** Whether the server need not be asked, since what all sessions want together stays. */
  #isKnown(party: P, line: Line, method: string): boolean {
    if (method === "logging/setLevel") {
      this.#levels.set(party, String(paramsOf(line)?.level));
      const before = this.#level;
      const wanted = this.#wantedLevel();
      // A level that the hub does not know is the server's to refuse.
      if (wanted === undefined) return false;
      this.#level = wanted;
      if (wanted === before) return true;
      if (wanted === this.#levels.get(party)) return false;
      this.#ask({ method, params: { level: wanted } });
      return true;
    }
    if (method !== "resources/subscribe" && method !== "resources/unsubscribe") return false;
    const uri = paramsOf(line)?.uri;
    if (typeof uri !== "string") return false;
    const parties = this.#subscribed.get(uri) ?? new Set();
    if (method === "resources/subscribe") {
      this.#subscribed.set(uri, parties.add(party));
      return parties.size > 1;
    }
    parties.delete(party);
    if (parties.size > 0) return true;
    this.#subscribed.delete(uri);
    return false;
  }

  #serverAnswered(line: Line, at: Part): void {
    const ours = numberOf(at);
    const handshake = this.#handshake;
    if (handshake?.kind === "asked" && handshake.id === ours) {
      this.#open.delete(ours);
      // Whoever is refused may ask once more with another offer, or another session may, so a refusal stands for one request.
      const { error } = line.envelope;
      const isRefused = error !== undefined && error.text !== "null";
      this.#handshake = isRefused ? undefined : { kind: "answered", line, at };
      for (const { party, id } of handshake.waiting) party.deliver(withChanges(line.pieces, [[at, id]]));
      return;
    }
    this.#givenUp.delete(ours);
    const request = this.#open.get(ours);
    // An answer to a request that was cancelled, or to one of the hub's own, is expected.
    if (!request) {
      if (!(ours <= this.#lastId)) this.#options.onNote("answered a request that nobody has sent");
      return;
    }
    this.#open.delete(ours);
    request.party.deliver(withChanges(line.pieces, [[at, request.id]]));
    this.#sendQueued();
  }

  #serverAsked(line: Line, id: Part, method: string): void {
    if (method === "ping") {
      this.#options.reply(answer(id.text, EMPTY));
      return;
    }
    const party = this.#partyFor(method);
    if (party === "several" || party === "givenUp" || party === "nobody") {
      this.#isSerial ||= party === "several";
      this.#refuse(id.text, UNASKED[party].told);
      this.#options.onNote(`asked ${method} ${UNASKED[party].noted}`);
      return;
    }
    this.#asked.set(meaningOf(id), { party, id, method });
    party.deliver(line.pieces);
  }

  /** The only session that a question can be for, or why there is none. All sessions of one process have the same roots. */
  #partyFor(method: string): P | keyof typeof UNASKED {
    const calling = new Set(
      [...this.#open.values()].filter((open) => CALLS.has(open.method)).map(({ party }) => party),
    );
    const all = calling.size > 0 ? calling : new Set(this.#options.parties());
    const [first] = all;
    if (first && method === ROOTS) return first;
    if (all.size > 1) return "several";
    const from = this.#options.now() - GIVEN_UP_MS;
    for (const [id, { atMs }] of this.#givenUp) if (atMs < from) this.#givenUp.delete(id);
    if ([...this.#givenUp.values()].some(({ party }) => !party || party !== first)) return "givenUp";
    return first ?? "nobody";
  }

  #serverTold(line: Line, method: string | undefined): void {
    const { progressOf, subscription, cancels, waits } = line.envelope;
    // A call that waits has not reached the server, so the server cannot know of it: the session would take the call for unsent.
    if (waits) return;
    const about = method === "notifications/progress" ? progressOf : subscription;
    if (about) {
      const request = this.#open.get(numberOf(about));
      const own = about === subscription ? request?.id : request?.token;
      if (request && own !== undefined) request.party.deliver(withChanges(line.pieces, [[about, own]]));
      return;
    }
    if (method === "notifications/cancelled" && cancels) {
      const meaning = meaningOf(cancels);
      const asked = this.#asked.get(meaning);
      const request = this.#open.get(numberOf(cancels));
      this.#asked.delete(meaning);
      if (asked) asked.party.deliver(line.pieces);
      else if (request) request.party.deliver(withChanges(line.pieces, [[cancels, request.id]]));
      return;
    }
    const wanted = method === "notifications/resources/updated" ? paramsOf(line)?.uri : undefined;
    const parties =
      wanted === undefined ? this.#options.parties() : (this.#subscribed.get(String(wanted)) ?? []);
    for (const party of parties) party.deliver(line.pieces);
  }
}
