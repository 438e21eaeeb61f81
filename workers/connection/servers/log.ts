/**
 * Writes a server's words into the log: its logging notifications at their level, and notes about its odd behaviour.
 * The lines are bounded in size and rate, and free of the definition's secrets; the log itself escapes control
 * characters. None of them reaches the terminal. Owns also which secrets of a server no text may show.
 */
import type { LogLevel } from "../../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import { behindName } from "../../shared/commands.ts";
import type { Log } from "../../shared/log.ts";
import { createLineBudget } from "../../shared/pace/pace.ts";
import type { Connection } from "../mcp/connection.ts";
import { boundText, createRedactor, NO_SECRETS, type Redactor, type Secrets } from "../secrets/redact.ts";

/** Level of MCP (2025-11-25, server/utilities/logging, after RFC 5424) -> level of our log. */
const LEVELS: Readonly<Record<string, LogLevel>> = {
  debug: "debug",
  info: "info",
  notice: "info",
  warning: "warn",
  error: "error",
  critical: "error",
  alert: "error",
  emergency: "error",
};

const MESSAGE_CHARS = 2_000;
const LOGGER_CHARS = 60;
const LIMIT = {
  lines: LIMITS.serverLogLines,
  chars: LIMITS.serverLogChars,
  windowMs: LIMITS.serverLogWindowMs,
};

export interface ServerLog {
  /** Takes the `params` of a `notifications/message`, which may have any shape. */
  message(params: unknown): void;
  /** Takes a note about the server, worded to follow the server's name. */
  note(text: string): void;
  /** The server is closed: writes how many lines were dropped. */
  close(): void;
}

function dataText(data: unknown): string {
  if (typeof data === "string") return data;
  try {
    return JSON.stringify(data) ?? "";
  } catch (error) {
    // V8 cannot write data that is nested extremely deep.
    return `[data that cannot be written: ${(error as Error).message}]`;
  }
}

interface Entry {
  level: LogLevel;
  /** What follows the server's name: ` warning`, or `/logger warning`. */
  from: string;
  data: unknown;
}

function readEntry(params: unknown, redact: Redactor): Entry {
  const { level, logger, data } = (params ?? {}) as Record<string, unknown>;
  const known = typeof level === "string" && Object.hasOwn(LEVELS, level) ? level : undefined;
  const name = typeof logger === "string" ? logger.trim().replace(/\s+/g, " ") : "";
  return {
    level: LEVELS[known ?? "info"] ?? "info",
    from: `${name === "" ? "" : `/${boundText(name, LOGGER_CHARS, redact)}`} ${known ?? "of an unknown level"}`,
    data,
  };
}

/** `redact` must know the secrets of the moment it runs: they are known only once the definition is resolved. */
export function createServerLog(server: string, { log, redact }: { log: Log; redact: Redactor }): ServerLog {
  const dropped = (what: string) => (count: number) =>
    log.warn(`${server}: ${count.toLocaleString("en")} ${what} dropped: it says too much`);
  const messages = createLineBudget(LIMIT, dropped("log messages"));
  const notes = createLineBudget(LIMIT, dropped("notes"));
  return {
    message: (params) => {
      let level: LogLevel = "info";
      messages.write(
        () => {
          const entry = readEntry(params, redact);
          level = entry.level;
          return `${server}${entry.from}: ${boundText(dataText(entry.data), MESSAGE_CHARS, redact)}`;
        },
        (line) => log.write(level, line),
      );
    },
    note: (text) => {
      notes.write(
        () => behindName(server, boundText(text, MESSAGE_CHARS, redact)),
        (line) => log.info(line),
      );
    },
    close: () => {
      messages.close();
      notes.close();
    },
  };
}

/** Tokens that are looked for. A rotated token no longer works, so those that were used least recently are forgotten. */
const SIGN_IN_SECRETS = 40;

export interface KnownSecrets {
  /** Takes the secrets known so far out of a text. */
  readonly redact: Redactor;
  /** Those that `redact` takes out. */
  readonly known: Secrets;
  /** Takes the secrets of the definition, which each connect resolves anew. */
  setDefined(secrets: Secrets): void;
  /** Takes a token, a code or another secret of the sign-in. */
  add(secret: string): void;
}

export function createKnownSecrets(): KnownSecrets {
  let defined = NO_SECRETS;
  const ofSignIn = new Set<string>();
  let redactor: Redactor | undefined;
  const known = (): Secrets => ({ values: defined.values, named: [...defined.named, ...ofSignIn] });
  return {
    redact: (text) => {
      redactor ??= createRedactor(known());
      return redactor(text);
    },
    get known() {
      return known();
    },
    setDefined: (secrets) => {
      defined = secrets;
      redactor = undefined;
    },
    add: (secret) => {
      const isKnown = ofSignIn.delete(secret);
      // At the end again: a secret in use is told with each request, and must outlast the rotated ones.
      ofSignIn.add(secret);
      if (isKnown) return;
      const [oldest] = ofSignIn;
      if (ofSignIn.size > SIGN_IN_SECRETS && oldest !== undefined) ofSignIn.delete(oldest);
      redactor = undefined;
    },
  };
}

/** `server` is connected. */
export function connectedLine(
  server: { name: string; toolCount: number },
  { transport, pid, protocol }: Connection,
  tookMs: number,
): string {
  const via = `${transport}${pid === undefined ? "" : `, pid ${pid}`}`;
  const spoken = protocol.version === "" ? "" : `, MCP ${protocol.version}`;
  return `${server.name} connected over ${via} in ${tookMs} ms, ${counted(server.toolCount, "tool")}${spoken}`;
}
