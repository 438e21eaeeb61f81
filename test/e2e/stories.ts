/**
 * Owns: one run of Pi for several tests. The model makes the calls of all tests in turn, and each test reads its part.
 */
import type { ModelRequest, ModelScript, ModelTurn } from "../support/model.ts";
import { toolResultTexts } from "../support/model.ts";
import type { HomeOptions, PiHome, PiOptions } from "../support/pi-run.ts";
import { type PrintResult, runPrint } from "../support/pi-run.ts";
import { ENTRY, home as makeHome, model, once } from "./support.ts";

/** The model's turns in one test: calls only, since a turn of text ends the run. */
export type Story = readonly (ModelTurn | ((request: ModelRequest) => ModelTurn))[];

export interface Told {
  at: PiHome;
  run: PrintResult;
  /** The request before each turn of the story, and the request with the results of the last turn. */
  requests: readonly ModelRequest[];
  /** The answers of the story's calls, in order. */
  answers: string[];
}

export interface StoryOptions extends Partial<Pick<PiOptions, "args" | "env" | "extensions">> {
  home: HomeOptions;
}

/** Runs Pi once, when the first test asks for its story. The order of the keys is the order of the stories. */
export function tellTogether<K extends string>(
  stories: Record<K, Story>,
  { home, ...options }: StoryOptions,
): (story: K) => Promise<Told> {
  const all = once(async () => {
    const at = await makeHome(home);
    const script: ModelScript = Object.values<Story>(stories).flat();
    const scripted = await model(script);
    const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go", ...options });
    return { at, run, requests: scripted.requests };
  });
  return async (story) => {
    const { at, run, requests } = await all();
    const names = Object.keys(stories) as K[];
    const from = names.slice(0, names.indexOf(story)).reduce((sum, name) => sum + stories[name].length, 0);
    const own = requests.slice(from, from + stories[story].length + 1);
    const [first] = own;
    const last = own.at(-1);
    if (!first || !last || own.length <= stories[story].length) {
      throw new Error(`the run ended within or before the story ${story}: ${run.stderr}`);
    }
    return { at, run, requests: own, answers: toolResultTexts(last).slice(toolResultTexts(first).length) };
  };
}
