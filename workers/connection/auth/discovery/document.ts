/**
 * Reads metadata at one address, and at several in their order. Owns which answers mean that there are none: trouble of
 * a server or of the network never does, since the next address could belong to another authorization server.
 */
import { SignInProblem } from "../model/model.ts";
import { type AuthRequests, isHtml, readObject, shownAddress } from "../requests/requests.ts";

export type Fields = Record<string, unknown>;

export type Document =
  | { kind: "found"; fields: Fields; url: URL }
  | { kind: "absent" }
  /** There is an answer, but it is not metadata. */
  | { kind: "unusable"; problem: SignInProblem };

const badAnswer = (url: URL, what: string): SignInProblem =>
  new SignInProblem("bad-answer", { url: shownAddress(url), what });

const unusable = (url: URL, what: string): Document => ({ kind: "unusable", problem: badAnswer(url, what) });

const isTrouble = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/** Throws `SignInProblem` if the server has trouble or cannot be reached. */
export async function readDocument(url: URL, requests: AuthRequests): Promise<Document> {
  const response = await requests.fetch(url.href, { method: "GET" });
  const { status } = response;
  if (isTrouble(status)) throw new SignInProblem("unavailable", { url: shownAddress(url), status });
  if (status >= 300 && status < 400) return unusable(url, "a redirect to another server");
  if (status !== 200) return { kind: "absent" };
  const text = await response.text();
  const fields = readObject(text);
  if (fields) return { kind: "found", fields, url };
  const page = isHtml({ contentType: response.headers.get("content-type") ?? undefined, text });
  return unusable(url, page ? "HTML in the place of JSON" : "it is not a JSON object");
}

/**
 * The first document in which `lacks` finds nothing wrong; otherwise what is wrong with the first one that is not
 * absent. `lacks` answers why fields are not the metadata.
 */
export async function firstDocument(
  urls: readonly URL[],
  requests: AuthRequests,
  lacks: (fields: Fields) => string | undefined,
): Promise<Document> {
  let wrong: Document = { kind: "absent" };
  for (const url of urls) {
    const found = await readDocument(url, requests);
    const lack = found.kind === "found" ? lacks(found.fields) : undefined;
    if (found.kind === "found" && lack === undefined) return found;
    const reason = lack === undefined ? found : unusable(url, lack);
    if (wrong.kind === "absent") wrong = reason;
  }
  return wrong;
}
