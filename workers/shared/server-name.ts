/**
 * Puts a server's name into a sentence exactly once: the author of a part of the sentence may have named the server
 * already. Pure.
 */

const isNamed = (server: string, text: string): boolean =>
  text.startsWith(server) && /^(: | |\/)/.test(text.slice(server.length));

/** Answers `text` as a sentence of its own. */
export const withName = (server: string, text: string): string =>
  isNamed(server, text) ? text : `${server}: ${text}`;

/** Answers `text` as a reason that follows words which name the server. */
export function asReason(server: string, text: string): string {
  if (text.startsWith(`${server}: `)) return text.slice(server.length + 2);
  return text.startsWith(`${server} `) ? `it${text.slice(server.length)}` : text;
}

/** Puts the name before words such as those of a note: `does not list its resources: <reason>`. */
export const behindName = (server: string, text: string): string =>
  isNamed(server, text) ? text : `${server} ${text.replace(`: ${server}: `, ": ")}`;
