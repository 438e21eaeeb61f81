/** Owns: routes between sessions that have names and a server, both of which remember what they are sent. */
import { EnvelopeReader } from "../../../../workers/hub/envelope.ts";
import { type Line, type Party, Routes } from "../../../../workers/hub/routes.ts";

export type Message = Record<string, unknown>;

export const lineOf = (message: Message | string): Line => {
  const text = typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message });
  const bytes = Buffer.from(text);
  const reader = new EnvelopeReader();
  reader.push(bytes);
  return { pieces: [bytes], bytes: bytes.length, envelope: reader.envelope };
};

const parsed = (pieces: readonly Buffer[]): Message => {
  const { jsonrpc, ...message } = JSON.parse(Buffer.concat(pieces).toString()) as Message;
  if (jsonrpc !== "2.0") throw new Error("no message of JSON-RPC 2.0");
  return message;
};

export interface Named extends Party {
  /** What it was sent since the last look. */
  got(): Message[];
  says(message: Message | string): void;
  leaves(): void;
}

export function makeRoutes<N extends string>(...names: N[]) {
  const toServer: Message[] = [];
  const notes: string[] = [];
  const parties = new Set<Named>();
  const send = (pieces: readonly Buffer[]): void => void toServer.push(parsed(pieces));
  let nowMs = 0;
  const routes = new Routes<Named>({
    toServer: send,
    reply: send,
    onNote: (note) => notes.push(note),
    parties: () => parties,
    now: () => nowMs,
  });
  const join = (): Named => {
    const got: Message[] = [];
    const party: Named = {
      deliver: (pieces) => void got.push(parsed(pieces)),
      got: () => got.splice(0),
      says: (message) => routes.fromSession(party, lineOf(message)),
      leaves: () => {
        parties.delete(party);
        routes.leave(party);
      },
    };
    parties.add(party);
    return party;
  };
  return {
    routes,
    notes,
    passes: (ms: number) => {
      nowMs += ms;
    },
    /** What the server was sent since the last look. */
    server: () => toServer.splice(0),
    serverSays: (message: Message | string) => routes.fromServer(lineOf(message)),
    /** One more session. */
    joins: join,
    ...(Object.fromEntries(names.map((name) => [name, join()])) as Record<N, Named>),
  };
}

/** A call as a session sends it. */
export const call = (id: unknown, more: Message = {}): Message => ({
  id,
  method: "tools/call",
  params: { name: "work", ...more },
});
