/**
 * Owns: the first call of a lazy server over HTTP in both eras of the protocol: its time, and how many requests the server
 * got until the model had the result. The tools are known, and the process is new.
 * Must not: run where a client knows no such server.
 * Called by: the first-call scenario.
 */
import { answering } from "../../test/fixtures/modern/http.mjs";
import type { ModelTurn } from "../../test/support/model.ts";
import { createHome, type PiHome } from "../../test/support/pi-run.ts";
import { type RecordingServer, startRecording } from "../../test/support/recording-server.ts";
import { type Prompted, startMeasured } from "./measured-pi.ts";
import type { Row } from "./scenario.ts";
import type { Variant } from "./variants.ts";

const SERVER = "remote";
/** Time from the start of Pi to the prompt. All work of a start has ended by then. */
const SETTLED_MS = 2_000;

const NEW_ERA = "2026-07-28";
/** The keys by which each client chooses the era of a server. Pi's built-in MCP speaks the old one alone. */
const ERAS: Record<Variant["id"], Record<string, Record<string, string>>> = {
  ours: { "old era": { protocol: "legacy" }, "new era": { protocol: NEW_ERA } },
  adapter: { "old era": { protocolVersion: "legacy" }, "new era": { protocolVersion: NEW_ERA } },
  builtin: { "old era": {} },
  none: {},
};

interface Sample {
  firstMs: number;
  requests: number;
}

interface Case {
  variant: Variant;
  era: string;
  home: PiHome;
  server: RecordingServer;
  samples: Sample[];
}

export interface HttpFirstCall {
  /** Learns the tools, then measures one run of each case. */
  learn(): Promise<void>;
  measure(): Promise<void>;
  rows(): Row[];
  dispose(): Promise<void>;
}

async function createCase(variant: Variant, era: string, keys: Record<string, string>): Promise<Case> {
  const answer = answering("both");
  const server = await startRecording(({ method, path: url, headers, body }, response) =>
    answer({ method, url, headers, body }, response),
  );
  const shape = variant.id === "builtin" ? { exposure: "deferred" } : { lifecycle: "lazy" };
  const entry = { url: `${server.origin}/mcp`, ...shape, ...keys };
  const home = await createHome({ settings: variant.settings, mcp: { mcpServers: { [SERVER]: entry } } });
  return { variant, era, home, server, samples: [] };
}

/** Time from the request of the model that calls until the request that has the result. */
function callMs({ requests }: Prompted): number {
  const [start, end] = [requests[1], requests[2]];
  return start && end ? end.arrivedAtMs - start.arrivedAtMs : Number.NaN;
}

async function measureOnce({ variant, era, home, server }: Case): Promise<Sample> {
  const before = server.requests.length;
  const pi = await startMeasured(variant, { home });
  try {
    await pi.ready();
    await pi.untilAge(SETTLED_MS);
    const echo: ModelTurn = variant.call(SERVER, [{ tool: "echo", args: { text: "first" } }]);
    const first = await pi.prompt(variant.find(SERVER, "echo"), echo);
    const requests = server.requests.length - before;
    const shown = first.results.at(-1) ?? "no result";
    if (!shown.includes("first"))
      throw new Error(`${variant.label}, ${era}, answered the call with: ${shown}`);
    return { firstMs: callMs(first), requests };
  } finally {
    await pi.dispose();
  }
}

export async function createHttpFirstCall(variants: readonly Variant[]): Promise<HttpFirstCall> {
  const cases: Case[] = [];
  for (const variant of variants) {
    for (const [era, keys] of Object.entries(ERAS[variant.id])) {
      cases.push(await createCase(variant, era, keys));
    }
  }
  const rowsOf = ({ variant: { id, label }, era, samples }: Case): Row[] => {
    const shared = {
      case: `${label}, HTTP, ${era}`,
      ...(id === "ours" ? {} : { ours: `ours, HTTP, ${era}` }),
    };
    return [
      { ...shared, metric: "first call", unit: "ms", values: samples.map(({ firstMs }) => firstMs) },
      {
        ...shared,
        metric: "requests until its result",
        unit: "calls",
        values: samples.map(({ requests }) => requests),
      },
    ];
  };
  return {
    learn: async () => {
      for (const one of cases) await measureOnce(one);
    },
    measure: async () => {
      for (const one of cases) one.samples.push(await measureOnce(one));
    },
    rows: () => cases.flatMap(rowsOf),
    dispose: async () => {
      for (const { home, server } of cases) {
        await home.dispose();
        await server.close();
      }
    },
  };
}
