/**
 * One bounded, timed request to an authorization server. Owns: which addresses may be asked (https or loopback, no
 * private address for a public server), the limits of an answer, and what real servers get wrong and is mended before
 * oauth4webapi looks at it. Must not: know the order of a sign-in. Called by: discovery, grants.
 */
import { abortable } from "../../../shared/pace/abort.ts";
import { createReader, readInTurn } from "../../../shared/pace/turns.ts";
import type { HttpClient, ServerBody } from "../../web/client.ts";
import { SignInProblem } from "../model/model.ts";
import { shownAddress } from "./addresses.ts";
import { AnswerTooLong, explainRequest, type RequestState } from "./failure.ts";
import { createAddressGuard, type Resolve, resolveByDns } from "./guard.ts";
import { type Answer, isHtml, isTangled, mendAnswer } from "./mend.ts";

export { addressProblem, hostOf, isLoopback, namesPrivateHost, shownAddress } from "./addresses.ts";
export { isHtml, readObject } from "./mend.ts";

export interface AuthRequests {
  /**
   * Fits `customFetch` of oauth4webapi. Rejects with `SignInProblem`: unreachable, not-https, private-address,
   * bad-answer (too large), cancelled. A POST that is answered by a web page rejects too, with unavailable or
   * bad-answer, but for status 403. Resolves for any other answer, of any status. Of the headers only content-type and
   * retry-after are kept.
   */
  fetch(
    url: string,
    init: { method?: string; headers?: HeadersInit; body?: unknown; signal?: AbortSignal | null },
  ): Promise<Response>;
}

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
  /** Ends every request. */
  signal: AbortSignal;
  /** Bytes of one answer, and milliseconds of one request with its answer. */
  limits?: { bytes: number; ms: number };
  /** Finds the addresses of a host, by default in DNS. */
  resolve?: Resolve;
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

/**
 * No cookies of an answer are sent: no answer of one server may name the user to it in the next request. `configured`
 * may hold one.
 */
function headersOf(
  given: HeadersInit | undefined,
  form: boolean,
  configured: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers = new Headers(configured);
  for (const name of OF_MESSAGE) headers.delete(name);
  for (const [name, value] of new Headers(given)) if (name !== "cookie") headers.set(name, value);
  headers.set("accept", "application/json");
  if (form && !headers.has("content-type")) headers.set("content-type", "application/x-www-form-urlencoded");
  return Object.fromEntries(headers);
}

const BUSY = new Set([408, 429]);

/** What a web page in the place of an answer means; undefined if its status says enough (403: an unknown client). */
function pageProblem({ status }: Answer, url: URL): SignInProblem | undefined {
  const shown = shownAddress(url);
  if (status === 403) return undefined;
  if (BUSY.has(status) || status >= 500) return new SignInProblem("unavailable", { url: shown, status });
  const what = `HTML in the place of JSON, with status ${status}`;
  return new SignInProblem("bad-answer", { url: shown, status, what });
}

/** oauth4webapi and what reads its answers would end with the stack. */
function tangledProblem({ text, status }: Answer, url: URL): SignInProblem | undefined {
  if (!isTangled(text)) return undefined;
  return new SignInProblem("bad-answer", {
    url: shownAddress(url),
    status,
    what: "it holds too many lists and objects",
  });
}

/** What is wrong with the answer to a POST. Discovery judges the answer to a GET itself. */
const postProblem = (answer: Answer, url: URL): SignInProblem | undefined =>
  isHtml(answer) ? pageProblem(answer, url) : tangledProblem(answer, url);

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
  const limits = options.limits ?? { bytes: ANSWER_BYTES, ms: REQUEST_MS };
  const guard = createAddressGuard({ server, trusted, resolve });
  return {
    fetch: async (address, init) => {
      const url = addressOf(address);
      const method = init.method === "POST" ? "POST" : "GET";
      const { body, form } = bodyOf(init.body);
      const time = AbortSignal.timeout(limits.ms);
      const given = [options.signal, ...(init.signal ? [init.signal] : [])];
      const signal = AbortSignal.any([...given, time]);
      const state = (): RequestState => ({
        url,
        cancelled: given.some(({ aborted }) => aborted),
        late: time.aborted,
        limits,
      });
      try {
        await abortable(guard.check(url), signal, "The request");
        const response = await client.request({
          method,
          url,
          headers: headersOf(init.headers, form, url.origin === server.origin ? configured : {}),
          ...(body === undefined ? {} : { body }),
          signal,
          lookup: guard.lookupFor(url),
        });
        const { status, headers } = response;
        const text = await readText(response.body, limits.bytes);
        if (status > 599) {
          throw new SignInProblem("bad-answer", { url: shownAddress(url), what: `status ${status}` });
        }
        const answer = mendAnswer({ status, contentType: headers["content-type"], text }, method === "POST");
        const problem = method === "POST" ? postProblem(answer, url) : undefined;
        if (problem) throw problem;
        return responseOf(answer, headers["retry-after"]);
      } catch (error) {
        throw explainRequest(error, state());
      }
    },
  };
}
