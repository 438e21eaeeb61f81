/**
 * MCP over HTTP: which of the SDK's transports to try, and what a refusal means. Streamable HTTP first,
 * the legacy SSE transport where the server does not know it (MCP 2025-11-25, basic/transports,
 * backwards compatibility).
 */
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { SSEClientTransport, SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { messageOf, ThreadsError } from "../../../src/protocol/errors.ts";
import type { HttpTarget } from "../config/definition.ts";

/** Statuses by which a server says that it does not speak Streamable HTTP at this address. */
const NOT_STREAMABLE = new Set([404, 405, 406, 415]);
const NEEDS_AUTH = new Set([401, 403]);

export const createStreamable = (target: HttpTarget): Transport =>
  // The SDK declares `sessionId` in a way that `exactOptionalPropertyTypes` refuses; the class is its own Transport.
  new StreamableHTTPClientTransport(new URL(target.url), {
    requestInit: { headers: target.headers },
  }) as Transport;

export const createSse = (target: HttpTarget): Transport =>
  new SSEClientTransport(new URL(target.url), {
    requestInit: { headers: target.headers },
  });

/** HTTP status behind an error of the SDK's transports, if any. */
export function statusOf(error: unknown): number | undefined {
  if (error instanceof StreamableHTTPError || error instanceof SseError) {
    return error.code !== undefined && error.code > 0 ? error.code : undefined;
  }
  return error instanceof UnauthorizedError ? 401 : undefined;
}

export const refusesStreamable = (error: unknown): boolean => {
  const status = statusOf(error);
  return status !== undefined && NOT_STREAMABLE.has(status);
};

/** The innermost reason of a failed `fetch`: undici hides it in `cause`. */
function innermost(error: unknown): string {
  let current = error;
  while (current instanceof Error && current.cause instanceof Error) current = current.cause;
  const code = (current as NodeJS.ErrnoException).code;
  const text = messageOf(current);
  return code && !text.includes(code) ? `${text} (${code})` : text;
}

const firstLine = (text: string): string => text.trim().split(/\r?\n/, 1)[0]?.slice(0, 200) ?? "";

/** What the user is told of a failed connect. The URL's query is left out: it may hold a key. */
export function describeHttpFailure(server: string, target: HttpTarget, error: unknown): ThreadsError {
  const url = new URL(target.url);
  const address = `${url.origin}${url.pathname}`;
  const status = statusOf(error);
  if (status !== undefined && NEEDS_AUTH.has(status)) {
    return new ThreadsError("needs_auth", `${server}: ${address} answered ${status}.`, {
      remedy: "The server wants credentials: set headers for it in mcp.json.",
      data: { server },
    });
  }
  const text = messageOf(error);
  const html = /unexpected content type: text\/html|<!doctype html|<html/i.test(text);
  let reason = innermost(error);
  if (html) reason = `it answered with a web page (HTML)${status === undefined ? "" : `, status ${status}`}`;
  else if (status !== undefined) reason = `it answered status ${status}`;
  return new ThreadsError("connect_failed", `${server}: no MCP server at ${address}: ${firstLine(reason)}.`, {
    remedy: html
      ? "The url must be the MCP endpoint, often ending in /mcp."
      : "Check the url in mcp.json and that the server is up.",
    data: { server, ...(status === undefined ? {} : { status }) },
  });
}
