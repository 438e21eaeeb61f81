/** Owns: from a configuration file and `MCP_DIRECT_TOOLS` to the tools that are declared from the first request on. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { directRule } from "../../../../../../src/tools/book.ts";
import { exposureOf, mayBeDirect } from "../../../../../../workers/connection/config/entry/exposure.ts";
import { loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { facts, put, temporaryFolder } from "../support.ts";

type Entry = Record<string, unknown>;
const servers = (x: Entry = {}, y: Entry = {}) => ({ x: { command: "x", ...x }, y: { command: "y", ...y } });

test.each<[name: string, mcp: unknown, variable: string | undefined, names: string[]]>([
  ["none", { mcpServers: servers() }, undefined, []],
  ["all of a server", { mcpServers: servers({ directTools: true }) }, undefined, ["x/a", "x/b"]],
  ["one of a server", { mcpServers: servers({ directTools: ["b"] }) }, undefined, ["x/b"]],
  [
    "the settings' but for one server",
    { settings: { directTools: true }, mcpServers: servers({}, { directTools: false }) },
    undefined,
    ["x/a", "x/b"],
  ],
  ["by toolExposure", { mcpServers: servers({ toolExposure: { "a*": "direct" } }) }, undefined, ["x/a"]],
  [
    "exposure but for one tool",
    { mcpServers: servers({ exposure: "direct", toolExposure: { b: "hidden" } }) },
    undefined,
    ["x/a"],
  ],
  ["MCP_DIRECT_TOOLS wins", { mcpServers: servers({ directTools: true }) }, "y/b", ["y/b"]],
  ["MCP_DIRECT_TOOLS *", { mcpServers: servers() }, "*", ["x/a", "x/b", "y/a", "y/b"]],
  ["MCP_DIRECT_TOOLS none", { mcpServers: servers({ directTools: true }) }, "__none__", []],
])("%s -> the direct tools, and their servers are waited for", async (_name, mcp, variable, expected) => {
  const agentDir = await temporaryFolder();
  await put(join(agentDir, "mcp.json"), mcp);
  const config = await loadConfig(facts({ agentDir, cwd: join(agentDir, "project"), home: agentDir }));
  const rule = directRule(variable);
  const { directTools } = config.settings;
  const tools = config.servers.flatMap((server) =>
    ["a", "b"].map((tool) => ({ tool, server, exposure: exposureOf(tool, server, directTools) })),
  );
  const direct = tools.filter(
    ({ tool, server, exposure }) =>
      exposure !== "hidden" && rule.isDirect({ tool, server, direct: exposure === "direct" }),
  );
  expect(direct.map(({ tool, server }) => `${server.name}/${tool}`)).toEqual(expected);
  const waitedFor = config.servers.filter((server) =>
    rule.concerns(server.name, mayBeDirect(server, directTools)),
  );
  expect(waitedFor.map(({ name }) => name)).toEqual([...new Set(direct.map(({ server }) => server.name))]);
});
