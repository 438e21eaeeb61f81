/** A server's name in a sentence about it, once: whoever wrote a part of the sentence may have named the server. Pure. */

const isNamed = (server: string, text: string): boolean =>
  text.startsWith(server) && /^(: | |\/)/.test(text.slice(server.length));

/** `text` as a sentence of its own. */
export const withName = (server: string, text: string): string =>
  isNamed(server, text) ? text : `${server}: ${text}`;

/** `text` as a reason behind words that name the server. */
export function asReason(server: string, text: string): string {
  if (text.startsWith(`${server}: `)) return text.slice(server.length + 2);
  return text.startsWith(`${server} `) ? `it${text.slice(server.length)}` : text;
}

/** Words that follow the server's name, as of a note: `does not list its resources: <reason>`. */
export const behindName = (server: string, text: string): string =>
  isNamed(server, text) ? text : `${server} ${text.replace(`: ${server}: `, ": ")}`;
