/** The last page of a sign-in in the browser. The texts are static: nothing of a request or a server is in them. Pure. */

/** How the sign-in ended, as far as it is known when the browser gets its page. */
export type PageKind = "ok" | "failed" | "received" | "unknown";

const TEXTS: { readonly [K in PageKind]: { title: string; text: string } } = {
  ok: { title: "Signed in", text: "You can close this page and go back to Pi." },
  failed: { title: "Not signed in", text: "Go back to Pi: it says why, and what helps." },
  received: { title: "Almost done", text: "Go back to Pi: it says how the sign-in ends." },
  unknown: {
    title: "Not signed in",
    text: "Pi does not wait for this answer. Begin the sign-in again, and use the page that it opens.",
  },
};

const STYLE =
  ":root{color-scheme:light dark}body{font:1.1rem/1.5 system-ui,sans-serif;margin:20vh auto;max-width:32rem;padding:0 1rem}";

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? "");

export function pageOf(kind: PageKind): string {
  const title = escapeHtml(TEXTS[kind].title);
  const text = escapeHtml(TEXTS[kind].text);
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title><style>${STYLE}</style></head><body><h1>${title}</h1><p>${text}</p></body></html>\n`;
}

/** No script, no frame, no form, no request to anywhere; the address with the code is neither kept nor passed on. */
export const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  connection: "close",
} as const;
