/** Owns: the key `inheritEnv`: which variables of Pi's environment a server gets, and that a project only narrows it. */
import { describe, expect, test } from "vitest";
import { serverEnvironment } from "../../../../../../workers/connection/config/entry/cache-identity.ts";
import {
  type InheritEnv,
  inheritEnvWords,
  inherited,
  inheritedModelKeys,
  lessInherited,
} from "../../../../../../workers/connection/config/entry/inherit-env.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import { PROJECT_FILE, USER } from "../support.ts";

const ENV = {
  ...{ HOME: "/home/ann", PATH: "/bin", LC_ALL: "C", https_proxy: "http://p", SSL_CERT_FILE: "/ca.pem" },
  ...{ ANTHROPIC_API_KEY: "k", AWS_REGION: "eu", AWS_SECRET_ACCESS_KEY: "s", KUBECONFIG: "/k", LCX: "no" },
};
const NEEDED = ["HOME", "PATH", "LC_ALL", "https_proxy", "SSL_CERT_FILE"];

describe("what is inherited", () => {
  test.each<[rule: InheritEnv | undefined, names: string[]]>([
    [undefined, Object.keys(ENV)],
    [true, Object.keys(ENV)],
    [false, NEEDED],
    [[], NEEDED],
    [
      ["AWS_*", "KUBECONFIG"],
      [...NEEDED, "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "KUBECONFIG"],
    ],
    [["*_KEY"], [...NEEDED, "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY"]],
    [["*"], Object.keys(ENV)],
    [["aws_*"], NEEDED],
  ])("%j", (rule, names) => {
    expect(Object.keys(inherited(ENV, rule, "linux")).sort()).toEqual([...names].sort());
  });

  test.each<InheritEnv | undefined>([undefined, true, false, ["*"], ["PI_MCP_THREADS_TOKEN"]])(
    "%j -> not the token of serve --http, unless the entry sets it",
    (inheritEnv) => {
      const base = { ...ENV, PI_MCP_THREADS_TOKEN: "t", PI_MCP_THREADS_TOKENS: "n" };
      const facts = { base, session: "/s", home: "/home/ann", platform: "linux" as const, ends: new Map() };
      const environment = (own: Record<string, string>) =>
        serverEnvironment({ definedByProject: false, inheritEnv, command: "x", args: [] }, own, facts);
      expect(environment({})).not.toHaveProperty("PI_MCP_THREADS_TOKEN");
      expect(environment({ PI_MCP_THREADS_TOKEN: "own" })).toHaveProperty("PI_MCP_THREADS_TOKEN", "own");
      expect(inherited({ Pi_Mcp_Threads_Token: "t" }, inheritEnv, "win32")).toEqual({});
    },
  );

  test.each([
    ["npx", ["-y", "some-server"], "/bin"],
    ["/usr/bin/npm", ["exec", "some-server"], "/bin"],
    ["uvx", ["some-server"], "/s/node_modules/.bin:./bin:/bin"],
  ])("%s %j of a project's server -> PATH is %s", (command, args, path) => {
    const base = { PATH: "/s/node_modules/.bin:./bin:/bin" };
    const facts = { base, session: "/s", home: "/home/ann", platform: "linux" as const, ends: new Map() };
    const of = { definedByProject: true, inheritEnv: undefined, command, args };
    expect(serverEnvironment(of, {}, facts)).toEqual({ PATH: path });
  });

  test("Windows knows no case, and its programs need more", () => {
    const env = {
      Path: "C:\\",
      SYSTEMROOT: "C:\\Windows",
      "ProgramFiles(x86)": "C:\\P",
      Aws_Region: "eu",
      X: "x",
    };
    expect(Object.keys(inherited(env, ["aws_*"], "win32"))).toEqual([
      "Path",
      "SYSTEMROOT",
      "ProgramFiles(x86)",
      "Aws_Region",
    ]);
  });

  test("keys of model providers are told by name, if they are set and inherited", () => {
    const env = { ...ENV, OPENAI_API_KEY: "", HF_TOKEN: "h" };
    expect(inheritedModelKeys(env, true, "linux")).toEqual(["ANTHROPIC_API_KEY", "HF_TOKEN"]);
    expect(inheritedModelKeys(env, ["HF_*"], "linux")).toEqual(["HF_TOKEN"]);
    expect(inheritedModelKeys(env, false, "linux")).toEqual([]);
  });
});

describe("less than the user's own rule", () => {
  test.each<[own: InheritEnv, wanted: InheritEnv, value: InheritEnv, isLooser: boolean]>([
    [true, true, true, false],
    [true, false, false, false],
    [true, ["A*"], ["A*"], false],
    [false, true, false, true],
    [false, false, false, false],
    [false, ["A*"], false, true],
    [["A*"], true, ["A*"], true],
    [["A*"], ["AB*", "A"], ["AB*", "A"], false],
    [["A*"], ["*", "AB"], ["AB"], true],
    [["A*Z"], ["A*"], false, true],
    [["A*Z"], ["A*B*Z"], ["A*B*Z"], false],
  ])("%j, wanted %j", (own, wanted, value, isLooser) => {
    expect(lessInherited(own, wanted)).toEqual({ value, isLooser });
  });
});

const merged = (user: object, project: object) => {
  const file = (source: typeof USER, text: object) => parseConfigText(JSON.stringify(text), source);
  const files = [file(USER, user), file(PROJECT_FILE, project)];
  const { servers, problems } = mergeLayers({ registered: [], hosts: [], files });
  return {
    rules: Object.fromEntries(servers.map(({ name, inheritEnv }) => [name, inheritEnv])),
    problems: [...files.flatMap((one) => one.problems), ...problems].map(
      ({ key, message }) => `${key}: ${message}`,
    ),
  };
};

describe("servers and settings", () => {
  test("the setting counts for local servers that say nothing, a server's own word wins", () => {
    const mcpServers = {
      a: { command: "a" },
      b: { command: "b", inheritEnv: true },
      c: { url: "https://c" },
    };
    expect(merged({ settings: { inheritEnv: ["X"] }, mcpServers }, {}).rules).toEqual({
      a: ["X"],
      b: undefined,
      c: undefined,
    });
  });

  test("a project's server gets no more than the setting, and the project's setting counts for nothing", () => {
    const project = {
      settings: { inheritEnv: true },
      mcpServers: { p: { command: "p", inheritEnv: ["X", "Y"] }, q: { command: "q" } },
    };
    expect(merged({ settings: { inheritEnv: ["X"] } }, project)).toEqual({
      rules: { p: ["X"], q: ["X"] },
      problems: [
        "settings.inheritEnv: a project's file may not decide this: your own servers may need their variables",
        "mcpServers.p.inheritEnv: a project's file may only make this stricter",
      ],
    });
  });

  test("a project cannot change the rule of the user's own server", () => {
    const user = { mcpServers: { a: { command: "a", inheritEnv: ["X"] } } };
    expect(merged(user, { mcpServers: { a: { inheritEnv: false } } })).toEqual({
      rules: { a: ["X"] },
      problems: ["mcpServers.a.inheritEnv: a project's file may set this for its own servers only"],
    });
  });

  test("a remote server has no environment", () => {
    const { problems } = merged({ mcpServers: { a: { url: "https://a", inheritEnv: ["X"] } } }, {});
    expect(problems).toEqual(["mcpServers.a.inheritEnv: has no effect: a remote server gets no environment"]);
  });
});

test("the words of the consent name each pattern in one line", () => {
  expect(inheritEnvWords(false)).toEqual([
    "gets no variables of your environment beside PATH, HOME and the like",
  ]);
  expect(inheritEnvWords(["A", "B\n*"])).toEqual([
    'of your environment, it gets A, "B\\n*" beside PATH, HOME and the like',
  ]);
});
