/** Completes the text after `/mcp `: a word, then a server or a tool, each with what it is. Loaded with the first tab. Pure. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Completion } from "../../pi/api.ts";
import { serverName } from "../../report/server-name.ts";
import { needsText } from "../../report/status.ts";
import type { ServerStatus } from "../../shared/protocol/session.ts";
import { offerText } from "../../shared/text/amounts.ts";
import { firstSentence, oneLine } from "../../shared/text/unprintable.ts";
import { ABOUT, SWITCHES, splitWord, subcommand, WORDS } from "./words.ts";

export interface Known {
  servers(): readonly ServerStatus[];
  catalog(): Pick<Catalog, "tools">;
}

/** Pi shows a few of a list, and the person types on. */
const MOST = 100;
const ABOUT_CHARS = 200;

const stateOf = (server: ServerStatus): string =>
  `${server.state === "needs-auth" ? needsText(server) : server.state}, ${offerText(server)}`;

/** What may be suggested, with a description that is made only for what is. */
interface Found {
  value: string;
  label: string;
  description(): string;
}

const isWord = (word: string): word is keyof typeof WORDS => Object.hasOwn(WORDS, word);

/** The servers for which the word has an effect. */
function useful(word: string, servers: readonly ServerStatus[]): readonly ServerStatus[] {
  const isOn = SWITCHES[word];
  return isOn === undefined ? servers : servers.filter(({ state }) => (state !== "disabled") === isOn);
}

function serversFor(word: string, start: string, { servers }: Known): Found[] {
  return useful(word, servers())
    .filter(({ name }) => name.startsWith(start))
    .map((server) => ({
      value: server.name,
      label: serverName(server.name),
      description: () => stateOf(server),
    }));
}

/** Tools whose name in Pi, or whose server's own name, begins so. */
const toolsFor = (start: string, { catalog }: Known): Found[] =>
  catalog()
    .tools.filter(({ name, tool }) => name.startsWith(start) || tool.startsWith(start))
    .map((tool) => ({
      value: tool.name,
      label: tool.name,
      description: () => oneLine(firstSentence(tool.description), ABOUT_CHARS),
    }));

/**
 * Nothing for a text that is complete: with a list open, Enter would close the list and not run the command. `before`: what
 * stands in front of each value.
 */
const unlessComplete = (typed: string, found: readonly Found[], before = ""): Completion[] | null =>
  found.length > 0 && !found.some(({ value }) => before + value === typed)
    ? found.slice(0, MOST).map(({ value, label, description }) => ({
        value: before + value,
        label,
        description: description(),
      }))
    : null;

const STOP: Found = { value: "stop", label: "stop", description: () => "end the servers and their hub" };

/** `typed`: the text after `/mcp `. Null: nothing to suggest. */
export function completeMcp(typed: string, known: Known): Completion[] | null {
  const { word, rest } = splitWord(typed.trimStart());
  if (rest === undefined) {
    const words = (Object.keys(WORDS) as (keyof typeof WORDS)[]).filter((one) => one.startsWith(word));
    return unlessComplete(
      typed,
      words.map((value) => ({ value, label: value, description: () => ABOUT[value] })),
    );
  }
  const meant = subcommand(word);
  if (!isWord(meant)) return null;
  const found =
    meant === "tool" || meant === "try"
      ? toolsFor(rest, known)
      : meant === "hub"
        ? [STOP].filter(({ value }) => value.startsWith(rest))
        : WORDS[meant].includes("server")
          ? serversFor(meant, rest, known)
          : [];
  return unlessComplete(typed, found, `${word} `);
}

/** Completes the text after `/mcp-auth `. */
export const completeServer = (typed: string, known: Known): Completion[] | null =>
  unlessComplete(typed, serversFor("auth", typed, known));
