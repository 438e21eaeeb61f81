/** Owns: what the extension does where another copy is in use, and where MCP is not wanted. */
import { expect, onTestFinished, test } from "vitest";
import piMcpThreads from "../../src/index.ts";
import type { Pi } from "../../src/pi/api.ts";
import { claim } from "../../src/pi/extension.ts";
import { createRecordingContext } from "./recording-context.ts";
import { createRecordingPi } from "./recording-pi.ts";

test("a second copy, and many sessions of one process -> it registers nothing, and says so once", () => {
  const heard: [event: string, handler: (event: { reason: string }, ctx: unknown) => unknown][] = [];
  const pi: Pi = Object.assign(createRecordingPi(), {
    on: (...args: (typeof heard)[number]) => {
      heard.push(args);
      return () => undefined;
    },
  });
  claim(pi, "/first/index.js");
  piMcpThreads(pi);
  expect(heard.map(([event]) => event)).toEqual(["session_start"]);
  const { ctx, notices } = createRecordingContext();
  for (const reason of ["startup", "new", "new", "resume"]) heard[0]?.[1]({ reason }, ctx);
  expect(notices).toEqual([
    [expect.stringMatching(/^pi-mcp-threads is loaded twice: \/first\/index\.js is in use, /), "warning"],
  ]);
});

const refuse = (): never => {
  throw new Error("Pi was told of something");
};

test("--no-mcp, Pi's own flag -> Pi hears of no tool, command or handler", () => {
  const never = Object.assign(createRecordingPi(), {
    ...{ on: refuse, registerTool: refuse, registerCommand: refuse, registerToolRenderer: refuse },
  });
  process.argv.push("--no-mcp");
  onTestFinished(() => void process.argv.pop());
  expect(() => piMcpThreads(never)).not.toThrow();
});
