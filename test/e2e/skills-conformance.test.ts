/** Owns: the conformance suite's scenarios about skills (SEP-2640) with the real Pi as the client, in print mode. */
import { expect, test } from "vitest";
import { startCli } from "../cli/support.ts";
import { family } from "../support/long.ts";
import { type ModelTurn, toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { playScenario } from "./conformance-support.ts";
import { call, ENTRY, home, model, searchFor } from "./support.ts";

const SKILL = "docs__skill_pdf_processing";

/** Runs `pi -p` against the server at `url`. Resolves with the texts of the tool results. */
async function runPi(url: string, turns: ModelTurn[]): Promise<string[]> {
  const at = await home({ mcp: { mcpServers: { docs: { url, lifecycle: "eager", skills: "allow" } } } });
  // Connects the server once: its skills are known then.
  await startCli(at, ["list"]).ended;
  const scripted = await model([...turns, { text: "ok" }]);
  await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
  const last = scripted.requests.at(-1);
  return last ? toolResultTexts(last) : [];
}

/** Plays the scenario with a Pi that makes these calls. Resolves with the suite's checks and what Pi's model read. */
async function play(scenario: string, turns: ModelTurn[]) {
  const { statuses, played: texts = [] } = await playScenario("modern", scenario, ({ url }) =>
    runPi(url, turns),
  );
  return { statuses, texts };
}

test("found and not loaded -> the suite sees a list and no read", { tags: "thorough" }, async () => {
  const { statuses, texts } = await play("sep-2640-client-no-prefetch", [searchFor("fill a PDF")]);
  expect(texts[0]).toContain(`${SKILL}(file?: string, line?: integer)`);
  expect(statuses).toEqual(["SUCCESS"]);
});

test.each(
  family([
    ["digest", "its SHA-256 is not the one that was listed"],
    ["size", "bytes in place of the"],
    ["frontmatter", "its frontmatter is not the one that was listed"],
  ]),
)(
  "another %s than was listed, and a model that goes on -> refused, and no other file is read",
  async (what, problem) => {
    const { statuses, texts } = await play(`sep-2640-client-verify-${what}`, [
      searchFor(`select:${SKILL}`),
      call(SKILL, { file: "references/FORMS.md" }),
    ]);
    expect(texts[0]).toContain(`was not used: `);
    expect(texts[0]).toContain(problem);
    expect(texts[1]).toContain("No other file of the skill pdf-processing of docs is read");
    expect(statuses).toEqual(["SUCCESS"]);
  },
);
