/** Connects to a server over HTTP: Streamable HTTP first, legacy SSE where the server knows only that. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { messageOf, type ThreadsError } from "../../src/protocol/errors.ts";
import {
  type Connection,
  type ConnectOptions,
  initialize,
  isTimeout,
  startupTimeout,
  toConnection,
} from "./client.ts";
import type { HttpTarget } from "./config/definition.ts";
import { createSse, createStreamable, describeHttpFailure, refusesStreamable } from "./transports/http.ts";

/** Throws `ThreadsError`. */
export async function connectHttp(target: HttpTarget, options: ConnectOptions): Promise<Connection> {
  const { definition } = options;
  const open = async (transport: Transport, kind: "http" | "sse"): Promise<Connection> => {
    const client = await initialize(transport, options);
    return toConnection(client, {
      definition,
      transport: kind,
      pid: undefined,
      close: () => transport.close(),
      whyClosed: () => `${definition.name} closed its connection.`,
    });
  };
  const explain = (error: unknown): ThreadsError =>
    isTimeout(error) ? startupTimeout(options) : describeHttpFailure(definition.name, target, error);
  if (!target.sseOnly) {
    try {
      return await open(createStreamable(target), "http");
    } catch (error) {
      if (!refusesStreamable(error)) throw explain(error);
      options.onNote(`refuses Streamable HTTP (${messageOf(error)}), trying SSE`);
    }
  }
  try {
    return await open(createSse(target), "sse");
  } catch (error) {
    throw explain(error);
  }
}
