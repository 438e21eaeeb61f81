/** Owns: the doctor in the real worker, over real faults: files, commands, addresses, certificates, answers. */
import { once } from "node:events";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderIssueReport } from "../../src/report/doctor.ts";
import type { DoctorReport, Finding } from "../../src/shared/protocol/person.ts";
import { findSecrets } from "../support/find-secrets.ts";
import {
  createPlace,
  everything,
  fixture,
  forRows,
  freePort,
  onCleanup,
  type Started,
  start,
  startHttp,
} from "./support.ts";

const diagnose = ({ runtime }: Started, server?: string): Promise<DoctorReport> =>
  runtime.ask("diagnose", server === undefined ? {} : { server });

/** Without what other tests run at the same time, which the doctor sees as further processes of a server. */
const about = ({ findings }: DoctorReport, server: string): Finding[] =>
  findings.filter((finding) => finding.server === server && finding.id !== "sharing");

const told = (findings: readonly Finding[]): string[] =>
  findings.map(({ severity, id, title }) => `${severity} ${id}: ${title}`);

const fixtures = join(import.meta.dirname, "..", "fixtures");

/** An https server with a certificate that nobody signed, and how many requests and connections it got. */
async function startSelfSigned(): Promise<{ url: string; requests: () => number }> {
  const [key, cert] = await Promise.all(
    ["localhost.key", "localhost.pem"].map((name) => readFile(join(fixtures, "http", name), "utf8")),
  );
  let requests = 0;
  const server = createTlsServer({ key: key ?? "", cert: cert ?? "" }, (_request, response) => {
    requests++;
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onCleanup(async () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/mcp`,
    requests: () => (server.listening ? requests : -1),
  };
}

const listed = (tools: unknown[], more: object = {}) =>
  fixture("listed.mjs", { TOOLS: JSON.stringify(tools) }, { ...more });
const OBJECT = { type: "object" };
const LONG_SCHEMA = {
  ...OBJECT,
  properties: Object.fromEntries(
    Array.from({ length: 400 }, (_, i) => [
      `property_${i}`,
      { type: "string", description: "a longer description of it" },
    ]),
  ),
};

/** One worker with the servers of nearly all faults, and the report about all of them. */
const shared = forRows(async () => {
  const place = await createPlace();
  const tokens = join(place.agentDir, "mcp-oauth", "s");
  await mkdir(tokens, { recursive: true });
  await writeFile(join(tokens, "t.json"), "{}");
  await chmod(join(tokens, "t.json"), 0o644);
  const tls = await startSelfSigned();
  const origin = await startHttp((request, response) => {
    if (request.url === "/401") response.writeHead(401).end();
    else if (request.url === "/page")
      response.writeHead(200, { "content-type": "text/html" }).end("<p>hi</p>");
    else response.writeHead(404).end("no");
  });
  const off = { lifecycle: "lazy" };
  const at = await start(
    {
      gone: { command: "pmt-no-such-program" },
      unset: { ...fixture("echoes.mjs"), args: [`\${PMT_UNSET_VARIABLE}`] },
      nowhere: { ...fixture("echoes.mjs"), cwd: "/pmt/no/such/folder" },
      name: { url: "https://pmt.invalid/mcp?key=sk-pmt-0a1b2c3d4e5f", ...off },
      port: { url: `http://127.0.0.1:${await freePort()}/mcp`, ...off },
      tls: { url: tls.url, ...off },
      trusted: { url: tls.url, caFile: join(fixtures, "http", "localhost.pem"), ...off },
      key: { url: `${origin}/401`, headers: { Authorization: "Bearer sk-pmt-9f8e7d6c5b4a" } },
      page: { url: `${origin}/page` },
      path: { url: `${origin}/none` },
      much: listed([{ name: "t", description: "word ".repeat(1_500), inputSchema: LONG_SCHEMA }], {
        directTools: true,
      }),
      long: listed([{ name: "n".repeat(70), inputSchema: OBJECT }]),
      odd: listed([{ name: "t", inputSchema: { ...OBJECT, properties: { a: { $ref: "#/nowhere" } } } }]),
      slow: fixture("hangs.mjs", {}, { startupTimeoutMs: 300 }),
      old: { ...everything(), protocol: "2026-07-28" },
    },
    { place },
  );
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const before = tls.requests();
  return { at, report: await diagnose(at), requests: tls.requests() - before };
});

test("a command that is not on PATH, an unset variable, a folder that is missing -> one error each, and what to do", async () => {
  const { report } = await shared();
  expect(told(about(report, "gone"))).toEqual([
    'error command: The command "pmt-no-such-program" is not on PATH.',
  ]);
  expect(told(about(report, "unset"))).toEqual([
    "error variable: The variable PMT_UNSET_VARIABLE is not set, and args.0 needs it.",
  ]);
  expect(told(about(report, "nowhere"))[0]).toBe(
    "error folder: The working directory /pmt/no/such/folder does not exist.",
  );
  expect(about(report, "gone")[0]?.remedy).toMatch(/^Install it/);
});

test("a file that is no JSON -> an error with its line, also for a server that it may name", async () => {
  const place = await createPlace();
  await writeFile(join(place.cwd, ".mcp.json"), '{\n  "mcpServers": {\n    "a": nonsense\n  }\n}\n');
  const at = await start({ well: fixture("echoes.mjs") }, { place });
  const report = await diagnose(at);
  const [found] = report.findings;
  expect(found).toMatchObject({ id: "config", severity: "error", line: 3 });
  expect(found?.file).toMatch(/\.mcp\.json$/);
  const ofOne = await diagnose(at, "nobody");
  expect(ofOne.findings[0]).toMatchObject({ id: "config", severity: "error", line: 3 });
});

test("servers that work -> nothing is wrong, and the report names them without their secrets", async () => {
  const secret = "sk-pmt-7f3a9c2e41d8b650";
  const at = await start({ well: fixture("echoes.mjs", { API_KEY: secret }) });
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const report = await diagnose(at);
  expect(report.findings.filter(({ severity }) => severity === "error" || severity === "warning")).toEqual(
    [],
  );
  expect(report.servers).toMatchObject([{ name: "well", transport: "stdio", state: "connected", tools: 1 }]);
  const text = renderIssueReport(report);
  expect(text).toContain("well: stdio, connected");
  expect(findSecrets([{ name: "the report", text }], [secret])).toEqual([]);
  await expect(at.runtime.ask("diagnose", { server: "nobody" })).rejects.toMatchObject({
    code: "unknown_server",
  });
});

test("addresses that cannot be reached -> the name, the port, the certificate, without a request", async () => {
  const { report, requests } = await shared();
  const firsts = ["name", "port", "tls"].map((server) => about(report, server)[0]);
  expect(firsts.map((found) => `${found?.severity} ${found?.id}`)).toEqual([
    "error dns",
    "error port",
    "error tls",
  ]);
  expect(firsts[2]?.title).toMatch(/self-signed/);
  expect(about(report, "tls")).toHaveLength(1);
  expect(about(report, "trusted").map(({ id }) => id)).not.toContain("tls");
  expect(requests).toBe(0);
  expect(JSON.stringify(report)).not.toContain("sk-pmt-0a1b2c3d4e5f");
});

test("answers of other kinds -> a sign-in, a web page, a wrong path; the named server tells its steps", async () => {
  const { at, report } = await shared();
  const ids = ["key", "page", "path"].map((server) => about(report, server).map(({ id }) => id));
  expect(ids).toEqual([["sign-in"], ["address"], ["address"]]);
  expect(about(report, "path")[0]?.remedy).toMatch(/path of the url/);
  const named = await diagnose(at, "page");
  expect(named.stages.map(({ name, ok }) => `${name} ${ok}`)).toEqual(
    expect.arrayContaining(["look-up of 127.0.0.1 true", "start, handshake and list of tools false"]),
  );
  expect(JSON.stringify([report, named])).not.toContain("sk-pmt-9f8e7d6c5b4a");
});

test("a server of the project -> nobody connects to its address before the user agreed to it", async () => {
  let connections = 0;
  const origin = await startHttp((_request, response) => response.writeHead(404).end());
  const seen = await startHttp((_request, response) => {
    connections++;
    response.writeHead(404).end();
  });
  const place = await createPlace();
  await writeFile(
    join(place.cwd, ".mcp.json"),
    JSON.stringify({ mcpServers: { theirs: { url: `${seen}/mcp` } } }),
  );
  const at = await start({ mine: { url: `${origin}/mcp`, enabled: false } }, { place });
  const report = await diagnose(at);
  expect(about(report, "theirs").map(({ id }) => id)).toEqual(["consent"]);
  expect((await diagnose(at, "theirs")).findings[0]).toMatchObject({ id: "consent" });
  expect(connections).toBe(0);
});

test("tools that cost much, long names, schemas that are repaired, tokens that others can read -> each is told", async () => {
  const { report } = await shared();
  expect(about(report, "much").map(({ severity, id }) => `${severity} ${id}`)).toEqual(["warning tokens"]);
  expect(about(report, "long").map(({ severity, id }) => `${severity} ${id}`)).toEqual(["note tool-names"]);
  expect(about(report, "odd").map(({ severity, id }) => `${severity} ${id}`)).toEqual(["note schemas"]);
  expect(report.findings.find(({ id }) => id === "file-modes")?.title).toContain("t.json");
});

test("a server that never answers -> the limit of its start, and the step that took so long", async () => {
  const report = await diagnose((await shared()).at, "slow");
  expect(about(report, "slow").map(({ severity, id }) => `${severity} ${id}`)).toEqual(["error time-out"]);
  expect(report.stages.at(-1)).toMatchObject({ name: "start, handshake and list of tools", ok: false });
});

test("a file that pins a revision which the server refuses -> told, with the key to change", async () => {
  const [found] = about((await shared()).report, "old");
  expect(found).toMatchObject({ id: "protocol", severity: "error" });
  expect(found?.remedy).toContain('"protocol"');
});
