/**
 * One bounded, timed request to an authorization server. Owns: the limits of an answer, what is mended before oauth4webapi
 * looks at it, and what a request that got no answer means, in plain words. Must not: know the order of a sign-in.
 */
import { abortable } from "../../../shared/pace/abort.ts";
import { createReader, readInTurn } from "../../../shared/pace/turns.ts";
import {
  type Env,
  type HttpClient,
  ProxyError,
  proxyFor,
  type ServerBody,
  type Signer,
} from "../../web/client.ts";
import { SignInProblem } from "../model/model.ts";
import {
  badAnswer,
  createAddressGuard,
  type Reached,
  type Resolve,
  resolveByDns,
  shownAddress,
} from "./addresses.ts";
import { type Answer, isHtml, isTangled, mendAnswer } from "./mend.ts";

class AnswerTooLong extends Error {}

interface RequestState {
  url: URL;
  cancelled: boolean;
  late: boolean;
  limits: { bytes: number; ms: number };
}

/** Each follows "could not be reached: ". */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refuses connections",
  ECONNRESET: "it closed the connection without an answer",
  EPIPE: "it closed the connection without an answer",
  ERR_STREAM_PREMATURE_CLOSE: "it closed the connection before the answer was complete",
  ENOTFOUND: "there is no such host name",
  EAI_AGAIN: "the name service did not answer",
  ETIMEDOUT: "it did not answer",
  EHOSTUNREACH: "its network cannot be reached",
  ENETUNREACH: "its network cannot be reached",
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate comes from an authority that is not known here",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate comes from an authority that is not known here",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate comes from an authority that is not known here",
  HPE_HEADER_OVERFLOW: "its answer has too many headers",
};

/** Codes of a body that cannot be decompressed. */
const BROKEN_ENCODING = /^(?:Z_|ERR__ERROR_|ERR_BROTLI|ERR_PADDING)/;

const codeOf = (error: unknown): string => {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "";
};

function reasonOf(error: unknown): string {
  if (error instanceof ProxyError) return error.message;
  const code = codeOf(error);
  const reason = REASONS[code] ?? "the connection failed";
  return code === "" ? reason : `${reason} (${code})`;
}

/** `error`: what the request or the reading of its answer was rejected with. */
function explainRequest(error: unknown, { url, cancelled, late, limits }: RequestState): SignInProblem {
  const shown = shownAddress(url);
  if (error instanceof SignInProblem) return error;
  if (cancelled) return new SignInProblem("cancelled", {}, error);
  if (late) {
    const what = `no complete answer within ${limits.ms / 1_000} s`;
    return new SignInProblem("unreachable", { url: shown, what }, error);
  }
  if (error instanceof AnswerTooLong) {
    return badAnswer(url, `more than ${limits.bytes / 1_024} KB`, { cause: error });
  }
  if (BROKEN_ENCODING.test(codeOf(error))) {
    return badAnswer(url, "it cannot be decompressed", { cause: error });
  }
  return new SignInProblem("unreachable", { url: shown, what: reasonOf(error) }, error);
}

export interface AuthRequests {
  /**
   * Fits `customFetch` of oauth4webapi. Rejects with `SignInProblem`: unreachable, not-https, private-address,
   * bad-answer (too large), cancelled. A POST that is answered by a web page rejects too, with unavailable or
   * bad-answer, but for status 403. Resolves for any other answer, of any status. Of the headers only content-type and
   * retry-after are kept.
   */
  fetch(
    url: string,
    init: {
      method?: string;
      headers?: HeadersInit;
      body?: unknown;
      signal?: AbortSignal | null;
      signer?: Signer | undefined;
    },
  ): Promise<Response>;
}

/** The same requests, which end with the signal, too. */
export const endingWith = (requests: AuthRequests, signal: AbortSignal): AuthRequests => ({
  fetch: (url, init) =>
    requests.fetch(url, {
      ...init,
      signal: AbortSignal.any([signal, ...(init.signal ? [init.signal] : [])]),
    }),
});

export interface RequestsOptions {
  client: HttpClient;
  /** The MCP endpoint. If it is in a private network itself, it may name private addresses. */
  server: URL;
  /**
   * The configured headers of the MCP server. They go to its own origin and to no other, because a gateway may ask for
   * them in every request. Authorization is not among them: it belongs to the message.
   */
  headers?: Readonly<Record<string, string>>;
  /** Addresses that the user wrote: they may be private. */
  trusted?: readonly string[];
  /** Shared by all requests of a server's sign-in. */
  reached?: Reached;
  signal: AbortSignal;
  /** Bytes of one answer, and milliseconds of one request with its answer. */
  limits?: { bytes: number; ms: number };
  /** Finds the addresses of a host, by default in DNS. */
  resolve?: Resolve;
  /** The environment that names the client's proxies. */
  env?: Env;
}

/** Real answers have a few KB; the longest known metadata have 20. */
const ANSWER_BYTES = 256 * 1024;
const REQUEST_MS = 15_000;

async function readText(body: ServerBody, bytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  await readInTurn(body, body.reader ?? createReader(), (chunk) => {
    length += chunk.length;
    if (length > bytes) throw new AnswerTooLong();
    chunks.push(chunk);
    return undefined;
  });
  return Buffer.concat(chunks).toString("utf8");
}

function addressOf(text: string): URL {
  if (URL.canParse(text)) return new URL(text);
  const [url = ""] = text.split(/[?#]/, 1);
  throw new SignInProblem("bad-answer", { url, what: "it is not an address" });
}

/** oauth4webapi sends nothing else. */
function bodyOf(body: unknown): { body?: string; form: boolean } {
  if (body === undefined || body === null) return { form: false };
  if (typeof body === "string") return { body, form: false };
  if (body instanceof URLSearchParams) return { body: body.toString(), form: true };
  throw new TypeError("a body is a text or a form");
}

/** What the message itself sets is not taken from the configuration. */
const OF_MESSAGE = ["authorization", "content-length", "content-type", "host"];

/** Neither comes from the library: no answer may name the user in the next request, and who asks is said by the client. */
const NOT_OF_LIBRARY = ["cookie", "user-agent"];

/** `configured` may hold a cookie. */
function headersOf(
  given: HeadersInit | undefined,
  form: boolean,
  configured: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers = new Headers(configured);
  for (const name of OF_MESSAGE) headers.delete(name);
  for (const [name, value] of new Headers(given))
    if (!NOT_OF_LIBRARY.includes(name)) headers.set(name, value);
  headers.set("accept", "application/json");
  if (form && !headers.has("content-type")) headers.set("content-type", "application/x-www-form-urlencoded");
  return Object.fromEntries(headers);
}

/** The server has trouble that may pass. */
export const isTrouble = (status: number): boolean => status >= 500 || status === 408 || status === 429;

/** What is wrong with the answer to a POST. Discovery judges the answer to a GET itself. */
function postProblem(answer: Answer, url: URL): SignInProblem | undefined {
  const { text, status } = answer;
  if (!isHtml(answer)) {
    // oauth4webapi and what reads its answers would end with the stack.
    return isTangled(text) ? badAnswer(url, "it holds too many lists and objects", { status }) : undefined;
  }
  // Of a web page the status says enough: an unknown client.
  if (status === 403) return undefined;
  if (isTrouble(status)) return new SignInProblem("unavailable", { url: shownAddress(url), status });
  return badAnswer(url, `HTML in the place of JSON, with status ${status}`, { status });
}

/** Statuses whose answers have no body (Fetch standard, "null body status"). */
const BODILESS = new Set([204, 205, 304]);

function responseOf({ status, contentType, text }: Answer, retryAfter: string | undefined): Response {
  const headers = new Headers();
  if (contentType !== undefined) headers.set("content-type", contentType);
  if (retryAfter !== undefined) headers.set("retry-after", retryAfter);
  return new Response(BODILESS.has(status) ? null : text, { status, headers });
}

export function createAuthRequests(options: RequestsOptions): AuthRequests {
  const { client, server, headers: configured = {}, trusted = [], resolve = resolveByDns } = options;
  const { env = process.env } = options;
  const limits = options.limits ?? { bytes: ANSWER_BYTES, ms: REQUEST_MS };
  const { reached = { isPublic: false } } = options;
  const guard = createAddressGuard(server, { trusted, resolve, reached });
  return {
    fetch: async (address, init) => {
      const url = addressOf(address);
      const method = init.method === "POST" ? "POST" : "GET";
      const { body, form } = bodyOf(init.body);
      const time = AbortSignal.timeout(limits.ms);
      const given = [options.signal, ...(init.signal ? [init.signal] : [])];
      const signal = AbortSignal.any([...given, time]);
      try {
        const isProxied = proxyFor(url, env) !== undefined;
        await abortable(guard.check(url, { isProxied }), signal, "The request");
        const response = await client.request({
          method,
          url,
          headers: headersOf(init.headers, form, url.origin === server.origin ? configured : {}),
          ...(body === undefined ? {} : { body }),
          signal,
          lookup: guard.lookupFor(url),
          signer: init.signer,
        });
        guard.answered(url, response.address);
        const { status, headers } = response;
        const text = await readText(response.body, limits.bytes);
        if (status > 599) throw badAnswer(url, `status ${status}`);
        const answer = mendAnswer({ status, contentType: headers["content-type"], text }, method === "POST");
        const problem = method === "POST" ? postProblem(answer, url) : undefined;
        if (problem) throw problem;
        return responseOf(answer, headers["retry-after"]);
      } catch (error) {
        const cancelled = given.some(({ aborted }) => aborted);
        throw explainRequest(error, { url, cancelled, late: time.aborted, limits });
      }
    },
  };
}
