/**
 * Owns: the server scenarios of the conformance suite against the packed `pi-mcp-threads serve --http`, in both eras. The tools that
 * the suite calls are those of tools-server.mjs, which serve gives on. The suite knows no tokens, so a proxy adds it.
 */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCli, startCli } from "../cli/support.ts";
import { once } from "../e2e/support.ts";
import { onCleanup } from "../support/cleanup.ts";
import { ALL_ROWS } from "../support/long.ts";
import { makeHome } from "../support/make-home.ts";
import { LONG_TEST_MS } from "../support/patience.ts";
import { SERVE } from "./serve-scenarios.ts";
import { runServerScenario, serverScenarios } from "./support.ts";

const TOKEN = "a-token-for-the-conformance-suite!!";

/** Adds the token to each request, and changes nothing else of it. */
async function withToken(url: string): Promise<string> {
  const proxy = createServer((asked, response) => {
    const headers = { ...asked.headers, authorization: `Bearer ${TOKEN}` };
    const sent = request(new URL(url), { method: asked.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    sent.on("error", () => response.destroy());
    response.on("close", () => sent.destroy());
    asked.pipe(sent);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onCleanup(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`;
}

/**
 * Scenarios of questions leave some unanswered, which keep their calls open, and a question goes to the oldest open call whose
 * client shows such ones. So they have a serve of their own, and another one from that scenario on whose client shows other
 * questions than those before.
 */
const OTHER_QUESTIONS = "input-required-result-capability-check";

const home = once(async () => {
  const command = { command: process.execPath, args: [join(import.meta.dirname, "tools-server.mjs")] };
  const made = await makeHome({
    mcp: { settings: { toolPrefix: "none", directTools: true }, mcpServers: { suite: command } },
  });
  await runCli(made, ["list"]);
  return made;
});

async function startServe(): Promise<string> {
  const { child, ended } = startCli(await home(), ["serve", "--http"], {
    env: { PI_MCP_THREADS_TOKEN: TOKEN },
  });
  onCleanup(async () => {
    child.kill();
    await ended;
  });
  let stderr = "";
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr?.on("data", (chunk: string) => {
      stderr += chunk;
      const [, found] = /Listening at (\S+)/.exec(stderr) ?? [];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error(stderr)));
  });
  return withToken(url);
}

for (const suite of ["stable", "next", "modern"] as const) {
  const { revision, failures } = SERVE[suite];
  describe.runIf(suite !== "stable" || ALL_ROWS)(`conformance of serve, ${suite}, ${revision}`, () => {
    test(
      "each scenario of the suite -> it passes, or a reason says why it cannot",
      async () => {
        const names = await serverScenarios(suite, revision);
        expect(names.length).toBeGreaterThan(25);
        expect(Object.keys(failures).filter((name) => !names.includes(name))).toEqual([]);
        const outcomes: string[] = [];
        const shared = await startServe();
        let asks: string | undefined;
        for (const name of names) {
          const isAsking = name.startsWith("input-required");
          if (isAsking && (asks === undefined || name === OTHER_QUESTIONS)) asks = await startServe();
          const url = (isAsking && asks) || shared;
          const { passed, report } = await runServerScenario(suite, name, url);
          if (passed !== !(name in failures)) outcomes.push(`${name}: ${passed ? "passes now" : report}`);
        }
        expect(outcomes).toEqual([]);
      },
      LONG_TEST_MS,
    );
  });
}
