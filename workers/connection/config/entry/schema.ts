/** The keys of a configuration file as a whole. server-keys.ts and settings.ts have those of a server and of the settings. */
import * as z from "zod";
import { IMPORTS } from "../../../../src/shared/import-names.ts";
import { entryShape } from "./server-keys.ts";
import { settingsShape } from "./settings.ts";
import { flag, names, shapeOf, text } from "./shape.ts";

/** One schema for both keys of servers, so that the JSON Schema has it once. */
let made: z.ZodType | undefined;
const servers = () =>
  (made ??= z.record(
    z.string(),
    z.looseObject(entryShape).meta({ id: "server", description: "One MCP server." }),
  ));

/** A file is read key by key, so that a mistake costs one entry only: the values here are for the JSON Schema. */
export const fileShape = shapeOf({
  $schema: { schema: text, description: "Path of this JSON Schema: an editor that reads it completes keys." },
  mcpServers: {
    schema: servers,
    description: "Servers by name.",
    examples: [{ docs: { url: "https://example.com/mcp" } }],
  },
  "mcp-servers": { schema: servers, description: "Another spelling of mcpServers." },
  imports: {
    schema: () => z.array(z.enum(IMPORTS)),
    description: "Other programs whose servers are used too.",
    examples: [["cursor"]],
  },
  plugins: {
    schema: names,
    description: "Folders of Agent Plugins and of Claude plugins whose servers are used after your consent.",
    examples: [["~/plugins/database"]],
  },
  settings: {
    schema: () =>
      z.looseObject(settingsShape).meta({ id: "settings", description: "Settings of all servers." }),
    description: "What counts for all servers.",
    examples: [{}],
  },
  autoEnableCodemode: { schema: flag, description: "Read by Pi itself." },
});
