/** Keeps what only the server may see, the URL's query and userinfo and the headers, out of errors and logs. */

/** Shorter ones are no secrets, and would make words unreadable. */
const SHORTEST_SECRET = 4;

const decodedToo = (text: string): string[] => {
  try {
    return [text, decodeURIComponent(text)];
  } catch {
    return [text];
  }
};

/** The address as it may be shown. */
export const shownUrl = (url: URL): string => `${url.origin}${url.pathname}`;

export function createRedactor(url: URL, headers: Record<string, string>): (text: string) => string {
  const values = Object.values(headers);
  const secrets = [
    url.search.slice(1),
    ...url.searchParams.values(),
    url.username,
    url.password,
    ...values,
    // The key in `Authorization: Bearer <key>`.
    ...values.map((value) => value.trim().split(/\s+/).at(-1) ?? ""),
  ]
    .flatMap(decodedToo)
    .filter((text) => text.length >= SHORTEST_SECRET)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
}
