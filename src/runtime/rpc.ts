/**
 * Requests to the connection worker. The only place where a request settles: by reply, deadline, abort or the worker's
 * exit, whichever comes first. Every rejection is a `ThreadsError`.
 */
import type { ConnectionApi, ConnectionMethod, ConnectionMethods } from "../shared/protocol/contract.ts";
import { fromWireError, messageOf, type Reply, ThreadsError } from "../shared/protocol/errors.ts";
import type { RuntimeThread } from "./thread.ts";

export interface RequestOptions {
  /** Milliseconds until the request fails with `deadline`. */
  deadlineMs: number;
  signal?: AbortSignal | undefined;
  /** The request does not keep the process alive. */
  background?: boolean;
}

export interface Rpc {
  request<M extends ConnectionMethod>(
    method: M,
    params: ConnectionMethods[M]["params"],
    options: RequestOptions,
  ): Promise<ConnectionMethods[M]["value"]>;
  /** Number of requests that have not settled. */
  readonly open: number;
  /** Fails every open and every later request: the worker does not answer any more. */
  end(error: ThreadsError): void;
}

export function createRpc(thread: RuntimeThread): Rpc {
  let lastId = 0;
  const open = new Map<number, (error: ThreadsError) => void>();
  let gone: ThreadsError | undefined;

  const end = (error: ThreadsError): void => {
    gone ??= error;
    for (const fail of open.values()) fail(gone);
  };
  void thread.exited.then(({ exitCode, reason }) => {
    const error = new ThreadsError(
      "runtime_restarted",
      `The connection worker ended with code ${exitCode}${reason === undefined ? "" : `: ${reason}`}.`,
      {
        remedy: "A new one is started. The call may have run: repeat it only if that does no harm.",
        data: { exitCode },
      },
    );
    end(error);
  });

  // comlink makes a proxy, which the collector must finalize, each time that a method is named.
  const send = thread.api.request as unknown as ConnectionApi["request"];

  const request = async (
    method: ConnectionMethod,
    params: unknown,
    options: RequestOptions,
  ): Promise<unknown> => {
    if (gone) throw gone;
    if (options.signal?.aborted) throw cancelled(method);
    const id = ++lastId;
    const { signal } = options;
    let timer: NodeJS.Timeout | undefined;
    let onAbort: (() => void) | undefined;
    if (!options.background) thread.hold();
    try {
      const reply = await new Promise<Reply<unknown>>((resolve, reject) => {
        // The worker is told once. A worker that has ended or hangs need not confirm.
        const abandon = (error: ThreadsError): void => {
          thread.api.cancel(id).catch(() => undefined);
          reject(error);
        };
        open.set(id, reject);
        timer = setTimeout(() => abandon(late(method, options.deadlineMs)), options.deadlineMs);
        onAbort = () => abandon(cancelled(method));
        signal?.addEventListener("abort", onAbort);
        // comlink rejects only if the arguments cannot be cloned; the worker answers every failure as a reply.
        send(id, method, params).then(resolve, (error) =>
          reject(new ThreadsError("internal", messageOf(error))),
        );
      });
      if (reply.ok) return reply.value;
      throw fromWireError(reply.error);
    } finally {
      clearTimeout(timer);
      if (onAbort) signal?.removeEventListener("abort", onAbort);
      open.delete(id);
      if (!options.background) thread.release();
    }
  };

  return {
    request: request as Rpc["request"],
    get open() {
      return open.size;
    },
    end,
  };
}

const cancelled = (method: string): ThreadsError => new ThreadsError("cancelled", `${method} was cancelled.`);

const late = (method: string, deadlineMs: number): ThreadsError =>
  new ThreadsError(
    "deadline",
    `The connection worker did not answer ${method} within ${Math.round(deadlineMs / 1_000)} s.`,
    {
      remedy: "If this goes on, /reload starts it again; mcp-threads.log may say why.",
      data: { deadlineMs },
    },
  );
