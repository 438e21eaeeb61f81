/**
 * Owns: a port of loopback at which nothing listens, for a test that names a port before a server takes it. No system
 * gives such a port away by itself, and each process goes through ports of its own, so no other program and no other test
 * gets it in between by chance.
 */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that Linux (32768), macOS and Windows (49152) give away by themselves, and above those of services. */
const LOWEST = 16_000;
const COUNT = 16_000;
/** Two processes meet only if their ids differ by a multiple of 250. */
const OF_A_PROCESS = 64;
let next = process.pid * OF_A_PROCESS;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + (next++ % COUNT);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
  server.close();
  await once(server, "close");
  return true;
}
