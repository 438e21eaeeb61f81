/**
 * Owns: the packed connection worker in a process without Vitest: its session, its calls, its sign-ins, and a user who
 * answers each form with its defaults and opens no page.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { KeepLimits } from "../../src/runtime/contract.ts";
import { startValue } from "../../src/shared/asks/check.ts";
import { type SignedIn, signInAs, type User } from "./signing-in.ts";
import { currentCatalog, type Watched, watchRuntime } from "./watched-runtime.ts";

/** A bundled program has another place than this file, and names the worker itself. */
const worker = (): URL =>
  pathToFileURL(join(import.meta.dirname, "..", "..", "dist", "workers", "connection.js"));

export interface PlainSession extends Watched {
  /** Waits for the servers' tools, then answers the names of those of the server. */
  tools(server: string): Promise<string[]>;
  /** Waits until an edit of mcp.json is applied that adds the server, and the server connects or waits for a sign-in. */
  begun(server: string): Promise<void>;
  /** Waits until an edit of mcp.json is applied that removes the server. */
  removed(server: string): Promise<void>;
  /** Signs in. Default: as a user who agrees to everything. */
  signIn(server: string, user?: User): Promise<SignedIn>;
}

/** Starts the worker with the `mcp.json` of the agent folder, and waits until its session is planned. */
export async function startPlainSession(
  place: { agentDir: string; cwd: string },
  { limits = {}, workerUrl = worker() }: { limits?: KeepLimits; workerUrl?: URL } = {},
): Promise<PlainSession> {
  const at = watchRuntime(place, {
    limits,
    workerUrl,
    onQuestion: async (question) => {
      if (question.about === "skill") return "session";
      if (question.about !== "server") return undefined;
      const { ask } = question;
      return ask.kind === "form"
        ? { action: "accept", values: ask.fields.map(startValue) }
        : { action: "decline" };
    },
  });
  const { runtime, events } = at;
  await at.planned;
  const isPlanned = (server: string): boolean => {
    const event = events.findLast(({ type }) => type === "planned");
    return event?.type === "planned" && event.servers.some(({ name }) => name === server);
  };
  const ended = async (id: string) => (await at.event("sign-in", (event) => event.id === id)).result;
  return {
    ...at,
    tools: async (name) =>
      (await currentCatalog(at)).tools.flatMap(({ server, tool }) => (server.name === name ? [tool] : [])),
    begun: async (server) => {
      await at.event("server", ({ status }) => status.name === server && status.state !== "idle");
    },
    removed: async (server) => {
      await at.when(() => !isPlanned(server) || undefined);
    },
    signIn: (server, user = {}) => signInAs(user, { runtime, ended }, server),
  };
}
