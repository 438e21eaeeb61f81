/**
 * Owns: what a session does when a wait of its own is over. The real session with its threads and servers runs in this
 * process, where a test can give it shorter waits than the seconds that users have.
 */
import { expect, onTestFinished, test } from "vitest";
import type { PiToolContext } from "../../src/pi/api.ts";
import type { SessionWaits } from "../../src/session/running.ts";
import { createSession } from "../../src/session/session.ts";
import { createRecordingContext } from "../unit/recording-context.ts";
import { createRecordingPi, type RecordingPi } from "../unit/recording-pi.ts";
import { fixtureServer, home } from "./support.ts";

/** Longer than the time limit of a test: a wait of this length must not happen. */
const LONG_MS = 600_000;

/** A session whose servers are these, after the first prompt was prepared. */
async function start(mcpServers: Record<string, unknown>, waits: SessionWaits): Promise<RecordingPi> {
  const at = await home({ mcp: { mcpServers } });
  const pi = createRecordingPi();
  const session = createSession(pi, { agentDir: at.agentDir, cwd: at.cwd, waits });
  onTestFinished(() => session.stop());
  const ctx = { ...createRecordingContext().ctx, cwd: at.cwd };
  session.register();
  session.start(ctx);
  await session.beforeAgentStart(ctx);
  return pi;
}

async function search(pi: RecordingPi, params: Record<string, unknown>): Promise<string> {
  const tool = pi.tools.get("ToolSearch");
  const result = await tool?.execute("c", params, undefined, undefined, {} as PiToolContext);
  const [content] = result?.content ?? [];
  return content?.type === "text" ? content.text : "";
}

test("a server that never lists its tools -> the first prompt and a search wait until their wait is over, a search of another server does not wait", async () => {
  const tools = JSON.stringify([{ name: "read_file", description: "Reads a file from disk." }]);
  const slow = { ...fixtureServer("never-lists.mjs"), directTools: true };
  const waits: SessionWaits = { searchWaitMs: LONG_MS, directWaitMs: 100, firstPlanWaitMs: LONG_MS };
  // The prompt is prepared although `slow` has told none of its direct tools.
  const pi = await start({ fs: fixtureServer("listed.mjs", { TOOLS: tools }), slow }, waits);

  const ofOne = await search(pi, { query: "read file", server: "fs" });
  expect(ofOne).toContain("- fs__read_file(");
  expect(ofOne).not.toContain("slow");

  waits.searchWaitMs = 100;
  expect(await search(pi, { query: "read file" })).toMatch(
    /- fs__read_file\((.|\n)*Still connecting, search again later: slow$/,
  );
});
