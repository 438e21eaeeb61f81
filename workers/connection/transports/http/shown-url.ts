/** How an address is shown to people: its query and its userinfo are for the server alone. */
import { boundText, type Redactor } from "../../secrets/secrets.ts";

/** A server may redirect to an address of kilobytes. */
const URL_CHARS = 300;

export const shownUrl = (url: URL, redact: Redactor): string =>
  boundText(`${url.origin}${url.pathname}`, URL_CHARS, redact);
