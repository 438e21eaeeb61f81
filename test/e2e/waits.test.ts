/**
 * Owns: tests of a session whose own wait ends. The real session runs in this process with its threads and servers, so
 * a test can set shorter waits than the seconds of a user's session.
 * @module-tag thorough
 */
import { expect, onTestFinished, test } from "vitest";
import type { PiToolContext } from "../../src/pi/api.ts";
import type { SessionWaits } from "../../src/session/running.ts";
import { createSession } from "../../src/session/session.ts";
import { createRecordingContext } from "../unit/recording-context.ts";
import { createRecordingPi, type RecordingPi } from "../unit/recording-pi.ts";
import { fixtureServer, home } from "./support.ts";

/** A wait that exceeds the time limit of a test, so a test in which it happens fails. */
const LONG_MS = 600_000;

/** Starts a session with these servers and prepares the first prompt. */
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

test("a server that never lists its tools -> the first prompt and a search wait only for their time limit, a search of another server does not wait", async () => {
  const tools = JSON.stringify([{ name: "read_file", description: "Reads a file from disk." }]);
  const slow = { ...fixtureServer("never-lists.mjs"), directTools: true };
  const waits: SessionWaits = { searchWaitMs: LONG_MS, directWaitMs: 100, firstPlanWaitMs: LONG_MS };
  // The prompt is prepared although `slow` has not listed its direct tools.
  const pi = await start({ fs: fixtureServer("listed.mjs", { TOOLS: tools }), slow }, waits);

  const ofOne = await search(pi, { query: "read file", server: "fs" });
  expect(ofOne).toContain("- fs__read_file(");
  expect(ofOne).not.toContain("slow");

  waits.searchWaitMs = 100;
  expect(await search(pi, { query: "read file" })).toMatch(
    /- fs__read_file\((.|\n)*Still connecting, search again later: slow$/,
  );
});
