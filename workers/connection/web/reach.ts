/**
 * The steps below an HTTP exchange, one by one, for a look at what is in its way: the name, the port, the certificate.
 * Nothing is sent over the connections. Each rejects with the system's error or, when the signal fires, with one whose
 * `code` says that nobody answered.
 */
import { lookup } from "node:dns/promises";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import tls from "node:tls";
import { ADDRESS_MS, trustAlso } from "./client.ts";

export interface Address {
  host: string;
  port: number;
}

/** Answers the task, or rejects with `code` when the signal fires. */
async function unlessLate<T>(task: Promise<T>, signal: AbortSignal, code: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(Object.assign(new Error("nobody answered in time"), { code }));
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  // The system goes on with a question that nobody needs any more, and its late error concerns nobody.
  task.catch(() => undefined);
  return Promise.race([task, late]).finally(() => signal.removeEventListener("abort", end));
}

/** The addresses of a host; an address stands for itself. */
export async function lookUp(
  host: string,
  signal: AbortSignal,
): Promise<{ address: string; family: number }[]> {
  const family = isIP(host);
  if (family !== 0) return [{ address: host, family }];
  return unlessLate(lookup(host, { all: true }), signal, "EAI_AGAIN");
}

async function opened<S extends Socket>(
  socket: S,
  event: "connect" | "secureConnect",
  signal: AbortSignal,
): Promise<S> {
  const done = new Promise<S>((resolve, reject) => {
    socket.once(event, () => resolve(socket));
    // This listener stays: an error after the end of the look must not end the worker.
    socket.on("error", reject);
    socket.once("close", () => reject(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" })));
  });
  try {
    return await unlessLate(done, signal, "ETIMEDOUT");
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Opens a connection to one of the addresses. The caller destroys the socket. */
export function openSocket(
  { host, port }: Address,
  addresses: Awaited<ReturnType<typeof lookUp>>,
  signal: AbortSignal,
): Promise<Socket> {
  const known: LookupFunction = (_host, _options, callback) => callback(null, addresses);
  const families = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: ADDRESS_MS };
  return opened(connect({ host, port, lookup: known, ...families }), "connect", signal);
}

/** Checks the server's certificate over an open connection. `ca`: PEM of further authorities. */
export async function shakeHands(
  socket: Socket,
  { host, ca }: { host: string; ca: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const secure = tls.connect({
    socket,
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca.length === 0 ? {} : { secureContext: trustAlso(ca) }),
  });
  (await opened(secure, "secureConnect", signal)).destroy();
}
