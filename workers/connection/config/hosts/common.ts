/** What Cursor, Claude, Windsurf and VS Code have in common: nearly the same entry, and an editor's variables. Pure. */
import { pathsOf } from "../entry/interpolate.ts";
import type { ConfigFacts } from "../files/files.ts";
import { type Data, type Dialect, pick, type Syntax } from "./dialect.ts";
import { commonOauth } from "./oauth.ts";

const SHARED_KEYS = ["command", "args", "env", "cwd", "url", "headers", "disabled", "enabled"] as const;

/** `streamableHttp`, `streamable_http` and the like. */
const typeOf = (type: unknown): unknown =>
  typeof type === "string" && /^streamable.?http$/i.test(type) ? "streamable-http" : type;

export const mcpServers: Dialect["groups"] = (root) => [{ path: ["mcpServers"], servers: root.mcpServers }];

/** `oauth`: the program's OAuth client in our keys. */
export const fromCommon = (entry: Data, oauth: Data | undefined = commonOauth(entry)): Data => ({
  ...pick(entry, SHARED_KEYS),
  url: entry.url ?? entry.serverUrl,
  type: typeOf(entry.type),
  excludeTools: entry.disabledTools,
  oauth,
});

/** As `fromCommon`, with an `envFile`, which only local servers have. */
export const withEnvFile = (entry: Data, oauth: Data | undefined = commonOauth(entry)): Data => ({
  ...fromCommon(entry, oauth),
  envFile: entry.command === undefined ? undefined : entry.envFile,
});

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export const isVariableName = (name: unknown): name is string => typeof name === "string" && NAME.test(name);

/** `${env:X}`. */
export const isEnvVariable = (variable: string): boolean =>
  variable.startsWith("env:") && NAME.test(variable.slice("env:".length));

/** The variables of an editor, beside those of the environment. */
export const editorVariables = ({ platform, home, cwd }: ConfigFacts): Record<string, string> => {
  const { basename, sep } = pathsOf(platform);
  return {
    userHome: home,
    workspaceFolder: cwd,
    workspaceFolderBasename: basename(cwd),
    pathSeparator: sep,
    "/": sep,
  };
};

/** `${env:X}` and these variables. `unset`: what stands behind our variable's name, for one that is not set. */
export const editorSyntax = (known: Record<string, string>, unset: ":-" | "" = ""): Syntax => ({
  pattern: /\$\{([^${}]+)\}/g,
  fill: (variable) => {
    if (Object.hasOwn(known, variable)) return { value: known[variable] ?? "" };
    return isEnvVariable(variable) ? { ours: `\${${variable}${unset}}` } : undefined;
  },
});
