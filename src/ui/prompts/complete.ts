/** Completion behind a prompt's command: first the names of its arguments, then the values that its server suggests. */
import type { Completion } from "../../pi/api.ts";
import type { SnapshotPrompt } from "../../shared/snapshot/contract.ts";
import { namedIn, readArguments, wordsOf } from "./arguments.ts";
import type { PromptHost } from "./contract.ts";
import { promptNamed } from "./named.ts";

/** Quoted if a person would have to quote it. */
const written = (value: string): string =>
  /^[^\s"'\\]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;

/** `head`: the text before the word that is being typed. */
function names(prompt: SnapshotPrompt, head: string, start: string): Completion[] {
  const given = readArguments(head, prompt);
  return (prompt.arguments ?? [])
    .filter(({ name }) => given[name] === undefined && name.startsWith(start))
    .map(({ name, description }) => ({
      value: `${head}${name}=`,
      label: `${name}=`,
      ...(description === undefined ? {} : { description }),
    }));
}

const orNull = (items: Completion[]): Completion[] | null => (items.length > 0 ? items : null);

/** `typed`: the text behind the command. Null: nothing to suggest. */
export async function completeArguments(
  host: Pick<PromptHost, "ask" | "catalog">,
  command: string,
  typed: string,
): Promise<Completion[] | null> {
  const found = promptNamed(host, command);
  if (!found) return null;
  const { server, prompt } = found;
  const last = wordsOf(typed).at(-1);
  const word = last?.isOpen ? last : undefined;
  const head = typed.slice(0, word?.at);
  const named = word && namedIn(word.text, prompt);
  if (!named) return orNull(names(prompt, head, word?.text ?? ""));
  const [argument, value] = named;
  const { [argument]: _own, ...context } = readArguments(head, prompt);
  const asked = { server, prompt: prompt.prompt, argument, value, context };
  // Without an answer of the worker the person types on; the worker's own trouble is reported elsewhere.
  const values = await host.ask("completePrompt", asked).catch((): string[] => []);
  if (values.includes(value)) return null;
  return orNull(values.map((text) => ({ value: `${head}${argument}=${written(text)}`, label: text })));
}
