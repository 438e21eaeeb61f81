/**
 * Owns: the size, in characters and tokens, of the text that tells the model about 20 servers with 1,000 tools before
 * its first call: declarations and system prompt, minus those of Pi without MCP.
 * Must not: measure time. The figures do not vary from run to run.
 */
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { type ModelRequest, messageText } from "../../test/support/model.ts";
import { createBenchHome } from "../support/bench-home.ts";
import { startMeasured } from "../support/measured-pi.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const SHAPE = { servers: 20, toolsPerServer: 50, lifecycle: "eager" } as const;
/** The client knows all tools within this time after the last server has listed its tools. */
const SETTLE_MS = 500;
/** Settings of this package that change the declarations, each with the end of its label and its target in tokens. */
const CASES: readonly {
  suffix: string;
  settings?: Record<string, unknown>;
  /** Skills of each server. */
  skills?: number;
  target: number;
}[] = [
  { suffix: "", target: 800 },
  { suffix: ", 500 skills", skills: 25, target: 800 },
  { suffix: ', catalog: "off"', settings: { catalog: "off" }, target: 150 },
  { suffix: ", proxyTool: true", settings: { proxyTool: true }, target: 350 },
];
const NAMES_SHOWN = 3;

const encoder = new Tiktoken(o200k);

interface Measure {
  characters: number;
  tokens: number;
}

const measure = (text: string): Measure => ({
  characters: text.length,
  tokens: text === "" ? 0 : encoder.encode(text).length,
});

/** The declaration of ToolSearch without its list of servers: what it says in all sessions. */
function ownWords(json: string): Measure & { says: string } {
  const { function: declared } = JSON.parse(json) as ModelRequest["tools"][number];
  const [purpose = "", list = ""] = (declared.description ?? "").split("\n");
  const { properties } = declared.parameters as { properties: Record<string, { description: string }> };
  const parameters = Object.entries(properties).map(([name, { description }]) => `${name}: ${description}`);
  const own = { ...declared, description: [purpose, list].join("\n").trim() };
  return { ...measure(JSON.stringify(own)), says: [purpose, list, ...parameters].join(" ") };
}

interface Told {
  /** JSON of each declaration, by the tool's name. */
  declarations: ReadonlyMap<string, string>;
  system: Measure;
}

function toldIn(request: ModelRequest): Told {
  const declarations = new Map(request.tools.map((tool) => [tool.function.name, JSON.stringify(tool)]));
  const system = request.messages.filter(({ role }) => role === "system" || role === "developer");
  return { declarations, system: measure(system.map(messageText).join("\n")) };
}

/** The first request of a session, once the tools of every server are known. */
async function firstRequest(
  variant: Variant,
  { settings, skills = 0 }: Pick<(typeof CASES)[number], "settings" | "skills"> = {},
): Promise<Told> {
  const shape = { ...SHAPE, skillsPerServer: skills, ...(settings ? { settings } : {}) };
  const home = await createBenchHome(variant, shape);
  try {
    // The second start is measured: the client then has all data that it keeps from the first.
    for (let start = 0; ; start++) {
      await home.reset({ cold: false });
      const pi = await startMeasured(variant, home);
      try {
        await pi.ready();
        if (variant.entry) await pi.untilAge((await home.allListed()) - pi.startedAtMs + SETTLE_MS);
        const { requests } = await pi.prompt();
        if (start > 0 && requests[0]) return toldIn(requests[0]);
      } finally {
        await pi.dispose();
      }
    }
  } finally {
    await home.dispose();
  }
}

interface Case {
  label: string;
  isOurs: boolean;
  told: Told;
  target?: number;
}

function rowsOf({ label, isOurs, told, target: most }: Case, bare: Told): Row[] {
  const added = [...told.declarations].filter(([name, json]) => bare.declarations.get(name) !== json);
  const declared = measure(added.map(([, json]) => json).join("\n"));
  const system = {
    characters: told.system.characters - bare.system.characters,
    tokens: told.system.tokens - bare.system.tokens,
  };
  const row = (metric: string, unit: "characters" | "tokens", value: number, target?: number): Row => ({
    case: label,
    metric,
    unit,
    values: [value],
    ...(isOurs ? {} : { ours: "ours" }),
    ...(target === undefined ? {} : { target }),
  });
  const names = added.map(([name]) => name);
  const more = names.length > NAMES_SHOWN ? ` and ${names.length - NAMES_SHOWN} more` : "";
  const note = `${names.slice(0, NAMES_SHOWN).join(", ")}${more}`;
  const search = told.declarations.get("ToolSearch");
  const own = isOurs && search !== undefined ? ownWords(search) : undefined;
  return [
    ...(own ? [{ ...row("ToolSearch without its list", "tokens", own.tokens), note: own.says }] : []),
    { ...row("declarations", "characters", declared.characters), note },
    row("declarations", "tokens", declared.tokens, most),
    row("more in the system prompt", "characters", system.characters),
    row("more in the system prompt", "tokens", system.tokens),
    row("together", "tokens", declared.tokens + system.tokens),
  ].map((one) => ({ ...one, metric: `${one.metric}, ${one.unit}` }));
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  // The tokens of bare Pi are subtracted from the others, so bare Pi always runs.
  const variants = await loadVariants({ ...options, vs: [...new Set([...options.vs, "none"])] });
  const cases: Case[] = [];
  let bare: Told | undefined;
  for (const variant of variants) {
    if (variant.id === "ours") {
      for (const { suffix, target, ...more } of CASES) {
        const label = `${variant.label}${suffix}`;
        options.progress(`tokens: ${label}`);
        cases.push({ label, isOurs: true, told: await firstRequest(variant, more), target });
      }
      continue;
    }
    options.progress(`tokens: ${variant.label}`);
    const told = await firstRequest(variant);
    if (variant.id === "none") bare = told;
    else cases.push({ label: variant.label, isOurs: false, told });
  }
  const beyond = bare;
  if (beyond === undefined) throw new Error("bare Pi was not measured");
  return cases.flatMap((one) => rowsOf(one, beyond));
}

export const tokens: Scenario = {
  name: "tokens",
  description: "what the first request tells the model of 20 servers x 50 tools, beyond bare Pi (o200k_base)",
  run,
};
