/** Shows an address to people, without its query and its credentials, which are for the server alone. */
import { boundText, type Redactor } from "../../secrets/redact.ts";

/** Limit for an address: a server may redirect to one of several kilobytes. */
const URL_CHARS = 300;

export const shownUrl = (url: URL, redact: Redactor): string =>
  boundText(`${url.origin}${url.pathname}`, URL_CHARS, redact);
