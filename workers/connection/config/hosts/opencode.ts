/**
 * The row of OpenCode, whose two versions write much in different ways: config.ts and paths.ts of OpenCode, config/mcp.ts of its
 * version 2, and opencode.ai/docs/config, mcp-servers and permissions. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { pathsOf } from "../entry/interpolate.ts";
import type { Override } from "../entry/override.ts";
import { foldersUp } from "../files/sources.ts";
import {
  compact,
  type Data,
  type Dialect,
  type HostFiles,
  type HostFolders,
  oauthOf,
  objectAt,
  pick,
} from "./format.ts";

/**
 * OpenCode's own order, with the XDG rules on every platform. If `.opencode` folders are nested, the inner one wins
 * here, as in version 2; in version 1 the outer one wins.
 */
function files({ facts, config, join }: HostFolders): HostFiles {
  const { cwd, env, home, platform } = facts;
  const both = (folder: string): string[] =>
    ["opencode.json", "opencode.jsonc"].map((name) => join(folder, name));
  const folders = foldersUp(facts);
  const { OPENCODE_CONFIG: named, OPENCODE_CONFIG_DIR: folder } = env;
  const absolute = (path: string): string => pathsOf(platform).resolve(cwd, path);
  return {
    user: [...both(join(config, "opencode")), ...(named ? [absolute(named)] : [])],
    project: [...folders.flatMap(both), ...folders.flatMap((each) => both(join(each, ".opencode")))],
    userLast: [...both(join(home, ".opencode")), ...(folder ? both(absolute(folder)) : [])],
  };
}

/** Version 2 of OpenCode keeps the servers in `mcp.servers`, version 1 in `mcp`. */
const groups: Dialect["groups"] = (root) => {
  const { servers, timeout: _, ...plain } = objectAt(root.mcp);
  if (!isObject(servers) || typeof servers.type === "string") return [{ path: ["mcp"], servers: root.mcp }];
  return [
    { path: ["mcp"], servers: plain },
    { path: ["mcp", "servers"], servers },
  ];
};

/** Version 1 has one number of milliseconds, to list the tools; version 2 has one for each of these, also for all servers. */
function timeouts({ timeout }: Data, root: Data): Data {
  if (typeof timeout === "number") return { startupTimeoutMs: timeout };
  const { startup, execution, request } = {
    ...objectAt(objectAt(root.mcp).timeout),
    ...compact(objectAt(timeout)),
  } as Data;
  return { startupTimeoutMs: startup, requestTimeoutMs: execution ?? request };
}

/** Version 2 has underscores in its keys. */
const client = ({ oauth }: Data): Data => {
  const { client_id, client_secret, callback_port, redirect_uri, ...own } = objectAt(oauth);
  return {
    ...{
      clientId: client_id,
      clientSecret: client_secret,
      callbackPort: callback_port,
      redirectUri: redirect_uri,
    },
    ...compact(pick(own, "clientId", "clientSecret", "scope", "callbackPort", "redirectUri")),
  };
};

type Rule = [pattern: string, rule: "allow" | "ask" | "deny"];

const isRule = (rule: unknown): rule is Rule[1] => rule === "allow" || rule === "ask" || rule === "deny";

/** What the file says of tools by their names in OpenCode, `<server>_<tool>`; of several rules that fit the last one counts. */
function written({ tools, permission }: Data): Rule[] {
  const permissions = typeof permission === "string" ? { "*": permission } : objectAt(permission);
  return [
    ...Object.entries(objectAt(tools)).map(([pattern, is]) => [pattern, is === false ? "deny" : "allow"]),
    ...Object.entries(permissions),
  ].filter((one): one is Rule => isRule(one[1]));
}

/** The rules of one server, for its own names of its tools. */
function rulesFor(server: string, all: readonly Rule[]): Rule[] {
  const prefix = `${server.replace(/[^\w-]/g, "_")}_`;
  return all.flatMap(([pattern, rule]): Rule[] => {
    const star = pattern.search(/[*?]/);
    const head = star === -1 ? pattern : pattern.slice(0, star);
    // Patterns have no sign for a single character here.
    const plain = (rest: string): string => rest.replaceAll("?", "*");
    if (rule === "allow" && pattern.includes("?")) return [];
    if (head.startsWith(prefix)) return [[plain(pattern.slice(prefix.length)) || "*", rule]];
    return star !== -1 && prefix.startsWith(head) ? [[plain(pattern.slice(star)), rule]] : [];
  });
}

/** Tools that are taken away are excluded. An `allow` counts only if no stricter rule comes after it. */
function asOverride(rules: readonly Rule[]): Override | undefined {
  const last = rules.findLastIndex(([, rule]) => rule !== "allow");
  const asks = rules.filter(([, rule], at) => rule === "ask" || (rule === "allow" && at > last));
  if (last === -1) return undefined;
  return {
    excludeTools: rules.flatMap(([pattern, rule]) => (rule === "deny" ? [pattern] : [])),
    ...(asks.some(([, rule]) => rule === "ask") && {
      approve: Object.fromEntries(asks) as Record<string, "allow" | "ask">,
    }),
  };
}

export const OPENCODE: Dialect = {
  title: "OpenCode",
  files,
  looksUp: true,
  mergesEntries: true,
  groups,
  rules: (root) => {
    const all = written(root);
    const count = all.length;
    return count > 0 ? { count, steps: count, of: (name) => asOverride(rulesFor(name, all)) } : undefined;
  },
  convert: (entry, root) => {
    const [command, ...args] = [entry.command].flat();
    return {
      command,
      args: args.length > 0 ? args : undefined,
      env: entry.environment,
      ...pick(entry, "cwd", "url", "headers", "enabled", "disabled"),
      ...timeouts(entry, root),
      // `false` stays: OpenCode then signs in to nothing.
      oauth: isObject(entry.oauth)
        ? oauthOf(client(entry), (port = 19876) => `http://127.0.0.1:${port}/mcp/oauth/callback`)
        : entry.oauth,
    };
  },
  // In OpenCode a variable that is not set is empty.
  syntax: () => ({
    pattern: /\{env:([A-Za-z_][A-Za-z0-9_]*)\}/g,
    fill: (name) => ({ ours: `\${${name}:-}` }),
  }),
  foreign: /\{(file:[^}]*)\}/g,
};
