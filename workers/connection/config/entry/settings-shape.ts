/** The keys of `settings`: what each may hold, and its description and example for editors and messages. */
import * as z from "zod";
import { approve, type Loose, lazily, names, outputGuard, TOOL_PREFIXES } from "./shape.ts";

const statsPath = () =>
  z
    .string()
    .optional()
    .meta({
      description: "File for the counts, from the agent folder.",
      examples: ["mcp-stats.jsonl"],
    });

export const settingsShape = lazily({
  toolPrefix: () =>
    z
      .enum(TOOL_PREFIXES)
      .optional()
      .meta({
        description: "Names of tools: server__tool, a shorter server, the tool alone, or mcp__server__tool.",
        examples: ["server"],
      }),
  idleTimeout: () =>
    z
      .number()
      .min(0)
      .optional()
      .meta({ description: "Minutes until an unused server is stopped; 0 for never.", examples: [10] }),
  outputGuard: () =>
    outputGuard()
      .optional()
      .meta({
        description: "How much of a result the model sees; the whole is kept in a file. false for all of it.",
        examples: [{ maxBytes: 50_000, maxLines: 2_000 }],
      }),
  search: () =>
    z
      .enum(["ranked", "weighted"])
      .optional()
      .meta({
        description: "How ToolSearch scores: by relevance, or by fixed weights.",
        examples: ["ranked"],
      }),
  proxyTool: () =>
    z
      .boolean()
      .optional()
      .meta({
        description: "Offer the single tool mcp in place of ToolSearch, for the smallest prompt.",
        examples: [true],
      }),
  toonEncode: () =>
    z
      .union([z.boolean(), names])
      .optional()
      .meta({
        description: "Encode JSON results as TOON where that is shorter: all servers or these.",
        examples: [true],
      }),
  captureStats: () =>
    z
      .union([z.boolean(), z.looseObject({ path: statsPath() })])
      .optional()
      .meta({
        description: "Count calls, errors, bytes and times of each tool, for /mcp stats.",
        examples: [true],
      }),
  directTools: () =>
    z
      .union([z.boolean(), names])
      .optional()
      .meta({ description: "Default of every server's directTools.", examples: [false] }),
  approve: () =>
    approve()
      .optional()
      .meta({
        description:
          "Default of every server's approve; its rules count for tools that no rule of their server fits.",
        examples: ["destructive"],
      }),
  autoAuth: () =>
    z
      .boolean()
      .optional()
      .meta({
        description: "A call to a server that needs a sign-in begins the sign-in and waits for it.",
        examples: [true],
      }),
  caFile: () =>
    z
      .string()
      .min(1)
      .optional()
      .meta({
        description: "PEM file of further certificate authorities for all servers.",
        examples: ["~/certificates/company.pem"],
      }),
  maxMessageBytes: () =>
    z
      .int()
      .min(1_024)
      .optional()
      .meta({ description: "Longest message that a server may send, in bytes.", examples: [67_108_864] }),
  hotReload: () =>
    z
      .enum(["on", "ask", "off"])
      .optional()
      .meta({ description: "Whether an edited file takes effect at once.", examples: ["on"] }),
  catalog: () =>
    z
      .enum(["tools", "servers", "off"])
      .optional()
      .meta({ description: "What ToolSearch's description lists.", examples: ["tools"] }),
});

export type SettingsEntry = Loose<typeof settingsShape>;
