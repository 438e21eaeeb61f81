/**
 * Owns: the sound answers of the mutating servers, and the times of the accidents.
 * Called by: mutates.ts and support/mutating-http.ts.
 */
import { type Json, randomFor } from "./mutations.ts";

const TOOL = {
  name: "work",
  title: "Work",
  description: "Does work.",
  inputSchema: { type: "object", properties: { number: { type: "number" } } },
  outputSchema: { type: "object", properties: { number: { type: "number" } } },
  annotations: { readOnlyHint: true },
};

/** Returns a sound server's answer; a call's answer has several kinds of content. */
export function soundResult(method: unknown, params: unknown): Json {
  if (method === "initialize")
    return {
      protocolVersion: (params as Json | undefined)?.protocolVersion ?? "2025-06-18",
      capabilities: { tools: { listChanged: true }, logging: {} },
      serverInfo: { name: "mutates", version: "1" },
      instructions: "Use work.",
    };
  if (method === "tools/list") return { tools: [TOOL, { ...TOOL, name: "more" }] };
  if (method !== "tools/call") return {};
  const data = Buffer.from("no image").toString("base64");
  return {
    content: [
      { type: "text", text: "done" },
      { type: "image", data, mimeType: "image/png" },
      { type: "resource_link", uri: "file:///a", name: "a" },
      { type: "resource", resource: { uri: "file:///b", mimeType: "text/plain", text: "b" } },
    ],
    structuredContent: { number: 1 },
    _meta: { a: 1 },
  };
}

/**
 * Returns the accident of a connect: the second of each three connections has an accident in the handshake or in the
 * tool list. `server`: the server's position among the servers of the seed.
 */
export function accidentOf(
  seed: number,
  { server, connection }: { server: number; connection: number },
): { method: string; number: number } | undefined {
  if (connection % 3 !== 1) return undefined;
  const number = -1 - server - 8 * connection;
  return { method: randomFor(seed + 1, number).below(2) === 0 ? "initialize" : "tools/list", number };
}

/** Returns the mutation's number, which the test puts into the call's arguments. */
export const numberOf = (params: unknown): number => {
  const { number } = ((params as Json | undefined)?.arguments ?? {}) as Json;
  return typeof number === "number" ? number : 0;
};
