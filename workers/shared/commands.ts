/**
 * The commands that a sentence for the person names: `/mcp enable docs` in Pi, `pi-mcp-threads enable docs` in a shell.
 * Where the person types them is known when the thread starts (`WorkerBoot.commands`), and never changes. Sentences must
 * be made when they are needed: what a module makes while it loads is made before that.
 */
import type { WorkerBoot } from "../../src/shared/protocol/port.ts";
import { TRUST_IN_SHELL, TRUST_IT } from "../../src/shared/untrusted.ts";

export type CommandWord = "add" | "auth" | "disable" | "doctor" | "enable" | "import" | "on" | "reconnect";

/** What helps a person, in the words of each place. */
const SENTENCES = {
  pi: {
    lists: "/mcp lists the servers.",
    more: "/mcp says more.",
    edit: "/mcp edit opens your file.",
    search: "Search again with ToolSearch.",
    consent: "/mcp trust asks for it.",
    consentShows: "/mcp trust shows what would run and asks.",
    refused: "/mcp trust asks again about servers that were refused.",
    trustFolder: TRUST_IT,
    /** After a colon. */
    later: "try again later with /mcp reconnect.",
    /** Without a full stop. */
    noOne: "no one can be asked in this mode of Pi",
    /** After a semicolon or a colon, without a full stop. */
    askAgain: "/mcp trust asks again",
    askForItAgain: "/mcp trust asks for it again",
  },
  shell: {
    lists: "pi-mcp-threads list shows the servers.",
    more: "pi-mcp-threads list shows more.",
    edit: "Correct your file.",
    search: "pi-mcp-threads search finds tools.",
    consent: "Run the command in a terminal to be asked.",
    consentShows: "A command that names the server, in a terminal, shows what would run and asks.",
    refused: "A command that names the server, in a terminal, asks again.",
    trustFolder: TRUST_IN_SHELL,
    later: "try again later.",
    noOne: "no one can be asked here",
    askAgain: "run the command in a terminal to be asked",
    askForItAgain: "run the command in a terminal to be asked",
  },
} as const;

let place: WorkerBoot["commands"] = "pi";

/** Called once, when the thread starts. */
export function nameCommandsFor(where: WorkerBoot["commands"]): void {
  place = where;
}

export const advice = (about: keyof typeof SENTENCES.pi): string => SENTENCES[place][about];

/** A command, for example `/mcp auth docs`. In a shell `list` connects every server again. */
export function commandFor(word: CommandWord, server?: string): string {
  const named = server === undefined ? "" : ` ${server}`;
  if (place === "pi") return `/mcp ${word}${named}`;
  if (word === "reconnect") return "pi-mcp-threads list";
  return `pi-mcp-threads ${word === "auth" ? "login" : word}${named}`;
}

/** How a person signs in, as a sentence. A tool of Pi's model may read it, so it says where the command belongs. */
export const signInAdvice = (server: string): string =>
  `Run ${commandFor("auth", server)}${place === "pi" ? " in Pi" : ""}.`;

/**
 * How a person gives a server its key. `file`: where an entry without one is to be changed; absent: the key that stands there
 * is wrong.
 */
export function keyAdvice(server: string, file?: string): string {
  const asks = place === "pi" ? `${commandFor("auth", server)} in Pi asks where the right one is` : undefined;
  if (file === undefined) return `Correct it there${asks === undefined ? "" : `, or ${asks}`}.`;
  const keys = `"bearerTokenEnv": "NAME_OF_VARIABLE" or "headers" for it in ${file}`;
  return place === "pi"
    ? `It wants a key: ${commandFor("auth", server)} in Pi asks where it is, or write ${keys}.`
    : `It wants a key: write ${keys}.`;
}

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
