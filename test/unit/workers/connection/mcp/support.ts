/** What the tests of clients share: the options of a connection to a server of the test. */
import type { ConnectOptions } from "../../../../../workers/connection/mcp/connection.ts";
import { definitionOf } from "../servers/support.ts";

/** Nobody listens, and nothing ends the connection, but for what `changes` says. */
export const connectOptions = (changes: Partial<ConnectOptions> = {}): ConnectOptions => ({
  definition: definitionOf("s"),
  cwd: "/cwd",
  npxCacheFile: "/npx",
  signal: new AbortController().signal,
  maxMessageBytes: 1_000,
  onSpawn: () => undefined,
  onExit: () => undefined,
  onNote: () => undefined,
  onLogMessage: () => undefined,
  onSecrets: () => undefined,
  redact: (text) => text,
  onClosed: () => undefined,
  onListChanged: () => undefined,
  ...changes,
});
