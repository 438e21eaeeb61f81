/** Explains a failure to people in one sentence for each kind: who, what, where, and what to do about it. */
import { type ErrorData, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { redactData } from "../../secrets/redact.ts";
import type { HttpFailure } from "./failure.ts";
import { type Explanation, explain, type HttpAddress } from "./failure-words.ts";
import { shownUrl } from "./shown-url.ts";

type Unexplained = Exclude<HttpFailure, { kind: "explained" }>;

/** The explanation for a connect: the address has never answered as an MCP server. */
function explainFirst(failure: Unexplained, address: HttpAddress): Explanation {
  const explanation = explain(failure, address);
  switch (failure.kind) {
    case "web-page":
    case "unusable":
      return { ...explanation, what: `is no MCP server: it ${explanation.what}` };
    case "session-lost":
      return {
        ...explanation,
        code: "connect_failed",
        what: "no longer knows the session that it has just opened",
        remedy: "If several machines answer there, all requests of a session must go to the same one.",
      };
    default:
      return explanation;
  }
}

/** The explanation for a request over an open connection: the address has answered before. */
function explainLater(failure: Unexplained, address: HttpAddress): Explanation {
  const explanation = explain(failure, address);
  return failure.kind === "not-http" ? { ...explanation, what: "broke the rules of HTTP" } : explanation;
}

const dataOf = ({ data }: Explanation, { server, redact }: HttpAddress): ErrorData => ({
  server,
  ...(data && redactData(data, redact)),
});

/** The sentence of `explainConnect` without the server's name. */
export function describeConnect(failure: HttpFailure, address: HttpAddress): string {
  if (failure.kind === "explained") return failure.error.message;
  const { what } = explainFirst(failure, address);
  return address.redact(`${shownUrl(address.url, address.redact)} ${what}.`);
}

/** The kind of failure as a word, for readers that treat kinds differently; for the network its own code. */
const reasonOf = (failure: Unexplained): string => (failure.kind === "network" ? failure.code : failure.kind);

/** The error of an attempt to connect. */
export function explainConnect(failure: HttpFailure, address: HttpAddress): ThreadsError {
  if (failure.kind === "explained") return failure.error;
  const explanation = explainFirst(failure, address);
  const { code, remedy } = explanation;
  const text = `${address.server}: ${describeConnect(failure, address)}`;
  const data = { reason: reasonOf(failure), ...dataOf(explanation, address) };
  return new ThreadsError(code, text, { remedy, data });
}

/** The error of a request over an open connection. `call`: the tool that the request calls, if any. */
export function explainRequest(
  failure: HttpFailure,
  { method, call }: { method: string; call: string | undefined },
  address: HttpAddress,
): ThreadsError {
  if (failure.kind === "explained") return failure.error;
  const explanation = explainLater(failure, address);
  const { what, verdict, code } = explanation;
  const subject = call === undefined ? `${address.server}: ${method}` : `${address.server}/${call}`;
  const where = shownUrl(address.url, address.redact);
  const text = address.redact(`${subject} ${verdict}: ${where} ${what}.`);
  const details = { remedy: explanation.remedy, data: dataOf(explanation, address) };
  // A request for a list is part of the connect. A call is different: it may have had its effect.
  if (call === undefined || code !== "connect_failed") return new ThreadsError(code, text, details);
  if (verdict === "was refused") return new ThreadsError("call_rejected", text, details);
  const remedy =
    verdict === "did not run" ? details.remedy : "The call may have run. The next call connects again.";
  return new ThreadsError("server_died", text, { ...details, remedy });
}
