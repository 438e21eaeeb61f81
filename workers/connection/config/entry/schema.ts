/**
 * The shape of a configuration file, as zod schemas. This file with server-shape.ts and settings-shape.ts is the one
 * place that says which keys there are, what they may hold and what they mean. The JSON Schema for editors is
 * generated from it, and its examples are what the remedy of a mistake shows.
 */
import * as z from "zod";
import { entryShape } from "./server-shape.ts";
import { settingsShape } from "./settings-shape.ts";
import { HOSTS, lazily } from "./shape.ts";

const parts = lazily({
  servers: () =>
    z.record(z.string(), z.looseObject(entryShape).meta({ id: "server", description: "One MCP server." })),
  settings: () =>
    z.looseObject(settingsShape).meta({ id: "settings", description: "Settings of all servers." }),
});

/** A file is read key by key, so that a mistake costs one entry only: the values here are for the JSON Schema. */
export const fileShape = lazily({
  $schema: () =>
    z
      .string()
      .optional()
      .meta({ description: "Path of this JSON Schema: an editor that reads it completes keys." }),
  mcpServers: () =>
    parts.servers.optional().meta({
      description: "Servers by name.",
      examples: [{ docs: { url: "https://example.com/mcp" } }],
    }),
  "mcp-servers": () => parts.servers.optional().meta({ description: "Another spelling of mcpServers." }),
  imports: () =>
    z
      .array(z.enum(HOSTS))
      .optional()
      .meta({ description: "Other programs whose servers are used too.", examples: [["cursor"]] }),
  settings: () =>
    parts.settings.optional().meta({ description: "What counts for all servers.", examples: [{}] }),
  autoEnableCodemode: () => z.boolean().optional().meta({ description: "Read by Pi itself." }),
});

/** For the JSON Schema only. */
export const fileSchema = () => z.looseObject(fileShape).meta({ title: "MCP servers of Pi (mcp.json)" });
