/**
 * Owns: servers of the stateless era (MCP 2026-07-28) in the real Pi: found, loaded and called over stdio and over
 * HTTP, and called again in the next session with a single request; questions.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { toolResultTexts } from "../support/model.ts";
import { serveFixture } from "../support/modern-http.ts";
import { oneFile } from "../support/one-file.ts";
import { notices } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { call, readLog, root, searchFor } from "./support.ts";

const turn = inTurn();
const program = oneFile("server-of-both-eras", join(root, "test/fixtures/modern/stdio.mjs"));
const stdio = { command: process.execPath, args: [program.file], env: { ...program.env, ERAS: "modern" } };

test("the model finds and calls tools over both transports; the next session calls with one request", async () => {
  const server = await serveFixture();
  const pi = await turn({ mcp: { mcpServers: { local: stdio, remote: { url: server.url } } } });
  await pi.prompt(
    searchFor("select:local__echo,remote__echo"),
    call("local__echo", { text: "by a pipe" }),
    call("remote__echo", { text: "by a request" }),
  );
  expect(pi.rpc.stderr).toBe("");
  const last = pi.scripted.requests.at(-1);
  const [found, ...called] = last ? toolResultTexts(last) : [];
  expect(found).toContain("remote__echo(text: string)");
  expect(found).toContain("The fixture of both eras.");
  expect(called[0]).toBe("by a pipe");
  expect(called[1]).toContain("by a request");

  await pi.again();
  const before = server.asked.length;
  const ends = await pi.prompt(searchFor("select:remote__echo"), call("remote__echo", { text: "again" }));
  expect(ends.map(({ isError }) => isError)).toEqual([false, false]);
  expect(pi.rpc.stderr).toBe("");
  const [first, ...others] = server.log.slice(before);
  expect(first).toBe("POST tools/call");
  expect(others.filter((line) => !line.endsWith("/list"))).toEqual([]);
});

test("a question of a server, over RPC -> the user answers it; /mcp tells the revision; a server of the new era that the entry forbids -> the model and the log are told what to change", async () => {
  const server = await serveFixture();
  const s = { ...stdio, protocol: "legacy", directTools: true };
  const opened = await turn({ mcp: { mcpServers: { q: { url: server.url, directTools: true }, s } } });
  const answers = ["Answer", "Ann", "Send"];
  opened.rpc.answerUi(() => ({ value: answers.shift() ?? "" }));
  const [end, searched] = await opened.prompt(call("q__ask", {}), searchFor("select:s__echo"));
  expect(end?.text).toContain('"content":{"name":"Ann"}');
  const [status] = notices(await opened.rpc.command("/mcp"));
  expect(status?.message).toMatch(/^q: connected .*2026-07-28/m);
  expect(searched?.text).toContain('"protocol": "legacy" forbids');
  expect(await readLog(opened.at)).toContain('"protocol": "legacy" forbids');
});
