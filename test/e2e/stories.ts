/**
 * Owns: one session of Pi for several tests. The model makes the calls of all tests in turn, and each test reads its
 * part.
 */
import type { ModelRequest, ModelTurn } from "../support/model.ts";
import { toolResultTexts } from "../support/model.ts";
import type { InTurn, Turn } from "./in-turn.ts";
import { once, readLog } from "./support.ts";

type StoryTurn = ModelTurn | ((request: ModelRequest) => ModelTurn);

/** The model's turns in one test: calls only, since a turn of text ends the run. */
export type Story = readonly StoryTurn[];

export interface Session {
  /** What Pi wrote to stderr. */
  stderr: string;
  /** The extension's log. */
  log: string;
  requests: readonly ModelRequest[];
}

export interface Told extends Session {
  /** The request before each turn of the story, and the request with the results of the last turn. */
  requests: readonly ModelRequest[];
  /** The answers of the story's calls, in order. */
  answers: string[];
}

/** Begins a session of a Pi that several sessions share. */
export const inSession = (turn: (home: Turn) => Promise<InTurn>, options: Turn) => async (script: Story) => {
  const { at, rpc, prompt, scripted } = await turn(options);
  await prompt(...script);
  // Nothing of it is left in the next session of this Pi.
  return { stderr: rpc.stderr, log: await readLog(at), requests: [...scripted.requests] };
};

/** Begins the session when the first test asks for its story. The order of the keys is the order of the stories. */
export function tellTogether<K extends string>(
  stories: Record<K, Story>,
  tell: (script: Story) => Promise<Session>,
): (story: K) => Promise<Told> {
  const all = once(() => tell(Object.values<Story>(stories).flat()));
  return async (story) => {
    const { requests, ...session } = await all();
    const names = Object.keys(stories) as K[];
    const from = names.slice(0, names.indexOf(story)).reduce((sum, name) => sum + stories[name].length, 0);
    const own = requests.slice(from, from + stories[story].length + 1);
    const [first] = own;
    const last = own.at(-1);
    if (!first || !last || own.length <= stories[story].length) {
      throw new Error(`the session ended within or before the story ${story}: ${session.stderr}`);
    }
    const answers = toolResultTexts(last).slice(toolResultTexts(first).length);
    return { ...session, requests: own, answers };
  };
}
