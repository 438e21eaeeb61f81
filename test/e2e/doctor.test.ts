/** Owns: the doctor in the real Pi over RPC, and that servers which fail together make one notice. */
import { readFile, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findSecrets } from "../support/find-secrets.ts";
import { notices } from "../support/rpc-events.ts";
import { open } from "./rpc-support.ts";
import { fixtureServer, onCleanup, once, readLog, SERVERS } from "./support.ts";

const SECRET = "sk-pmt-51c0ffee7ab1e5d2";

/** One Pi with five servers that fail and one that works: its notices, the doctor's words, the log. */
const ran = once(async () => {
  const web = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome</h1>");
  });
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  onCleanup(async () => web.close());
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/?key=${SECRET}`;
  const pi = await open({
    mcp: {
      mcpServers: {
        missing: { command: "no-such-command-here", env: { KEY: SECRET } },
        exits: fixtureServer("exits.mjs"),
        garbage: fixtureServer("garbage.mjs"),
        page: { url, headers: { "X-Key": SECRET } },
        unset: { command: process.execPath, args: [`\${PMT_UNSET_VARIABLE}`] },
        memory: SERVERS.memory,
      },
    },
  });
  await pi.notice(/MCP servers failed/);
  const doctor = notices(await pi.rpc.command("/mcp doctor"));
  const named = notices(await pi.rpc.command("/mcp doctor memory"));
  const absent = notices(await pi.rpc.command("/mcp doctor nobody"));
  const all = notices(pi.rpc.events);
  const reportFile = join(pi.at.agentDir, "mcp-doctor.md");
  const report = { text: await readFile(reportFile, "utf8"), mode: (await stat(reportFile)).mode & 0o777 };
  expect((await pi.rpc.stop()).code).toBe(0);
  expect(pi.rpc.stderr).toBe("");
  return { doctor, named, absent, all, log: await readLog(pi.at), report };
});

test("five servers fail at the start -> told together, each once", async () => {
  const { all } = await ran();
  const told = all.filter(({ level, message }) => level === "error" && !message.startsWith("/mcp: "));
  const lines = told.flatMap(({ message }) => message.split("\n"));
  // A machine that is busy for longer than failures are gathered shows those that come later in a notice of their own.
  expect(lines[0]).toMatch(/^[2-5] MCP servers failed:$/);
  expect(lines).toContain("/mcp doctor says what to do.");
  expect(
    lines
      .filter((line) => /^(?:MCP server )?(?:missing|exits|garbage|page|unset): /.test(line))
      .map((line) => line.replace(/^MCP server |:.*/g, ""))
      .sort(),
  ).toEqual(["exits", "garbage", "missing", "page", "unset"]);
});

test("/mcp doctor -> each cause once, with what to do", async () => {
  const { doctor } = await ran();
  const text = doctor.map(({ message }) => message).join("\n");
  expect(text).toMatch(/^MCP doctor: 5 errors/);
  expect(text).toContain('error: missing: The command "no-such-command-here" is not on PATH.');
  expect(text).toContain("error: unset: The variable PMT_UNSET_VARIABLE is not set, and args.0 needs it.");
  expect(text).toMatch(/error: page: .*web page \(HTML\)/);
  expect(text).toMatch(/\nA report without secrets, for others to read: .*mcp-doctor\.md$/);
  expect(text).toMatch(/To do: Install it, or write its whole path/);
});

test("/mcp doctor <server> -> its steps; an unknown server -> said", async () => {
  const { named, absent } = await ran();
  expect(named[0]?.message).toMatch(/^MCP doctor: nothing wrong was found.*\n {2}ok: (ping|start)/);
  expect(absent[0]).toMatchObject({
    level: "error",
    message: expect.stringContaining("No server named nobody"),
  });
});

test("the report is private; neither it nor the notices nor the log hold a secret, and no line of the log names its server twice", async () => {
  const { all, log, report } = await ran();
  const text = all.map(({ message }) => message).join("\n");
  expect(
    findSecrets(
      [
        { name: "notices", text },
        { name: "the log", text: log },
        { name: "the report", text: report.text },
      ],
      [SECRET],
    ),
  ).toEqual([]);
  const lines = log.split("\n").filter((line) => /\[connection#\d+\]/.test(line));
  const twice = lines.filter((line) =>
    ["missing", "exits", "garbage", "unset", "memory"].some(
      (name) => (line.match(new RegExp(`(?<![\\w/-])${name}(?=[: ])`, "g")) ?? []).length > 1,
    ),
  );
  expect(twice).toEqual([]);
});
