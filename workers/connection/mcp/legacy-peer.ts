/** Speaks with a server of the old era, up to MCP 2025-11-25, through the SDK's client: `initialize`, then requests. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ErrorCode,
  InitializeResultSchema,
  McpError,
  ResultSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchemaValidator, jsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/types.js";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { during } from "../../shared/pace/abort.ts";
import {
  CLIENT_INFO,
  capabilitiesOf,
  continueIds,
  onListChanges,
  type Peer,
  takeQuestions,
  type Wire,
} from "./both-eras.ts";
import type { ConnectOptions } from "./connection.ts";
import { isClosed, refusedAnswer, startLimitMs } from "./failures.ts";
import type { OtherOffer } from "./modern/era.ts";
import { offersOf } from "./modern/server.ts";

const LOG_MESSAGE = "notifications/message";

/** Results of any shape are accepted (results/), so the SDK's schema compiler, ajv, is never started. */
const noValidator: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
};

/** What the answer to `initialize` says of the server. Another session may say something else. */
interface Said {
  protocolVersion: string;
  capabilities: Record<string, unknown>;
  instructions?: string | undefined;
}

/** For the second handshake, which only may help: the server runs, and has refused the first. */
const GUESS_MS = 5_000;

/**
 * Sends `initialize`. Rejects with the SDK's error, or with `TooLarge` if the transport refused the answer. `other`: for a
 * server that has refused the usual offer.
 */
export async function initialize(wire: Wire, options: ConnectOptions, other?: OtherOffer): Promise<Peer> {
  const client = new Client(CLIENT_INFO, {
    capabilities: other === "nothing" ? {} : capabilitiesOf(options),
    jsonSchemaValidator: noValidator,
  });
  continueIds(client, wire);
  takeQuestions(client, options);
  client.onerror = (error) => options.onNote(error.message);
  const view = wire.view({ version: other === "nothing" ? undefined : other?.version });
  try {
    const limitMs = startLimitMs(options.definition);
    const timeout = other === "nothing" ? Math.min(options.discoverMs ?? GUESS_MS, limitMs) : limitMs;
    await client.connect(view, { signal: options.signal, timeout });
  } catch (error) {
    throw refusedAnswer(error) ?? error;
  }
  client.onclose = options.onClosed;
  takeLog(client, options);
  onListChanges(client, options.onListChanged);
  let said: Said = {
    protocolVersion: view.protocolVersion ?? "",
    capabilities: client.getServerCapabilities() ?? {},
    instructions: client.getInstructions(),
  };
  askForLog(client, said, options);
  return {
    get protocol() {
      return { era: "legacy" as const, version: said.protocolVersion };
    },
    get capabilities() {
      return said.capabilities;
    },
    get instructions() {
      return said.instructions;
    },
    get isOpen() {
      return client.transport !== undefined;
    },
    renew: (result) => {
      const before = said;
      const now = InitializeResultSchema.safeParse(result);
      // An answer that the client would not have taken the first time changes nothing.
      if (now.success) said = now.data;
      // The server knows nothing of what the session before was told.
      askForLog(client, said, options);
      // The lists that the loss has asked for went by what the server said before.
      if (offersOf(said.capabilities).join() !== offersOf(before.capabilities).join())
        options.onListChanged();
    },
    send: (request, sent) =>
      during(sent.signal, (signal) => client.request(request, ResultSchema, { ...sent, signal })),
    call: (call) =>
      during(call.signal, (signal) =>
        client.request(call.request, ResultSchema, {
          signal,
          timeout: LIMITS.longestTimerMs,
          onprogress: call.onProgress,
        }),
      ),
    ping: async (timeout) => {
      try {
        await client.ping({ timeout });
      } catch (error) {
        // Some servers have no ping: whoever says so is there.
        if (!(error instanceof McpError && error.code === ErrorCode.MethodNotFound)) throw error;
      }
    },
  };
}

/** Hands the server's log messages on, whatever their shape: the SDK's own handler would refuse an unknown level. */
function takeLog(client: Client, { onLogMessage }: ConnectOptions): void {
  client.fallbackNotificationHandler = async ({ method, params }) => {
    if (method === LOG_MESSAGE) onLogMessage(params);
  };
}

/** Only a server that says so can be asked for a level; one that refuses, or does not answer, works all the same. */
function askForLog(client: Client, { capabilities }: Said, { definition, onNote }: ConnectOptions): void {
  if (!capabilities.logging) return;
  client.setLoggingLevel(definition.debug ? "debug" : "info").catch((error: unknown) => {
    if (!isClosed(error)) onNote(`does not take a log level: ${messageOf(error)}`);
  });
}
