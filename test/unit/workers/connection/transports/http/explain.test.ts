/** Owns: each kind of HTTP failure -> one sentence that is true of a connect, and one that is true of a call. */
import { describe, expect, test } from "vitest";
import { TooLarge } from "../../../../../../workers/connection/messages/too-large.ts";
import { createRedactor } from "../../../../../../workers/connection/secrets/redact.ts";
import {
  describeConnect,
  explainConnect,
  explainRequest,
  type HttpAddress,
  type HttpFailure,
} from "../../../../../../workers/connection/transports/http/failure.ts";

const SECRET = "s3cr3t-of-the-test";

function address(more: Partial<HttpAddress> = {}): HttpAddress {
  return {
    server: "web",
    url: new URL("http://a.test/mcp?key=1"),
    proxy: undefined,
    credentials: [],
    keyPlace: "/home/u/mcp.json",
    redact: createRedactor({ values: [SECRET], named: ["9000"] }),
    ...more,
  };
}

const onCall = (failure: HttpFailure, at = address()) =>
  explainRequest(failure, { method: "tools/call", call: "echo" }, at);

const to = (href: string, status = 307): HttpFailure => ({ kind: "redirect", status, to: new URL(href) });

/** `URL` stands for the address. */
const SENTENCES: [string, HttpFailure, connect: string, call: string][] = [
  [
    "401",
    { kind: "needs-auth", status: 401, challenge: undefined, text: "no key" },
    "URL answered 401: no key.",
    "was refused: URL answered 401: no key.",
  ],
  [
    "400",
    { kind: "rejected", status: 400, text: "" },
    "URL answered status 400.",
    "was refused: URL answered status 400.",
  ],
  [
    "405",
    { kind: "refuses-streamable", status: 405, text: "" },
    "URL answered status 405.",
    "was refused: URL answered status 405.",
  ],
  [
    "503",
    { kind: "busy", status: 503, retryAfterMs: 2_000, text: "later" },
    "URL answered status 503: later and asks to wait 2 s.",
    "failed: URL answered status 503: later and asks to wait 2 s.",
  ],
  [
    "a lost session",
    { kind: "session-lost" },
    "URL no longer knows the session that it has just opened.",
    "did not run: URL no longer knows this session; it may have been restarted.",
  ],
  [
    "a connection that breaks",
    { kind: "network", code: "ECONNRESET" },
    "URL closed the connection without an answer (ECONNRESET).",
    "got no answer: URL closed the connection without an answer (ECONNRESET).",
  ],
  [
    "a connection that is refused",
    { kind: "network", code: "ECONNREFUSED" },
    "URL refused the connection (ECONNREFUSED).",
    "did not run: URL refused the connection (ECONNREFUSED).",
  ],
  [
    "a name that is not known",
    { kind: "network", code: "ENOTFOUND" },
    "URL could not be found: no such host name (ENOTFOUND).",
    "did not run: URL could not be found: no such host name (ENOTFOUND).",
  ],
  [
    "the proxy",
    { kind: "proxy", status: 403, message: "the proxy p:1 answered 403" },
    "URL could not be reached: the proxy p:1 answered 403.",
    "did not run: URL could not be reached: the proxy p:1 answered 403.",
  ],
  [
    "a redirect to another server",
    to("https://login.test/x?state=1"),
    "URL redirects to https://login.test/x, which is not followed because that is another server.",
    "got no result: URL redirects to https://login.test/x, which is not followed because that is another server.",
  ],
  [
    "a redirect that would lose the body",
    to("http://a.test/mcp/", 302),
    "URL redirects to http://a.test/mcp/, which is not followed because status 302 would change the request.",
    "got no result: URL redirects to http://a.test/mcp/, which is not followed because status 302 would change the request.",
  ],
  [
    "a redirect that would lose the body, to https",
    to("https://a.test/mcp", 301),
    "URL redirects to https://a.test/mcp, which is not followed because status 301 would change the request.",
    "got no result: URL redirects to https://a.test/mcp, which is not followed because status 301 would change the request.",
  ],
  [
    "redirects in a circle",
    to("http://a.test/mcp", 308),
    "URL redirects to http://a.test/mcp, which is not followed after so many others.",
    "got no result: URL redirects to http://a.test/mcp, which is not followed after so many others.",
  ],
  [
    "a web page",
    { kind: "web-page", status: 200, text: "Shop" },
    "URL is no MCP server: it answered with a web page (HTML), status 200: Shop.",
    "got no result: URL answered with a web page (HTML), status 200: Shop.",
  ],
  [
    "something else",
    { kind: "unusable", status: 200, contentType: "image/png", text: "" },
    "URL is no MCP server: it answered with image/png.",
    "got no result: URL answered with image/png.",
  ],
  [
    "something without a type",
    { kind: "unusable", status: 204, contentType: undefined, text: "" },
    "URL is no MCP server: it answered with no content type.",
    "got no result: URL answered with no content type.",
  ],
  [
    "a message that is too large",
    { kind: "too-large", excess: new TooLarge(8 * 1024 * 1024).excess },
    "URL sent one message of more than 8 MiB.",
    "got no result: URL sent one message of more than 8 MiB.",
  ],
  [
    "headers that are too large",
    { kind: "headers-too-large", limitBytes: 16 * 1024 },
    "URL sent headers of more than 16 KiB.",
    "got no result: URL sent headers of more than 16 KiB.",
  ],
  [
    "a certificate",
    { kind: "certificate", code: "CERT_HAS_EXPIRED" },
    "URL could not be trusted: its certificate has expired (CERT_HAS_EXPIRED).",
    "did not run: URL could not be trusted: its certificate has expired (CERT_HAS_EXPIRED).",
  ],
  ["no TLS", { kind: "not-tls" }, "URL does not speak TLS.", "did not run: URL does not speak TLS."],
  [
    "no HTTP",
    { kind: "not-http" },
    "URL does not speak HTTP.",
    "got no result: URL broke the rules of HTTP.",
  ],
  [
    "a request that cannot be sent",
    { kind: "not-sent", message: "a header is wrong" },
    "URL was not asked: a header is wrong.",
    "did not run: URL was not asked: a header is wrong.",
  ],
  [
    "a request that was given up",
    { kind: "cancelled" },
    "URL did not answer before the request was given up.",
    "got no answer: URL did not answer before the request was given up.",
  ],
  ["anything else", { kind: "other", message: "odd" }, "URL failed: odd.", "got no answer: URL failed: odd."],
];

describe.each(SENTENCES)("%s", (_name, failure, connect, call) => {
  const written = (sentence: string): string => sentence.replace("URL", "http://a.test/mcp");

  test("explainConnect, describeConnect -> who, where, what", () => {
    const error = explainConnect(failure, address());
    expect(error.message).toBe(`web: ${written(connect)}`);
    expect(describeConnect(failure, address())).toBe(written(connect));
    expect(error.remedy).toMatch(/\.$|MCP endpoint|HTTPS_PROXY/);
  });

  test("explainRequest -> how the call ended; a call may only be said not to have run if that is certain", () => {
    const error = onCall(failure);
    expect(error.message).toBe(`web/echo ${written(call)}`);
    expect(error.data?.server).toBe("web");
    const mayHaveRun = error.remedy?.includes("may have run") ?? false;
    expect(mayHaveRun && /did not run|was refused/.test(error.message)).toBe(false);
    expect(error.message).not.toMatch(/got no answer.*(answered|redirects|sent )/);
  });
});

test("explainRequest: a request for a list -> names the method", () => {
  const failure: HttpFailure = { kind: "network", code: "ECONNRESET" };
  const error = explainRequest(failure, { method: "tools/list", call: undefined }, address());
  expect(error).toMatchObject({ code: "connect_failed" });
  expect(error.message).toMatch(/^web: tools\/list got no answer: /);
});

test("numbers that look like a secret -> stay numbers, and the code stays", () => {
  const failure: HttpFailure = { kind: "busy", status: 503, retryAfterMs: 9_000, text: "limit 9000" };
  expect(explainConnect(failure, address())).toMatchObject({
    code: "connect_failed",
    data: { server: "web", status: 503, retryAfterMs: 9_000 },
  });
  expect(onCall(failure)).toMatchObject({ code: "server_died", data: { retryAfterMs: 9_000 } });
  expect(onCall(failure).message).toContain("limit [redacted]");
});

test("a challenge -> without secrets, each text at most 500 characters, cut only then", () => {
  const text = `${"x".repeat(490)}${SECRET}${"y".repeat(900)}`;
  const challenge = { scheme: "Bearer", scope: text, errorDescription: text };
  const failure: HttpFailure = { kind: "needs-auth", status: 401, challenge, text: "" };
  for (const error of [explainConnect(failure, address()), onCall(failure)]) {
    const shown = error.data?.challenge as Record<string, string>;
    expect(shown.scope).toBe(`${"x".repeat(490)}[redacted]`);
    expect(JSON.stringify([error.message, error.data])).not.toContain("s3c");
    expect(error.message.length).toBeLessThan(300);
  }
});

test("addresses of kilobytes -> cut, without secrets", () => {
  const long = `http://b.test/${"x".repeat(270)}${SECRET}/${"y".repeat(15_000)}`;
  const url = new URL(long);
  for (const error of [explainConnect(to(long), address({ url })), onCall(to(long), address({ url }))]) {
    expect(error.message).not.toContain("s3c");
    expect(error.message.length).toBeLessThan(900);
  }
});
