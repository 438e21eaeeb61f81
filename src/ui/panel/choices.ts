/**
 * What becomes of tools by the person's word: shown at once, written one after another, and only the last word of those
 * that came while an earlier one was being written.
 */
import type { ToolExposure } from "../../shared/protocol/panel.ts";
import { chosenKey, type Effect } from "./model/model.ts";

type Expose = Extract<Effect, { type: "expose" }>;

export interface Choices {
  /** By `chosenKey`. */
  now(): ReadonlyMap<string, ToolExposure>;
  add(effect: Expose): void;
  /** The panel has read the tools again: what is written shows in them. */
  read(): void;
}

/** `write` rejects with what went wrong; `ended` is called after the last one of those that wait. */
export function createChoices(write: (effect: Expose) => Promise<void>, ended: () => void): Choices {
  const chosen = new Map<string, ToolExposure>();
  const waiting: Expose[] = [];
  const written = new Set<string>();
  let isWriting = false;

  const keysOf = ({ server, tools }: Expose): string[] =>
    (tools ?? []).map((tool) => chosenKey(server, tool));
  /** Of one tool only the last word counts. */
  const dropOlder = ({ server, tools }: Expose): void => {
    if (tools?.length !== 1) return;
    const isOlder = (one: Expose): boolean =>
      one.server === server && one.tools?.length === 1 && one.tools[0] === tools[0];
    waiting.splice(0, waiting.length, ...waiting.filter((one) => !isOlder(one)));
  };
  const writeAll = async (): Promise<void> => {
    isWriting = true;
    for (let effect = waiting.shift(); effect; effect = waiting.shift()) {
      await write(effect);
      for (const key of keysOf(effect)) if (chosen.get(key) === effect.to) written.add(key);
    }
    isWriting = false;
    ended();
  };

  return {
    now: () => chosen,
    add: (effect) => {
      for (const key of keysOf(effect)) {
        chosen.set(key, effect.to);
        written.delete(key);
      }
      dropOlder(effect);
      waiting.push(effect);
      if (!isWriting) void writeAll();
    },
    read: () => {
      for (const key of written) chosen.delete(key);
      written.clear();
    },
  };
}
