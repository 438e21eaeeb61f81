/**
 * A prompt as a server listed it, reduced to what the metadata cache keeps. Servers are untrusted: a field of the wrong
 * type is left out, and so is a prompt without a name.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { shortText } from "./resource.ts";

export interface CachedArgument {
  name: string;
  description?: string;
  required?: boolean;
}

/** MCP 2025-11-25, server/prompts, reduced. */
export interface CachedPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: CachedArgument[];
}

const ARGUMENTS = 50;

function normalizeArgument(raw: unknown): CachedArgument[] {
  const name = isObject(raw) ? shortText(raw.name) : undefined;
  if (!isObject(raw) || name === undefined) return [];
  const description = shortText(raw.description);
  return [
    {
      name,
      ...(description === undefined ? {} : { description }),
      ...(typeof raw.required === "boolean" ? { required: raw.required } : {}),
    },
  ];
}

/** The usable prompts of a list, in order. If several have one name, the first counts. */
export function normalizePrompts(raw: unknown): CachedPrompt[] {
  const found = new Map<string, CachedPrompt>();
  for (const item of Array.isArray(raw) ? raw : []) {
    const name = isObject(item) ? shortText(item.name) : undefined;
    if (!isObject(item) || name === undefined || found.has(name)) continue;
    const [title, description] = [shortText(item.title), shortText(item.description)];
    found.set(name, {
      name,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      ...(Array.isArray(item.arguments)
        ? { arguments: item.arguments.slice(0, ARGUMENTS).flatMap(normalizeArgument) }
        : {}),
    });
  }
  return [...found.values()];
}
