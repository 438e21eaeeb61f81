/** Owns: which of the servers' prompts become commands that Pi proposes. What a command does: test/worker and test/e2e. */
import { expect, test } from "vitest";
import type { PiContext } from "../../../../src/pi/api.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { createPromptCommands } from "../../../../src/ui/prompts/prompts.ts";
import type { PromptHost } from "../../../../src/ui/prompts/use-prompt.ts";
import { createRecordingPi } from "../../recording-pi.ts";

test("a server that has other prompts with each list -> as many commands as may be; those of others are made", () => {
  const pi = createRecordingPi();
  let servers: { name: string; prompts?: { command: string }[] }[] = [];
  const host = { pi, catalog: () => ({ servers }) } as unknown as PromptHost;
  const { register } = createPromptCommands(host);
  for (let nth = 0; nth < LIMITS.toldCommands + 5; nth++) {
    servers = [{ name: "a", prompts: [{ command: `mcp__a__p${nth}` }] }, { name: "none" }];
    register({ mode: "rpc" } as PiContext);
  }
  expect(pi.commands.size).toBe(LIMITS.toldCommands);
  servers = [
    { name: "a", prompts: [{ command: "mcp__a__p3" }, { command: "mcp__a__new" }] },
    { name: "b", prompts: [{ command: "mcp__b__p" }] },
  ];
  register({ mode: "rpc" } as PiContext);
  expect([...pi.commands.keys()].slice(LIMITS.toldCommands)).toEqual(["mcp__b__p"]);
});
