/** Owns: the doctor in the real worker, over real faults: files, commands, addresses, certificates, answers. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderIssueReport } from "../../src/report/doctor.ts";
import type { DoctorReport, Finding } from "../../src/shared/protocol/doctor.ts";
import { findSecrets } from "../support/find-secrets.ts";
import { createPlace, fixture, type Started, start } from "./support.ts";

const diagnose = ({ runtime }: Started, server?: string): Promise<DoctorReport> =>
  runtime.ask("diagnose", server === undefined ? {} : { server });

const about = ({ findings }: DoctorReport, server: string): Finding[] =>
  findings.filter((finding) => finding.server === server);

const told = (findings: readonly Finding[]): string[] =>
  findings.map(({ severity, id, title }) => `${severity} ${id}: ${title}`);

test("a command that is not on PATH, an unset variable, a folder that is missing -> one error each, and what to do", async () => {
  const at = await start({
    gone: { command: "pmt-no-such-program" },
    unset: { ...fixture("echoes.mjs"), args: [`\${PMT_UNSET_VARIABLE}`] },
    nowhere: { ...fixture("echoes.mjs"), cwd: "/pmt/no/such/folder" },
  });
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const report = await diagnose(at);
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
