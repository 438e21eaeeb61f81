/**
 * Headers that a program of the user gives for each request to one server (`requestHeadersCommand`): signatures over method,
 * address and body. Owns: what the program reads, its bounds, and which headers it may set. It never runs for another server
 * than the configured one: redirects that leave it are not followed, and requests of a sign-in are not signed.
 *
 * The program reads one JSON object, `{version: 1, method, url, bodySha256, bodyBase64}`, and prints one of texts by name: the
 * form of pi-mcp-adapter 2.36.0, with the hash (lower-case hex) beside it.
 */
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { messageOf, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { oneLine } from "../../../../src/shared/text/unprintable.ts";
import { asReason } from "../../../shared/commands.ts";
import { createGate } from "../../../shared/pace/pace.ts";
import { type Collected, collect } from "../../../shared/programs/collect.ts";
import { launchOf } from "../../../shared/programs/launch.ts";
import { spawnServer } from "../../../shared/programs/processes.ts";
import type { HeadersCommand } from "../../config/entry/definition.ts";
import { surroundings } from "../../config/values/run-command.ts";
import type { ConnectOptions } from "../../mcp/connection.ts";
import { boundText } from "../../secrets/redact.ts";
import { type HttpClient, type HttpRequest, staysWithin } from "../../web/client.ts";

/** Runs at a time, for each server; other requests wait. */
export const RUNS_AT_A_TIME = 4;
/** A longer body is not sent: the program would read it in base64. */
export const SIGNED_BODY_BYTES = 8 * 1024 * 1024;
/** stdout and stderr together. */
export const SIGNER_OUTPUT_BYTES = 64 * 1024;
export const SIGNED_HEADERS = 50;
/** Words of stderr in an error. */
export const SIGNER_WORDS_CHARS = 300;

/** Headers that the message itself sets, and those of the connection (RFC 9110, section 7.6.1). */
const OF_MESSAGE =
  /^(?:host|content-(?:length|type|encoding|range|location)|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*|accept|accept-encoding|last-event-id|mcp-.*)$/;
/** RFC 9110, sections 5.1 and 5.5. */
const NAME = /^[\w!#$%&'*+.^`|~-]{1,128}$/;
const VALUE = /^[\t\x20-\x7e]*$/;

/** The headers that a program printed, by names in lower case; or what is wrong with them, behind "its ... ". No value is told. */
export function readHeaders(printed: string): { headers: Record<string, string> } | { wrong: string } {
  if (printed.trim() === "") return { wrong: "printed nothing" };
  let parsed: unknown;
  try {
    parsed = JSON.parse(printed);
  } catch {
    return { wrong: "printed no JSON" };
  }
  if (!isObject(parsed)) return { wrong: "printed no JSON object of headers" };
  const entries = Object.entries(parsed);
  if (entries.length > SIGNED_HEADERS)
    return {
      wrong: `printed ${entries.length.toLocaleString("en")} headers, at most ${SIGNED_HEADERS} are sent`,
    };
  const headers = new Map<string, string>();
  for (const [written, value] of entries) {
    const name = written.toLowerCase();
    const told = oneLine(written, 60);
    if (!NAME.test(name)) return { wrong: `printed a header whose name HTTP does not allow: ${told}` };
    if (OF_MESSAGE.test(name))
      return { wrong: `printed the header ${told}, which belongs to the message itself` };
    if (headers.has(name)) return { wrong: `printed the header ${told} twice` };
    if (typeof value !== "string")
      return { wrong: `printed the header ${told} with a value that is no text` };
    if (!VALUE.test(value))
      return { wrong: `printed the header ${told} with characters that a header cannot hold` };
    // As everywhere, an empty header is not sent.
    if (value.trim() !== "") headers.set(name, value.trim());
  }
  return { headers: Object.fromEntries(headers) };
}

type SigningOptions = Pick<
  ConnectOptions,
  "definition" | "cwd" | "onSpawn" | "onExit" | "onSecret" | "redact"
> & {
  command: HeadersCommand;
  /** The MCP endpoint. */
  url: URL;
};

function wrongEnd(collected: Collected, { timeoutMs }: HeadersCommand): string | undefined {
  switch (collected.how) {
    case "late":
      return `took more than ${timeoutMs / 1_000} s`;
    case "long":
      return `printed more than ${SIGNER_OUTPUT_BYTES / 1024} KiB`;
    case "unstarted":
    case "cancelled":
      return "could not be started";
    default:
      if (collected.code === 0) return undefined;
      return collected.code === null ? "was ended by a signal" : `ended with code ${collected.code}`;
  }
}

/** The same client, whose requests have the headers of the program. Their errors are `bad_config`; then nothing was sent. */
export function signingClient(client: HttpClient, options: SigningOptions): HttpClient {
  const { definition, command, url: server, cwd, onSpawn, onExit, onSecret, redact } = options;
  const { name } = definition;
  const gate = createGate(RUNS_AT_A_TIME);
  const fail = (what: string, stderr = ""): ThreadsError => {
    // Secrets are out before the words are cut.
    const words = oneLine(boundText(stderr.trim(), SIGNER_WORDS_CHARS, redact), SIGNER_WORDS_CHARS);
    const said = words === "" ? "" : `: ${words}`;
    return new ThreadsError("bad_config", `${name}: its requestHeadersCommand ${what}${said}.`, {
      remedy: "The request was not sent. Run the program in a shell to see why.",
      data: { server: name, reason: "request-headers" },
    });
  };

  const start = async () => {
    const where = { cwd, home: homedir(), env: process.env, definedByProject: false };
    const around = await surroundings(where, command.env);
    try {
      return spawnServer(await launchOf({ ...command, ...around, isIndependent: true }, name));
    } catch (error) {
      // Node's own error could show the environment.
      const why = error instanceof ThreadsError ? asReason(name, messageOf(error)).replace(/\.$/, "") : "";
      throw fail("could not be started", why);
    }
  };

  const run = async (stdin: string, signal: AbortSignal): Promise<Collected> => {
    const leave = await gate.enter(signal);
    try {
      signal.throwIfAborted();
      const child = await start();
      const bounds = { waitMs: command.timeoutMs, bytes: SIGNER_OUTPUT_BYTES, endsGroup: true };
      return await collect(child, { ...bounds, stdin, signal, onSpawn, onExit });
    } finally {
      leave();
    }
  };

  const derive = async ({ method, url, headers, body = "", signal }: HttpRequest) => {
    if (!staysWithin(server, url))
      throw fail(`does not sign requests to ${url.origin}, which is another server`);
    if (Buffer.byteLength(body) > SIGNED_BODY_BYTES)
      throw fail(`cannot sign a request of more than ${SIGNED_BODY_BYTES / 1024 / 1024} MiB`);
    const message = {
      version: 1,
      method,
      url: `${url.origin}${url.pathname}${url.search}`,
      bodySha256: createHash("sha256").update(body).digest("hex"),
      bodyBase64: Buffer.from(body).toString("base64"),
    };
    const collected = await run(JSON.stringify(message), signal);
    signal.throwIfAborted();
    const wrong = wrongEnd(collected, command);
    if (collected.how !== "ended" || wrong !== undefined)
      throw fail(wrong ?? "", collected.how === "ended" ? collected.stderr : "");
    const read = readHeaders(collected.stdout);
    if ("wrong" in read) throw fail(read.wrong, collected.stderr);
    const own = read.headers;
    for (const value of Object.values(own)) onSecret?.(value);
    const others = Object.entries(headers).filter(([key]) => !Object.hasOwn(own, key.toLowerCase()));
    return { ...Object.fromEntries(others), ...own };
  };

  return {
    request: (request) => client.request({ ...request, derive }),
    close: () => client.close(),
  };
}
