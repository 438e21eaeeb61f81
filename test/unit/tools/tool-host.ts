/** Owns: the session as the tools see it, for their tests: what a test does not give fails when it is used. */
import type { ToolHost } from "../../../src/tools/host.ts";

const unexpected = (name: string) => (): never => {
  throw new Error(`the test did not expect ${name}`);
};

export const toolHost = (given: Partial<ToolHost>): ToolHost => ({
  settle: async () => [],
  catalog: unexpected("catalog"),
  servers: () => [],
  activate: (tools) => ({ active: [...tools], refused: [] }),
  provide: unexpected("provide"),
  forModel: unexpected("forModel"),
  matchTools: unexpected("matchTools"),
  connect: unexpected("connect"),
  tell: async () => undefined,
  log: () => undefined,
  whyMissing: async () => undefined,
  ...given,
});
