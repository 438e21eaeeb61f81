/**
 * An MCP tool as a Pi tool. Owns: the tool's definition in Pi with its schemas, its call, and the form of results and
 * failures. Must not: know when a tool is registered or how the call reaches the server.
 * A failure becomes an error result that ends with the expected parameters; nothing is thrown into Pi.
 * To give Pi another property of a tool: `createMcpTool`, where each object counts.
 */
import { type CatalogTool, inputKeysOf, inputSchemaOf, outputSchemaOf } from "../catalog/catalog.ts";
import type { PiTool, ToolExposure, ToolResult } from "../pi/api.ts";
import { serverPrefix } from "../shared/naming.ts";
import { type CallProgress, type CallResult, decode } from "../shared/protocol/calls.ts";
import { type ErrorData, type JsonValue, ThreadsError, toWireError } from "../shared/protocol/errors.ts";
import type { RootKey, SnapshotServer } from "../shared/snapshot/contract.ts";
import { failureText } from "../shared/text/failure.ts";
import { parameterList } from "../shared/text/signature.ts";
import { cleanText, cut, oneLine } from "../shared/text/unprintable.ts";
import { createRenderers, type RowDetails } from "./rows.ts";
import type { ReadBranch, ToldInstructions } from "./told.ts";

type OutputSchema = Record<string, unknown>;

/** One object type for every kind of block, because codemode shows this declaration for every tool. */
const CONTENT: OutputSchema = {
  type: "array",
  items: {
    type: "object",
    properties: {
      type: { enum: ["text", "image", "audio", "resource_link", "resource"] },
      text: { type: "string" },
      data: { type: "string" },
      mimeType: { type: "string" },
    },
    required: ["type"],
    additionalProperties: true,
  },
};
const IS_ERROR: OutputSchema = { type: "boolean" };

const resultSchema = (properties: OutputSchema): OutputSchema => ({
  type: "object",
  properties,
  required: ["content"],
  // Newer versions of the protocol add properties.
  additionalProperties: true,
});

/** For a tool without an output schema: the server may send structured content all the same. */
const ANY_RESULT = resultSchema({ content: CONTENT, structuredContent: {}, isError: IS_ERROR });

export function lazyOutputSchema(tool: CatalogTool): OutputSchema {
  const bytes = outputSchemaOf(tool);
  if (!bytes) return ANY_RESULT;
  let decoded: unknown;
  return resultSchema({
    content: CONTENT,
    get structuredContent() {
      decoded ??= decode(bytes);
      return decoded;
    },
    isError: IS_ERROR,
  });
}

type Schema = Record<string, unknown>;

const toolOf = new WeakMap<object, CatalogTool>();
const decodedOf = new WeakMap<object, Schema>();

function readKey(schema: object, key: string): unknown {
  let decoded = decodedOf.get(schema);
  if (!decoded) {
    decoded = inputSchemaOf(toolOf.get(schema) as CatalogTool);
    decodedOf.set(schema, decoded);
  }
  return decoded[key];
}

/**
 * One getter per key, for all tools. If two objects have different getters for one key, V8 turns the second object into
 * a dictionary, which takes four times as long.
 */
const accessors = new Map<string, PropertyDescriptor>();

function accessorOf(key: string): PropertyDescriptor {
  let accessor = accessors.get(key);
  if (!accessor) {
    const get = function (this: object): unknown {
      return readKey(this, key);
    };
    accessor = { enumerable: true, configurable: true, get };
    accessors.set(key, accessor);
  }
  return accessor;
}

/** All properties are own and enumerable, so spread, JSON and structured clone see a plain JSON Schema. */
export function lazyInputSchema(tool: CatalogTool): Schema {
  const schema: Schema = {};
  const rootKeys = inputKeysOf(tool);
  // An index loop and `Reflect`, because an iterator and `Object.defineProperties` take twice as long. That counts for
  // 2,000 tools.
  for (let at = 0; at < rootKeys.length; at++) {
    const entry = rootKeys[at] as RootKey;
    if (typeof entry === "string") Reflect.defineProperty(schema, entry, accessorOf(entry));
    else schema[entry[0]] = entry[1];
  }
  toolOf.set(schema, tool);
  return schema;
}

export interface ToolCall {
  callId: string;
  server: string;
  tool: string;
  args: Record<string, unknown>;
  signal: AbortSignal | undefined;
  /** True for a call from a script, which reads the server's own result. */
  wantsStructured: boolean;
  branch: ReadBranch;
  onProgress: (message: string, counted?: Omit<CallProgress, "message">) => void;
}

/** A result, and what the server says about its use if the model has not read it yet. */
export interface ToldResult extends CallResult {
  instructions?: ToldInstructions | undefined;
}

export type CallTool = (call: ToolCall) => Promise<ToldResult>;

const expectedCall = (tool: CatalogTool): string => `${tool.name}${parameterList(inputSchemaOf(tool))}`;

/** The last line of an error that wrong arguments may have caused. */
export const expectedLine = (tool: CatalogTool): string => `Expected parameters: ${expectedCall(tool)}`;

const NO_RIGHT = /denied|forbidden|unauthori[sz]ed|not authori[sz]ed|operation not permitted|no permission/i;
const NO_TIME = /timed out|\btime-?out\b|cancell?ed|rate limit|too many requests/i;
const ABOUT_ARGUMENTS = /argument|parameter|schema|validat/i;

/** Whether an error speaks of a right or of time: other arguments do not help then. */
const isDenial = (text: string): boolean =>
  (NO_RIGHT.test(text) || NO_TIME.test(text)) && !ABOUT_ARGUMENTS.test(text);

/**
 * What HTTP answers to a request that it cannot read. Other refusals are about the address, rights and time. None: the server
 * refused in its own words.
 */
const BAD_REQUEST: unknown[] = [undefined, 400, 422];
/** Codes of JSON-RPC: a method that the server does not have, and a page that the user has to open first. */
const NOT_ABOUT_ARGUMENTS = [-32601, -32042];

const textOf = (block: object = {}): string => ("text" in block ? `${block.text}` : "");

/**
 * Whether another tool, such as a codemode script, makes the call: Pi gives such a call the id `<calling id>/<n>`. Only
 * such a caller reads `structuredContent`, the server's whole result. Other calls omit it, because in RPC mode Pi writes
 * every result to its event stream.
 */
const isNested = (callId: string): boolean => /\/\d+$/.test(callId);

/**
 * The server's own error as a result for a script, which does not see `details`: code, message and data of the JSON-RPC
 * error (the data may be cut). Empty for a call that the server did not answer: Pi then rejects it with the text.
 */
function answeredError(data: ErrorData | undefined, message: string): Pick<ToolResult, "structuredContent"> {
  if (typeof data?.rpcCode !== "number") return {};
  const { rpcCode: code, rpcData } = data;
  const error = { code, message, ...(rpcData === undefined ? {} : { data: rpcData }) };
  return { structuredContent: { content: [{ type: "text", text: message }], isError: true, error } };
}

const readJson = (json: Uint8Array): JsonValue => JSON.parse(Buffer.from(json).toString()) as JsonValue;

/** Longest label of a row. A tool's name at its server may have 1,000 characters. */
const LABEL_CHARS = 200;

type Namespace = NonNullable<PiTool["namespace"]>;
const namespaces = new WeakMap<SnapshotServer, Namespace>();

/** One object per server, shared by all of its tools. */
function namespaceOf(server: SnapshotServer): Namespace {
  let namespace = namespaces.get(server);
  if (!namespace) {
    namespace = {
      name: serverPrefix(server.name),
      aliases: [oneLine(server.name, LABEL_CHARS)],
      ...(server.description === undefined ? {} : { description: server.description }),
      ...(server.instructions === undefined ? {} : { instructions: server.instructions }),
    };
    namespaces.set(server, namespace);
  }
  return namespace;
}

const rowOf = ({ server, tool }: CatalogTool): RowDetails => ({ server: server.name, tool });

function toResult(tool: CatalogTool, result: ToldResult): ToolResult {
  const { content, isError, bytes, storedAt, forUser, scriptResult, scriptProblem, instructions } = result;
  const row: RowDetails = {
    ...rowOf(tool),
    durationMs: Math.round(result.durationMs),
    ...(bytes ? { bytes: { received: bytes.received, shown: bytes.shown } } : {}),
    ...(storedAt === undefined ? {} : { storedAt }),
    ...(forUser === undefined ? {} : { forUser }),
  };
  if (scriptProblem !== undefined) {
    // A script must not go on with a part of the result, so its call rejects with this text.
    const details = { ...row, code: "message_too_large" };
    return { content: [{ type: "text", text: scriptProblem }], details, isError: true };
  }
  const texts = [
    ...(isError && !isDenial(textOf(content[0])) ? [expectedLine(tool)] : []),
    ...(instructions ? [instructions.text] : []),
  ];
  return {
    content: [...content, ...texts.map((text) => ({ type: "text" as const, text }))],
    details: instructions ? { ...row, instructed: instructions.servers } : row,
    ...(isError ? { isError: true } : {}),
    ...(scriptResult ? { structuredContent: readJson(scriptResult) } : {}),
  };
}

function toFailure(tool: CatalogTool, error: unknown, nested: boolean): ToolResult {
  const { code, data } = toWireError(error);
  const known = error instanceof ThreadsError ? error : { message: `${tool.name} failed: ${String(error)}` };
  const { message } = known;
  const remedy = "remedy" in known ? known.remedy : undefined;
  // Other arguments help only where the server has refused these, and has not begun with them.
  const isRefused =
    BAD_REQUEST.includes(data?.status) &&
    !NOT_ABOUT_ARGUMENTS.includes(Number(data?.rpcCode)) &&
    !data?.begun;
  const isArguments = code === "call_rejected" && isRefused && !isDenial(message);
  const expected = isArguments ? expectedCall(tool) : undefined;
  return {
    content: [{ type: "text", text: failureText({ message, remedy, data, expected }) }],
    details: { ...rowOf(tool), code, ...(data === undefined ? {} : { data }) },
    isError: true,
    ...(nested ? answeredError(data, message) : {}),
  };
}

/** Pi asks for it at once, so the session loads the code before the model can call a tool. */
let prepared: ((tool: CatalogTool, args: unknown) => unknown) | undefined;

/** Settles when each call's arguments are read as the model meant them. */
export async function loadArguments(): Promise<void> {
  prepared ??= (await import("./arguments.ts")).preparedArguments;
}

/** The factory calls this for thousands of tools at once, so each tool consists of few objects. */
export function createMcpTool(
  tool: CatalogTool,
  call: CallTool,
  exposure: ToolExposure = "deferred",
): PiTool {
  const namespace = namespaceOf(tool.server);
  // `oneLine` has a short way for plain names. The dot between the two names would close that way for every label.
  const label = cut(`${namespace.aliases?.[0] ?? ""} · ${oneLine(tool.tool, LABEL_CHARS)}`, LABEL_CHARS);
  const { renderCall, renderResult } = createRenderers(label);
  const piTool: PiTool = {
    name: tool.name,
    label,
    renderCall,
    renderResult,
    description: tool.description,
    parameters: lazyInputSchema(tool),
    outputSchema: lazyOutputSchema(tool),
    exposure,
    namespace,
    prepareArguments: (args) => (prepared ? prepared(tool, args) : args) as Record<string, unknown>,
    async execute(callId, args, signal, onUpdate, ctx) {
      const wantsStructured = isNested(callId);
      const onProgress: ToolCall["onProgress"] = (text, { progress, total } = {}) =>
        onUpdate?.({
          content: [{ type: "text", text: cleanText(text) }],
          details: { ...rowOf(tool), progress, total },
        });
      try {
        return toResult(
          tool,
          await call({
            callId,
            server: tool.server.name,
            tool: tool.tool,
            args: args ?? {},
            signal,
            wantsStructured,
            branch: () => ctx.sessionManager.buildContextEntries(),
            onProgress,
          }),
        );
      } catch (error) {
        return toFailure(tool, error, wantsStructured);
      }
    },
  };
  // A spread in the literal would make each of 2,000 objects a slow one for V8.
  if (tool.annotations) piTool.annotations = tool.annotations;
  return piTool;
}
