/** Owns: a rule of OpenCode, without the server in it, lets no tool run that it fits by another name of ours alone. */
import { expect, test } from "vitest";
import { exposureOf, namesInRules } from "../../../../../../workers/connection/config/entry/exposure.ts";
import { merged, verdict } from "./support.ts";

/** By all names that rules may use, as in a session. */
function come(server: string, root: object, ...tools: string[]) {
  const { servers, problems } = merged("opencode", [
    ["user", { mcp: { [server]: { type: "local", command: ["x"] } }, ...root }],
  ]);
  const made = servers[server];
  if (!made) throw new Error("no server");
  const shown = tools.filter((tool) =>
    (["server", "none"] as const).some(
      (prefix) => exposureOf(tool, made, undefined, namesInRules(server, tool, prefix)) !== "hidden",
    ),
  );
  const asked = shown.filter((tool) => verdict(made, tool) === "ask");
  return { shown, asked, isTold: problems.some((one) => one.includes("is an exception from")) };
}

test.each<[server: string, root: object, shown: string[], asked: string[], isTold: boolean]>([
  ["github", { permission: { "*": "deny", "github_g*": "allow" } }, [], [], true],
  ["github", { permission: { "*": "deny", "github_g*": "ask" } }, [], [], true],
  ["search", { tools: { "search_*": false, "search_search*": true } }, [], [], true],
  [
    "github",
    { permission: { "*": "ask", "github_g*": "allow" } },
    ["get_a", "drop"],
    ["get_a", "drop"],
    true,
  ],
  ["github", { permission: { "*": "deny", "*mcp*": "allow" } }, [], [], true],
  ["github", { permission: { "*": "deny", "github_*_drop": "allow" } }, [], [], true],
  ["github", { permission: { "*": "deny", "*__drop": "allow" } }, [], [], true],
  ["my-mcp", { permission: { "*": "deny", "my-mcp_m*": "allow" } }, [], [], true],
  // These fit the same tools.
  ["github", { permission: { "*": "deny", "github_get_*": "allow" } }, ["get_a"], [], false],
  ["github", { permission: { "*": "deny", "*_get_*": "allow" } }, ["get_a"], [], false],
  ["github", { permission: { "*": "deny", "*github*": "allow" } }, ["get_a", "drop"], [], false],
  ["github", { permission: { "*": "deny", "git*_drop": "allow" } }, ["drop"], [], false],
  [
    "github",
    { permission: { "*": "ask", "github_g*t_a": "allow", github_get_a: "allow" } },
    ["get_a", "drop"],
    ["drop"],
    true,
  ],
])("%s, %j -> %j, of these %j ask", (server, root, shown, asked, isTold) => {
  expect(come(server, root, "get_a", "drop")).toEqual({ shown, asked, isTold });
});

test.each<[object, shown: string[], asked: string[]]>([
  [{ permission: { "*": "deny", slack_slack_post: "allow" } }, ["slack_post"], []],
  [{ permission: { "*": "deny", slack_slack_post: "ask" } }, ["slack_post"], ["slack_post"]],
  [{ permission: { "*": "ask", slack_slack_post: "allow" } }, ["slack_post", "post"], ["post"]],
  [{ permission: { "*": "ask", slack_post: "deny", slack_slack_post: "allow" } }, ["slack_post"], []],
  [
    { permission: { "*": "deny", slack_post: "allow", slack_slack_post: "allow" } },
    ["slack_post", "post"],
    [],
  ],
  [
    { permission: { "*": "ask", slack_post: "allow", slack_slack_post: "allow" } },
    ["slack_post", "post"],
    [],
  ],
  [
    { permission: { "*": "allow", "slack_p??t": "ask", slack_slack_post: "allow" } },
    ["slack_post", "post"],
    ["post"],
  ],
  [
    { permission: { "slack_*": "allow", "*_post": "ask", slack_slack_post: "allow" } },
    ["slack_post", "post"],
    ["post"],
  ],
  [{ tools: { slack_other: false, slack_slack_post: true } }, ["slack_post", "post"], []],
  // Another file may ask about it.
  [{ permission: { slack_other: "ask", slack_slack_post: "allow" } }, ["slack_post", "post"], ["post"]],
  [{ permission: { slack_slack_post: "allow" } }, ["slack_post", "post"], []],
  [{ tools: { "slack*": false, slack_slack_post: true } }, ["slack_post"], []],
  [
    { tools: { "*": false, slack_slack_post: true }, permission: { "*": "ask", slack_post: "allow" } },
    ["slack_post"],
    ["slack_post"],
  ],
])("a tool whose own name begins with its server's, %j -> %j, of these %j ask", (root, shown, asked) => {
  expect(come("slack", root, "slack_post", "post")).toEqual({ shown, asked, isTold: false });
});

test.each<[object, shown: string[], asked: string[]]>([
  [{ tools: { gh_files_drop: false } }, ["files.read"], []],
  [{ permission: { "*": "deny", "gh_files_r*": "allow" } }, ["files.read"], []],
  [{ permission: { gh_files_drop: "ask" } }, ["files.read", "files.drop"], ["files.drop"]],
])(
  "a tool with a character that no name in OpenCode has, %j -> %j, of these %j ask",
  (root, shown, asked) => {
    expect(come("gh", root, "files.read", "files.drop")).toEqual({ shown, asked, isTold: false });
  },
);

test.each<[server: string, root: object]>([
  ["my-mcp", { tools: { "*-mcp_drop": false } }],
  ["my-mcp", { tools: { "*y-mcp_files_drop": false } }],
  ["github", { tools: { "*hub_files_drop": false } }],
  ["github", { permission: { "g*hub_files_drop": "deny" } }],
  ["my.srv", { tools: { "*y_srv_drop": false } }],
  ["my-mcp", { tools: { "m*-*p_d*": false } }],
  ["aa-a", { tools: { "*a_drop": false } }],
])("a rule that names a part of its server, %s, %j -> it counts", (server, root) => {
  const tools = JSON.stringify(root).includes("files") ? ["files.drop", "get_a"] : ["drop", "get_a"];
  expect(come(server, root, ...tools).shown).toEqual(["get_a"]);
});
