/** Owns: no file of a project lifts what the user's files of another program, or the user's own ones after those, take away. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { PROJECT_FILE, PROJECT_PI, USER } from "../support.ts";
import { merged, running, shows, verdict } from "./support.ts";

const ours = (source: typeof USER, x: object) =>
  parseConfigText(JSON.stringify({ mcpServers: { x } }), source);
const X = { type: "local", command: ["x"] };

describe("a project's file of the program comes first", () => {
  test.each([{ enabled: true }, { enabled: false }])(
    "%j, and its .mcp.json clears what is excluded -> the program's rules hold",
    (changed) => {
      const { all } = merged(
        "opencode",
        [
          ["user", { mcp: { x: X }, tools: { x_drop: false }, permission: { x_write: "ask" } }],
          ["project", { mcp: { x: changed } }],
        ],
        {},
        [ours(PROJECT_FILE, { excludeTools: [], enabled: true })],
      );
      const { x } = running(all);
      expect(shows(x, "drop", "read")).toEqual(["read"]);
      expect(verdict(x, "write")).toBe("ask");
    },
  );

  test("the user's own mcp.json excludes, and the project's .mcp.json clears it -> it stays excluded", () => {
    const { all } = merged(
      "codex",
      [
        ["user", '[mcp_servers.x]\ncommand = "x"\n'],
        ["project", "[mcp_servers.x]\nenabled = true\n"],
      ],
      {},
      [ours(USER, { excludeTools: ["drop"] }), ours(PROJECT_FILE, { excludeTools: [] })],
    );
    expect(shows(running(all).x, "drop", "read")).toEqual(["read"]);
  });

  test("the user's own mcp.json switches off, and the project's .mcp.json on -> nothing runs unasked", () => {
    const { all } = merged(
      "codex",
      [
        ["user", '[mcp_servers.x]\ncommand = "x"\n'],
        ["project", "[mcp_servers.x]\nenabled = true\n"],
      ],
      {},
      [ours(USER, { enabled: false }), ours(PROJECT_FILE, { enabled: true })],
    );
    expect(running(all)).toEqual({});
  });
});

test.each([PROJECT_FILE, PROJECT_PI])(
  "it only changes how the user's server runs, and $origin clears the user's rules -> they hold after a yes",
  (by) => {
    const { all } = merged(
      "codex",
      [
        [
          "user",
          '[mcp_servers.x]\ncommand = "x"\ndisabled_tools = ["drop"]\n[mcp_servers.x.tools.write]\napproval_mode = "prompt"\n',
        ],
        ["project", '[mcp_servers.x]\nargs = ["--fast"]\n'],
      ],
      {},
      [ours(by, { excludeTools: [], approve: "never" })],
    );
    expect(all[0]?.target).toMatchObject({ args: ["--fast"] });
    expect(shows(all[0], "drop", "read")).toEqual(["read"]);
    expect(verdict(all[0], "write")).toBe("ask");
  },
);

describe("a project has more rules or servers than are compared", () => {
  const USERS = { mcp: { x: X }, tools: { x_drop: false }, permission: { x_write: "ask" } };
  const list = (count: number, name: (at: number) => string, value: unknown): object =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [name(at), value]));
  const many = list(LIMITS.toolRules + 1, (at) => `y_${at}`, false);
  const servers = list(LIMITS.serversPerProjectFile, (at) => `s${at}`, X);
  type Files = Parameters<typeof merged>[1];

  test.each([PROJECT_FILE, PROJECT_PI])(
    "and $origin switches the user's server on -> the user's rules hold",
    (by) => {
      for (const where of ["project", "last"] as const) {
        const files: Files =
          where === "project"
            ? [
                ["user", USERS],
                ["project", { tools: many }],
              ]
            : [
                ["project", { tools: many }],
                ["last", USERS],
              ];
        const { all, problems } = merged("opencode", files, {}, [
          ours(by, { enabled: true, excludeTools: [], approve: "never" }),
        ]);
        const { x } = running(all);
        expect(shows(x, "drop", "read")).toEqual(["read"]);
        expect(verdict(x, "write")).toBe("ask");
        expect(problems).toEqual([expect.stringMatching(/1,000 rules for tools, so the servers .* are off/)]);
      }
    },
  );

  test("nobody switches it on -> it is off", () => {
    const { all } = merged("opencode", [
      ["user", USERS],
      ["project", { tools: many }],
    ]);
    expect(running(all)).toEqual({});
  });

  test("and its file of the program switches on what the user's switches off -> the user's rules hold after a yes", () => {
    const { all } = merged(
      "opencode",
      [
        ["user", { ...USERS, mcp: { x: { ...X, enabled: false } } }],
        ["project", { mcp: { x: { enabled: true } }, tools: many }],
      ],
      {},
      [ours(PROJECT_FILE, { enabled: true, excludeTools: [] })],
    );
    expect(running(all)).toEqual({});
    expect(shows(all[0], "drop", "read")).toEqual(["read"]);
    expect(verdict(all[0], "write")).toBe("ask");
  });

  test("and changes how the user's server runs, which the user's mcp.json switches on -> the user's rules hold after a yes", () => {
    const { all } = merged(
      "opencode",
      [
        ["user", USERS],
        ["project", { mcp: { x: { environment: { A: "1" } } }, tools: many }],
      ],
      {},
      [ours(USER, { enabled: true })],
    );
    expect(all[0]).toMatchObject({ enabled: true, target: { env: { A: "1" } } });
    expect(shows(all[0], "drop")).toEqual([]);
    expect(verdict(all[0], "write")).toBe("ask");
  });

  test("a server of the project's, for which the user's rules are not looked at -> only the user switches it on", () => {
    const files: Files = [
      ["user", USERS],
      ["project", { mcp: { theirs: X }, tools: many }],
    ];
    const on = { mcpServers: { theirs: { enabled: true } } };
    const { servers } = merged("opencode", files, {}, [parseConfigText(JSON.stringify(on), PROJECT_FILE)]);
    expect(servers.theirs?.enabled).toBe(false);
  });

  test("servers alone -> only the project's are off", () => {
    const tools = list(LIMITS.toolRules, (at) => `x_${at}`, false);
    const { all, problems } = merged("opencode", [
      ["user", { mcp: { x: X }, tools }],
      ["project", { mcp: servers }],
    ]);
    expect(Object.keys(running(all))).toEqual(["x"]);
    expect(all.filter(({ enabled }) => enabled).map(({ name }) => name)).toEqual(["x"]);
    expect(shows(running(all).x, "0", "read")).toEqual(["read"]);
    expect(problems).toEqual([expect.stringContaining("so the project's servers of this program are off")]);
  });

  test("the user's own rules are too many -> no project's file switches the server on unasked, or with tools", () => {
    const { all, problems } = merged(
      "opencode",
      [
        ["user", { ...USERS, tools: many }],
        ["project", { tools: { y_a: false } }],
      ],
      {},
      [ours(PROJECT_FILE, { enabled: true })],
    );
    expect(running(all)).toEqual({});
    expect(shows(all[0], "drop", "read")).toEqual([]);
    expect(problems).toEqual([expect.stringContaining("have no tools if they are switched on")]);
  });

  test("and the user's own mcp.json switches it on -> it has no tools", () => {
    const { servers } = merged("opencode", [["user", { ...USERS, tools: many }]], {}, [
      ours(USER, { enabled: true }),
    ]);
    expect(shows(servers.x, "drop", "read")).toEqual([]);
  });
});
