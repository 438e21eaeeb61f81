/**
 * Turns handlers into the object that comlink exposes: each request gets an abort signal, each outcome becomes a
 * `Reply`, and bytes are transferred instead of copied. No error is thrown across the thread boundary.
 */
import { transfer } from "comlink";
import {
  CONNECTION_METHODS,
  type ConnectionApi,
  type ConnectionMethod,
} from "../../../src/shared/protocol/api.ts";
import { type Reply, ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { endIfFileGone, type Log } from "../../shared/log.ts";
import type { Handler } from "../session/session.ts";
import { createCollector } from "./collector.ts";

export type Handlers = { [M in ConnectionMethod]: Handler<M> };

type AnyHandler = (params: unknown, signal: AbortSignal) => Promise<unknown>;

/** Fewer bytes are copied sooner than their buffer changes its thread. */
const TRANSFERRED_BYTES = 16 * 1024;

function replyWith(value: unknown): Reply<unknown> {
  const reply: Reply<unknown> = { ok: true, value };
  const isLarge = value instanceof Uint8Array && value.byteLength >= TRANSFERRED_BYTES;
  return isLarge ? transfer(reply, [value.buffer as ArrayBuffer]) : reply;
}

export function serve(handlers: Handlers, log: Log, collector = createCollector()): ConnectionApi {
  const open = new Map<number, AbortController>();

  const answer = async (
    method: ConnectionMethod,
    requestId: number,
    params: unknown,
  ): Promise<Reply<unknown>> => {
    const controller = new AbortController();
    collector.busy();
    open.set(requestId, controller);
    try {
      return replyWith(await (handlers[method] as AnyHandler)(params, controller.signal));
    } catch (error) {
      await endIfFileGone(error, log);
      if (!(error instanceof ThreadsError)) {
        log.error(`${method}: ${error instanceof Error ? error.stack : String(error)}`);
      }
      return { ok: false, error: toWireError(error) };
    } finally {
      open.delete(requestId);
      if (open.size === 0) collector.idle();
    }
  };

  const methods = CONNECTION_METHODS.map((method) => [
    method,
    (requestId: number, params: unknown) => answer(method, requestId, params),
  ]);
  return {
    ...Object.fromEntries(methods),
    cancel: (requestId: number) => open.get(requestId)?.abort(),
  } as ConnectionApi;
}
