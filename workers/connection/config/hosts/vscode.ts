/**
 * VS Code. Sources: code.visualstudio.com/docs/reference/variables-reference, and extHostMcpNode.ts for `~` in
 * command, args and cwd, and for `envFile`. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { editorSyntax, editorVariables, withEnvFile } from "./common.ts";
import { compact, type Data, type Dialect } from "./dialect.ts";
import { vscodeOauth } from "./oauth.ts";

/** VS Code allows numbers and null in `env`. */
function convert(entry: Data): Data {
  const env = isObject(entry.env) ? compact(entry.env) : undefined;
  const texts = env && Object.entries(env).map(([key, value]) => [key, String(value)]);
  return { ...withEnvFile(entry, vscodeOauth(entry)), env: texts && Object.fromEntries(texts) };
}

export const vscode: Dialect = {
  files: ({ facts: { cwd }, appData, join }) => ({
    user: [join(appData, "Code", "User", "mcp.json")],
    project: [join(cwd, ".vscode", "mcp.json")],
  }),
  groups: (root) => [{ path: ["servers"], servers: root.servers }],
  convert,
  // In VS Code a variable that is not set is empty.
  syntax: (facts) => editorSyntax({ ...editorVariables(facts), cwd: facts.cwd }, ":-"),
  expandsHomeInArgs: true,
  namesOpenFile: true,
  // A question, an extension, an open file and another folder are known to VS Code only.
  foreign:
    /\$\{((?:input|config|command|workspaceFolder|extensionInstallFolder|env):[^}]*|(?:file|relativeFile|fileWorkspaceFolder|selected|line|column)[A-Za-z]*(?::[^}]*)?|execPath|defaultBuildTask)\}/g,
};
