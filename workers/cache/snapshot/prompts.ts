/**
 * The prompts of a catalog as commands: named like tools with the prefix `mcp`, cleaned, bounded, and shared between the
 * servers so that one with hundreds of prompts takes no place from the others. A prompt that nobody could call, because
 * a name of its required arguments cannot be typed, is left out. Pure.
 */
import { nameTools } from "../../../src/shared/naming/names.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SnapshotArgument, SnapshotPrompt } from "../../../src/shared/snapshot/contract.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CachedArgument, CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CatalogServer } from "../../shared/tasks.ts";

const ARGUMENT_NAME = new RegExp(`^[\\p{L}\\p{N}_.-]{1,${LIMITS.promptArgumentChars}}$`, "u");

interface Chosen {
  server: string;
  position: number;
  prompt: CachedPrompt;
}

const described = (description: string | undefined): { description?: string } => {
  const line = oneLine(description ?? "", LIMITS.promptDescriptionChars);
  return line === "" ? {} : { description: line };
};

const isTypeable = ({ name }: CachedArgument): boolean => ARGUMENT_NAME.test(name);

const isUsable = ({ arguments: args = [] }: CachedPrompt): boolean =>
  args.every((argument) => isTypeable(argument) || !argument.required);

/** The first prompt of each server, then the second of each, up to the limit. */
function choose(servers: readonly CatalogServer[]): Chosen[] {
  const lists = servers.map(({ prompts = [] }) => prompts.filter(isUsable));
  const longest = lists.reduce((most, { length }) => Math.max(most, length), 0);
  const chosen: Chosen[] = [];
  for (let at = 0; at < longest && chosen.length < LIMITS.promptCommands; at++) {
    for (const [position, list] of lists.entries()) {
      const prompt = list[at];
      const server = servers[position]?.name;
      if (!prompt || server === undefined || chosen.length >= LIMITS.promptCommands) continue;
      chosen.push({ server, position, prompt });
    }
  }
  return chosen;
}

function toArgument({ name, description, required }: CachedArgument): SnapshotArgument {
  return { name, ...described(description), ...(required ? { required } : {}) };
}

function toPrompt({ name, title, description, arguments: args = [] }: CachedPrompt, command: string) {
  const prompt: SnapshotPrompt = { command, prompt: name, ...described(description ?? title) };
  const typeable = args.filter(isTypeable).map(toArgument);
  return typeable.length === 0 ? prompt : { ...prompt, arguments: typeable };
}

/** The commands by position of the server. */
export function promptCommands(servers: readonly CatalogServer[]): Map<number, SnapshotPrompt[]> {
  const chosen = choose(servers);
  const { names } = nameTools(
    chosen.map(({ server, prompt }) => ({ server, tool: prompt.name, prefix: "mcp" as const })),
  );
  const commands = new Map<number, SnapshotPrompt[]>();
  for (const [i, { position, prompt }] of chosen.entries()) {
    const own = commands.get(position) ?? [];
    commands.set(position, [...own, toPrompt(prompt, names[i] ?? "")]);
  }
  return commands;
}
