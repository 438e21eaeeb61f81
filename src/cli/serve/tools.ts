/**
 * What `serve` gives to agents: ToolSearch, `call`, and the tools that a search has found. Owns: which tools a client has
 * listed, what they look like, and what a call answers. Must not: know the protocol's messages.
 * In 2026-07-28 no request may change the list (server/tools): there a tool that was found is called with `call`.
 * A tool is given as its server lists it. A result is given as the server sent it, but for blocks that are none of the protocol:
 * one of them would make the client refuse the whole answer.
 */
import { type Catalog, type CatalogTool, inputSchemaOf } from "../../catalog/catalog.ts";
import { nearestTools, resolveTool } from "../../catalog/search.ts";
import { markedInstructions, nameLine } from "../../report/search.ts";
import { findTools } from "../../report/tool-search.ts";
import { TOOL_SEARCH, TOOL_SEARCH_HEAD } from "../../shared/naming.ts";
import type { CallProgress, DeclaredTool } from "../../shared/protocol/calls.ts";
import type { WorkerEvent } from "../../shared/protocol/contract.ts";
import { messageOf, ThreadsError } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { ServerStatus, StatusReport } from "../../shared/protocol/session.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { failureText } from "../../shared/text/failure.ts";
import { TOOL_SEARCH_PARAMETERS } from "../../shared/text/search-parameters.ts";
import { toolSearchDescription } from "../../shared/text/search-tool.ts";
import { leftOutServers } from "../place/place.ts";
import { type ServerResult, serverResult } from "../session/result.ts";
import type { CliSession } from "../session/session.ts";
import { type OpenCall, OpenCalls, type Shows, type Turn } from "./calls.ts";

export const CALL = "call";
/** Tools that a client has listed, beside ToolSearch and `call`. */
const LISTED = 100;

export interface GivenTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: { type: "object"; [key: string]: unknown };
  outputSchema?: Record<string, unknown>;
  annotations?: Record<string, unknown>;
}

export interface Request {
  name: string;
  args: Record<string, unknown>;
  signal: AbortSignal;
  shows: Shows;
  onProgress: ((progress: CallProgress) => void) | undefined;
}

const CALL_TOOL: GivenTool = {
  name: CALL,
  description:
    "Calls a tool of an MCP server by its name, as ToolSearch shows it: for a tool that you cannot call by its own name.",
  inputSchema: {
    type: "object",
    properties: {
      tool: { type: "string", description: "Name of the tool, for example server__tool." },
      arguments: { type: "object", description: "Its arguments, by the parameters that ToolSearch shows." },
    },
    required: ["tool"],
    additionalProperties: false,
  },
};

/** What stands in place of the head of ToolSearch's description, and above what it finds, where a search changes no list. */
const FIXED_HEAD = `Finds MCP tools. What is found is called with ${CALL}.`;
const FOUND = `Found. Call them with ${CALL}, by their names and these parameters:`;

const text = (...parts: string[]): ServerResult => ({
  content: parts.map((part) => ({ type: "text", text: part })),
});
const failed = (...parts: string[]): ServerResult => ({ ...text(...parts), isError: true });

interface ListingOptions {
  isShared?: boolean;
  isFixed?: boolean;
}

/** The tools that a client has beside ToolSearch and `call`. Those that were found first are left out for new ones. */
export class Listing {
  readonly found = new Set<string>();
  /** Servers whose instructions the client has. Empty where several clients share the list: nobody knows which of them has some. */
  readonly told = new Set<string>();
  readonly isShared: boolean;
  /** A search changes nothing. */
  readonly isFixed: boolean;
  /** Tells the client that its list has changed. */
  onChange: () => void = () => undefined;

  constructor({ isShared = false, isFixed = false }: ListingOptions) {
    this.isShared = isShared;
    this.isFixed = isFixed;
  }

  /** Whether a tool is new. */
  add(tools: readonly CatalogTool[]): boolean {
    if (this.isFixed) return false;
    const isNew = tools.some(({ name }) => !this.found.has(name));
    for (const { name } of tools) {
      this.found.delete(name);
      this.found.add(name);
    }
    for (const oldest of this.found) {
      if (this.found.size <= LISTED) break;
      this.found.delete(oldest);
    }
    return isNew;
  }
}

export class ServedTools {
  readonly calls = new OpenCalls<ServerResult>();
  readonly #listings = new Set<Listing>();
  #statuses = new Map<string, ServerStatus>();
  #waiting: Pick<StatusReport, "questions" | "refused"> = { questions: [], refused: [] };
  #session: CliSession | undefined;
  readonly #log: (line: string) => void;

  /** `log`: takes a line for the person who has started `serve`. */
  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  open(session: CliSession): void {
    this.#session = session;
  }

  listing(options: ListingOptions = {}): Listing {
    const listing = new Listing(options);
    this.#listings.add(listing);
    return listing;
  }

  drop(listing: Listing): void {
    this.#listings.delete(listing);
  }

  onEvent(event: WorkerEvent): void {
    switch (event.type) {
      case "planned": {
        const before = leftOutServers(this.#waiting as StatusReport);
        for (const line of leftOutServers(event)) if (!before.includes(line)) this.#log(line);
        this.#statuses = new Map(event.servers.map((status) => [status.name, status]));
        this.#waiting = event;
        break;
      }
      case "server":
        this.#statuses.set(event.status.name, event.status);
        break;
      case "catalog":
      case "removed":
        for (const { onChange } of this.#listings) onChange();
        break;
    }
  }

  /** Rejects if the configuration cannot be used at all. */
  async #ready(): Promise<CliSession> {
    if (!this.#session) throw new ThreadsError("runtime_stopped", "serve is not ready.");
    await this.#session.planned();
    return this.#session;
  }

  async list({ found, isFixed }: Listing): Promise<GivenTool[]> {
    const session = await this.#ready();
    const catalog = session.store.current();
    const described = descriptionOf(catalog, [...this.#statuses.values()]);
    const about = isFixed ? described.replace(TOOL_SEARCH_HEAD, FIXED_HEAD) : described;
    const own = [searchTool(about), CALL_TOOL];
    const taken = new Set(own.map(({ name }) => name));
    const direct = catalog.marked().filter((tool) => tool.direct === true);
    const tools = new Set([...direct, ...[...found].flatMap((name) => catalog.get(name) ?? [])]);
    const listed = [...tools].filter(({ name }) => !taken.has(name));
    return [...own, ...(await Promise.all(listed.map((tool) => this.#given(session, tool))))];
  }

  async #given(session: CliSession, tool: CatalogTool): Promise<GivenTool> {
    const { name, server, description, annotations } = tool;
    const about = { server: server.name, tool: tool.tool };
    // Without an answer the tool is given as Pi would have it.
    const declared: DeclaredTool =
      (await session.runtime.ask("declaredTool", about).catch(() => undefined)) ?? {};
    const { inputSchema, outputSchema, title } = declared;
    const hints = declared.annotations ?? annotations;
    return {
      name,
      ...(title === undefined ? {} : { title }),
      description,
      inputSchema: isOfObject(inputSchema) ? inputSchema : { ...inputSchemaOf(tool), type: "object" },
      ...(isOfObject(outputSchema) ? { outputSchema } : {}),
      ...(hints ? { annotations: soundHints(hints) } : {}),
    };
  }

  /** Begins a call, and settles with its first question or its result. Does not reject. */
  async begin(listing: Listing, request: Request): Promise<Turn<ServerResult>> {
    try {
      const session = await this.#ready();
      if (request.name === TOOL_SEARCH) return { result: await this.#search(session, listing, request) };
      const asked = request.name === CALL ? calledBy(request.args) : request;
      if ("problem" in asked) return { result: failed(asked.problem) };
      const tool = await this.#find(session, asked.name, request.signal);
      if (!("server" in tool)) return { result: failed(tool.problem) };
      return await this.#run(session, tool, { ...request, args: asked.args });
    } catch (error) {
      return { result: failed(wordsOf(error)) };
    }
  }

  async #search(session: CliSession, listing: Listing, { args, signal }: Request): Promise<ServerResult> {
    const { runtime, store } = session;
    const answer = await findTools(
      {
        settle: (until, servers) =>
          runtime.settleTools(
            { timeoutMs: LIMITS.searchWaitMs, ...(servers ? { servers } : {}) },
            until ?? signal,
          ),
        catalog: store.current,
        servers: () => [...this.#statuses.values()],
        activate: (tools) => ({ active: tools, refused: [] }),
        ...(listing.isFixed && { loadedText: FOUND }),
        log: (message) => runtime.log("info", message),
        whyMissing: (name) => runtime.ask("explainMissing", { name }).catch(() => undefined),
      },
      args,
      signal,
    );
    if (listing.add(answer.loaded)) listing.onChange();
    const waiting = this.#waiting.questions.map(({ server }) => server);
    const notes = nameLine("Waiting for the user's consent, which only the user can give", waiting);
    const loaded = [...new Set(answer.loaded.map(({ server }) => server))];
    const untold = loaded.filter(({ name, instructions }) => instructions && !listing.told.has(name));
    const told = untold.slice(0, LIMITS.instructionsServers).map(({ name, instructions = "" }) => {
      if (!listing.isShared) listing.told.add(name);
      return markedInstructions(name, instructions);
    });
    return text([answer.text, ...notes].join("\n"), ...told);
  }

  async #find(
    session: CliSession,
    written: string,
    signal: AbortSignal,
  ): Promise<CatalogTool | { problem: string }> {
    const { store, runtime } = session;
    let found = resolveTool(store.current(), written);
    if (found.kind === "unknown") {
      await runtime.settleTools({ timeoutMs: LIMITS.searchWaitMs }, signal);
      found = resolveTool(store.current(), written);
    }
    if (found.kind === "tool") return found.tool;
    const [shown = ""] = nameLine("No such tool", [written]);
    if (found.kind === "several") {
      const [names = ""] = nameLine(
        "Several tools have that name",
        found.tools.map(({ name }) => name),
      );
      return { problem: `${names}.` };
    }
    const why = await runtime.ask("explainMissing", { name: written }).catch(() => undefined);
    const near = (await nearestTools(store.current(), written)).map(({ name }) => name);
    const reason = why ? [failureText(why)] : nameLine("Nearest", near);
    return { problem: [`${shown}.`, ...reason, "ToolSearch finds the tools that there are."].join(" ") };
  }

  async #run(
    session: CliSession,
    tool: CatalogTool,
    { args, shows, signal, onProgress }: Request,
  ): Promise<Turn<ServerResult>> {
    const server = tool.server.name;
    const call = this.calls.begin({ server, shows }, async (open, cancelled) => {
      const done = session.onProgress(open.id, (event) => open.onProgress?.(event));
      try {
        const request = { callId: open.id, server, tool: tool.tool, args, wantsStructured: true };
        const { result, isPart } = serverResult(await session.runtime.callTool(request, cancelled));
        const note = isPart
          ? [{ type: "text", text: "Only a part of the result is here: all of it could not be stored." }]
          : [];
        return { ...result, content: [...result.content, ...note] };
      } catch (error) {
        return failed(wordsOf(error), ...(open.wasUnasked ? [UNASKED] : []));
      } finally {
        done();
      }
    });
    if (!call) return { result: failed("Too many calls are open. Call it again when one has ended.") };
    // What a turn of the model is in Pi: a server that was declined may ask again, and one that was dropped connects.
    void call.ended.then(() => this.calls.isIdle && session.runtime.post("turnEnded", {}));
    return this.goOn(call, { signal, onProgress });
  }

  /** Goes on with a call until its next question or its result. Aborting the signal in that time cancels the call. */
  async goOn(
    call: OpenCall<ServerResult> | undefined,
    { signal, onProgress }: Pick<Request, "signal" | "onProgress">,
  ): Promise<Turn<ServerResult>> {
    if (!call) return { result: failed("This call is over. Call the tool again.") };
    const cancel = (): void => call.cancel();
    if (signal.aborted) cancel();
    signal.addEventListener("abort", cancel, { once: true });
    call.onProgress = onProgress;
    try {
      return await call.turn();
    } finally {
      call.onProgress = undefined;
      signal.removeEventListener("abort", cancel);
    }
  }
}

const UNASKED =
  'The client of this agent shows no questions (elicitation), so the question was declined. The user can answer it in Pi, or allow the tool by "approve" in mcp.json.';

/** The catalog's description counts if it names each server and is none of the proxy tool. */
function descriptionOf(catalog: Catalog, statuses: readonly ServerStatus[]): string {
  const { settings, description, servers } = catalog;
  const isKnown = (name: string): boolean => servers.some((server) => server.name === name);
  const others = statuses.filter(({ name, state }) => state !== "disabled" && !isKnown(name));
  if (others.length === 0 && !settings.proxyTool) return description;
  const tools = Map.groupBy(catalog.tools, ({ server }) => server.name);
  const known = servers.map((server) => ({
    ...server,
    tools: (tools.get(server.name) ?? []).map(({ tool }) => tool),
  }));
  return toolSearchDescription([...known, ...others], settings.catalog);
}

const searchTool = (description: string): GivenTool => ({
  name: TOOL_SEARCH,
  description,
  inputSchema: { ...TOOL_SEARCH_PARAMETERS, type: "object" },
  annotations: { readOnlyHint: true, openWorldHint: false },
});

/** A client takes no list with a schema of another root. */
const isOfObject = (schema: unknown): schema is GivenTool["inputSchema"] =>
  isObject(schema) && schema.type === "object";

const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

const soundHints = (hints: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(hints).filter(([name, value]) =>
      name === "title" ? typeof value === "string" : HINTS.includes(name) && typeof value === "boolean",
    ),
  );

function calledBy(
  args: Record<string, unknown>,
): { name: string; args: Record<string, unknown> } | { problem: string } {
  const { tool, arguments: given = {} } = args;
  if (typeof tool !== "string" || tool === "")
    return { problem: `${CALL} needs the name of a tool as "tool".` };
  // A call of itself would be a loop, and ToolSearch has a name of its own.
  if (tool === CALL || tool === TOOL_SEARCH) return { problem: `Call ${tool} by its own name.` };
  if (!isObject(given)) return { problem: '"arguments" must be an object.' };
  return { name: tool, args: given };
}

function wordsOf(error: unknown): string {
  if (!(error instanceof ThreadsError)) return messageOf(error);
  const { message, remedy, data } = error;
  return failureText({ message, remedy, data });
}
