/** Percent-encoded text (RFC 3986, section 2.1). Pure. */

/** The decoded text, or the text itself if it is not well encoded. Never throws, unlike `decodeURIComponent`. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
