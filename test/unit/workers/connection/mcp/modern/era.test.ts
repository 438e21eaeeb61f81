/** Owns: the verdict on the era of a server for each answer that servers really give, also the odd ones. */
import { expect, test } from "vitest";
import {
  type Asked,
  type Evidence,
  isWorthProbing,
  judgeEra,
  type OtherOffer,
  otherOffer,
  type Verdict,
} from "../../../../../../workers/connection/mcp/modern/era.ts";

const error = (code: number, message = "", data?: unknown): Evidence => ({
  kind: "error",
  error: { code, message, ...(data === undefined ? {} : { data }) },
});
const http = (status: number, code?: number, data?: unknown): Evidence => ({
  kind: "http",
  status,
  ...(code === undefined ? {} : { error: { code, message: "", data } }),
});
const result = (value: Record<string, unknown>): Evidence => ({ kind: "result", result: value });
const both = { supported: ["2025-11-25", "2026-07-28"] };
const old = { supported: ["2024-11-05", "2025-11-25"] };

test.each<[string, Asked, Evidence, Verdict]>([
  ["a result of server/discover", "modern", result({ supportedVersions: ["2026-07-28"] }), "modern"],
  ["a later version only", "modern", result({ supportedVersions: ["2027-07-28"] }), "modern"],
  ["old versions only", "modern", result({ supportedVersions: ["2025-11-25"] }), "legacy"],
  ["a result with a type", "modern", result({ resultType: "complete" }), "modern"],
  ["an empty result", "modern", result({}), "legacy"],
  ["it exits at the probe", "modern", { kind: "ended" }, "legacy"],
  ["it stays silent", "modern", { kind: "silence" }, "legacy"],
  ["-32601", "modern", error(-32601), "legacy"],
  ["-32602", "modern", error(-32602), "legacy"],
  ["-32000", "modern", error(-32000), "legacy"],
  ["-32022 with both eras", "modern", error(-32022, "", both), "modern"],
  ["-32022 with old versions", "modern", error(-32022, "", old), "legacy"],
  ["-32022 with nothing", "modern", error(-32022), "modern"],
  ["-32022 with a list that is none", "modern", error(-32022, "", { supported: 7 }), "modern"],
  ["-32020", "modern", error(-32020), "modern"],
  ["-32021", "modern", error(-32021), "modern"],
  ["200, empty", "modern", http(200), "legacy"],
  ["200, a web page", "modern", http(200), "legacy"],
  ["400 with text", "modern", http(400), "legacy"],
  ["400 with -32022 and id null", "modern", http(400, -32022, both), "modern"],
  ["400 with -32000 and id null", "modern", http(400, -32000), "legacy"],
  ["404", "modern", http(404), "legacy"],
  ["405", "modern", http(405), "legacy"],
  ["302", "modern", http(302), "unknown"],
  ["401", "modern", http(401), "unknown"],
  ["401 with -32022", "modern", http(401, -32022, both), "unknown"],
  ["403", "modern", http(403), "unknown"],
  ["407", "modern", http(407), "unknown"],
  ["408", "modern", http(408), "unknown"],
  ["429", "modern", http(429), "unknown"],
  ["500", "modern", http(500), "unknown"],
  ["503 with -32601", "modern", http(503, -32601), "unknown"],
  ["a broken network", "modern", { kind: "other" }, "unknown"],
  ["a handshake", "initialize", result({ protocolVersion: "2025-11-25" }), "legacy"],
  ["-32022 to the handshake", "initialize", error(-32022, "", { supported: ["2026-07-28"] }), "modern"],
  ["-32602 that names the version", "initialize", error(-32602, "needs 2026-07-28"), "modern"],
  ["-32000 that names it in data", "initialize", error(-32000, "", both), "modern"],
  ["-32000 that names an old one", "initialize", error(-32000, "needs 2025-06-18"), "legacy"],
  ["-32601 to the handshake", "initialize", error(-32601), "unknown"],
  ["-32603 to the handshake", "initialize", error(-32603), "legacy"],
  ["400 with -32020 to the handshake", "initialize", http(400, -32020), "modern"],
  ["400 with text to the handshake", "initialize", http(400), "legacy"],
  ["404 with -32601 to the handshake", "initialize", http(404, -32601), "unknown"],
  ["503 to the handshake", "initialize", http(503, -32022, both), "unknown"],
  ["silence at the handshake", "initialize", { kind: "silence" }, "legacy"],
])("judgeEra: %s, asked %s -> %s", (_, asked, evidence, verdict) => {
  expect(judgeEra(asked, evidence)).toBe(verdict);
});

test.each<[string, Evidence, boolean]>([
  ["-32601", error(-32601), true],
  ["-32022", error(-32022), true],
  ["404 with -32601", http(404, -32601), true],
  ["-32603", error(-32603), false],
  ["404", http(404), false],
  ["401", http(401), false],
  ["503 with -32022", http(503, -32022), false],
  ["silence", { kind: "silence" }, false],
  ["a broken network", { kind: "other" }, false],
])("isWorthProbing: %s -> %s", (_, evidence, worth) => {
  expect(isWorthProbing(evidence)).toBe(worth);
});

const said = (status: number, text: string): Evidence => ({ kind: "http", status, text });
const STRICT = 'Unrecognized field "form" (class ClientCapabilities$Elicitation), not marked as ignorable';
const SUPPORTED = "Bad Request: Unsupported protocol version (supported versions: 2025-06-18, 2024-11-05)";

test.each<[string, Evidence, OtherOffer | undefined]>([
  ["-32603 about a field", error(-32603, STRICT), "nothing"],
  ["-32602 without a word", error(-32602), "nothing"],
  ["400 with text", said(400, "Invalid message format"), "nothing"],
  ["422 without a word", http(422), "nothing"],
  ["500 with -32603", http(500, -32603), "nothing"],
  ["500 with text", said(500, "oh"), undefined],
  ["-32601", error(-32601), undefined],
  ["-32022 with the new version", error(-32022, "", both), undefined],
  ["-32602 that names the new version", error(-32602, "needs 2026-07-28"), undefined],
  ["401 with -32603", http(401, -32603), undefined],
  ["403", http(403), undefined],
  ["404", http(404), undefined],
  ["429 with -32603", http(429, -32603), undefined],
  ["silence", { kind: "silence" }, undefined],
  ["an end", { kind: "ended" }, undefined],
  ["a broken network", { kind: "other" }, undefined],
  [
    "a list of versions",
    error(-32602, "", { supported: ["2024-11-05", "2025-03-26"] }),
    { version: "2025-03-26" },
  ],
  ["-32022 with old versions", error(-32022, "", old), { version: "2024-11-05" }],
  [
    "one version that is expected",
    error(-32602, "no", { expected: "2025-06-18" }),
    { version: "2025-06-18" },
  ],
  ["words that name versions", said(400, SUPPORTED), { version: "2025-06-18" }],
  [
    "words that name the refused one alone",
    error(-32602, "unsupported protocol version: 2025-11-25"),
    { version: "2024-11-05" },
  ],
  ["words of the name of the parameter", error(-32000, "bad protocolVersion"), { version: "2024-11-05" }],
  ["a version that nobody knows", error(-32602, "needs 2025-01-01"), "nothing"],
  ["data of any shape", error(-32602, "", { supported: [7, null], a: { b: 1 } }), "nothing"],
])("otherOffer: %s -> %j", (_, evidence, offer) => {
  expect(otherOffer(evidence, true)).toEqual(offer);
  expect(otherOffer(evidence, false)).toEqual(offer === "nothing" ? undefined : offer);
});
