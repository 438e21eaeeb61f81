/**
 * Sends one more request if a failed connect says too little, to learn what a browser would see at the address. The
 * request carries none of the configured headers, so it gives no secret away.
 */

import type { HttpClient } from "../../web/client.ts";
import { answerError } from "./answer.ts";
import { type AnswerError, classifyFailure, type HttpFailure } from "./failure.ts";

export interface Probe {
  url: URL;
  /** The meaning of the answer if it explains the failure, otherwise undefined. */
  read: (found: HttpFailure) => HttpFailure | undefined;
}

/** Findings that say more than the failure itself. */
const TELLING = new Set<HttpFailure["kind"]>([
  "web-page",
  "redirect",
  "certificate",
  "not-tls",
  "not-http",
  "proxy",
]);

const asBrowser = (url: URL): Probe => ({
  url,
  read: (found) => (TELLING.has(found.kind) ? found : undefined),
});

/** A server that closes a plain connection may want TLS. Any answer over TLS, even an error of TLS, proves that. */
function asTls(url: URL): Probe {
  const secure = new URL(url);
  secure.protocol = "https:";
  const speaks = new Set<HttpFailure["kind"]>(["network", "not-tls", "other", "cancelled", "proxy"]);
  return {
    url: secure,
    read: (found) =>
      speaks.has(found.kind)
        ? undefined
        : { kind: "other", message: "it speaks TLS, so the url must begin with https://" },
  };
}

/** The probe that could explain the failure; undefined if the failure needs no explanation. Pure. */
export function chooseProbe(failure: HttpFailure, url: URL): Probe | undefined {
  switch (failure.kind) {
    case "not-http":
      return url.protocol === "http:" ? asTls(url) : undefined;
    case "network":
      return failure.code === "ECONNRESET" && url.protocol === "http:" ? asTls(url) : undefined;
    case "rejected":
    case "refuses-streamable":
    case "busy":
    case "unusable":
      return failure.text === "" ? asBrowser(url) : undefined;
    default:
      return undefined;
  }
}

/** The failure that explains `failure`, or `failure` itself. Never rejects. */
export async function explainByProbe(
  failure: HttpFailure,
  { client, url, signal }: { client: HttpClient; url: URL; signal: AbortSignal },
): Promise<HttpFailure> {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  bare.search = "";
  const probe = chooseProbe(failure, bare);
  if (!probe) return failure;
  try {
    const headers = { accept: "text/html, */*" };
    const response = await client.request({ method: "GET", url: probe.url, headers, signal });
    const { error } = await answerError(response, { url: probe.url });
    return probe.read(classifyProbe(error)) ?? failure;
  } catch (error) {
    return probe.read(classifyFailure(error)) ?? failure;
  }
}

/** For a browser a page is a page, whatever its status. */
function classifyProbe(answer: AnswerError): HttpFailure {
  const html = /^text\/html\b/i.test(answer.headers["content-type"] ?? "");
  if (!html || answer.redirect) return classifyFailure(answer);
  return { kind: "web-page", status: answer.status, text: answer.text };
}
