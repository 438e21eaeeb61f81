/**
 * The shape of a configuration file, as zod schemas: the one place that says which keys there are, what
 * they may hold and what they mean. The JSON Schema for editors is generated from it, and the examples are
 * what a mistake's remedy shows.
 */
import * as z from "zod";

/**
 * The shape of an object, each key's schema made when a file first has that key: most files have five of the
 * thirty, and the worker's first plan would wait 8 ms for the others.
 */
function lazily<M extends Record<string, () => z.ZodType>>(makers: M): { [K in keyof M]: ReturnType<M[K]> } {
  const shape = {};
  for (const [key, make] of Object.entries(makers)) {
    let made: z.ZodType | undefined;
    Object.defineProperty(shape, key, { enumerable: true, configurable: true, get: () => (made ??= make()) });
  }
  return shape as { [K in keyof M]: ReturnType<M[K]> };
}

const strings = z.record(z.string(), z.string());
const names = z.array(z.string());

/** Our own values and Pi's: see exposure.ts for what each means here. */
export const EXPOSURES = ["direct", "deferred", "codemode", "codemode-deferred", "hidden"] as const;
export const LIFECYCLES = ["lazy", "eager", "keep-alive"] as const;
export const TOOL_PREFIXES = ["server", "short", "none", "mcp"] as const;
export const HOSTS = [
  "cursor",
  "claude-code",
  "claude-desktop",
  "codex",
  "windsurf",
  "vscode",
  "opencode",
] as const;

/** Written with a variable or as a command, a value is known only at connect; then it is checked again. */
const isLate = (text: string): boolean => /^!(?!!)|\$\{|\$env:|\{env:/.test(text);
const isHttpUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "");

const httpUrl = z
  .string()
  .refine((text) => isLate(text) || isHttpUrl(text), { error: "expected an http or https URL" });

const oauth = () =>
  z.looseObject({
    clientId: z.string().optional(),
    clientSecret: z.string().optional(),
    scope: z.string().optional(),
    callbackPort: z.int().min(1).max(65_535).optional(),
    callbackUrl: z.string().optional(),
    clientName: z.string().optional(),
    clientRegistration: z.enum(["auto", "dcr", "cimd"]).optional(),
    grantType: z.enum(["authorization_code", "client_credentials"]).optional(),
    authServerMetadataUrl: z.string().optional(),
  });

/** Units in the names; false for no limit. */
const outputGuard = () =>
  z.union([
    z.literal(false),
    z.looseObject({
      maxBytes: z.int().min(1_000).optional(),
      maxLines: z.int().min(10).optional(),
    }),
  ]);

export const entryShape = lazily({
  type: () =>
    z
      .enum(["stdio", "http", "streamable-http", "sse"])
      .optional()
      .meta({ description: "How to talk to the server. Told from command or url.", examples: ["http"] }),
  command: () =>
    z
      .string()
      .min(1)
      .optional()
      .meta({ description: "Program of a local server; no shell.", examples: ["npx"] }),
  args: () =>
    names.optional().meta({
      description: "Arguments of the command. Values may hold ${VAR}, or be a whole !command.",
      examples: [["-y", "@modelcontextprotocol/server-filesystem", "."]],
    }),
  env: () =>
    strings.optional().meta({
      description: "Environment variables. Values may hold ${VAR}, or be a whole !command.",
      examples: [{ TOKEN: "${TOKEN}" }],
    }),
  envFile: () =>
    z
      .string()
      .min(1)
      .optional()
      .meta({
        description: "File of NAME=value lines, from the session's folder; env wins over it.",
        examples: [".env"],
      }),
  cwd: () =>
    z
      .string()
      .optional()
      .meta({
        description: "Working folder, from the session's; ~/ is the home folder.",
        examples: ["~/project"],
      }),
  url: () =>
    httpUrl
      .optional()
      .meta({ description: "Endpoint of a remote server.", examples: ["https://example.com/mcp"] }),
  headers: () =>
    strings.optional().meta({
      description: "HTTP headers. Values may hold ${VAR}, or be a whole !command.",
      examples: [{ Authorization: "Bearer ${TOKEN}" }],
    }),
  auth: () =>
    z
      .union([z.enum(["oauth", "bearer", "none"]), z.literal(false), z.looseObject({ provider: z.string() })])
      .optional()
      .meta({
        description: "How to sign in. Without it OAuth is used where the server asks for it.",
        examples: ["bearer"],
      }),
  bearerToken: () =>
    z
      .string()
      .min(1)
      .optional()
      .meta({ description: "Token of the Authorization header.", examples: ["${DOCS_TOKEN}"] }),
  bearerTokenEnv: () =>
    z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "expected the name of an environment variable")
      .optional()
      .meta({ description: "Environment variable that holds the token.", examples: ["DOCS_TOKEN"] }),
  oauth: () =>
    z
      .union([oauth(), z.literal(false)])
      .optional()
      .meta({
        description: "OAuth client settings, or false for no sign-in.",
        examples: [{ clientId: "my-client" }],
      }),
  enabled: () =>
    z
      .boolean()
      .optional()
      .meta({ description: "false keeps the entry without using it.", examples: [false] }),
  disabled: () =>
    z
      .boolean()
      .optional()
      .meta({ description: "The same, the other way round.", examples: [true] }),
  lifecycle: () =>
    z
      .enum(LIFECYCLES)
      .optional()
      .meta({
        description: "When the server runs: on its first call, from the start, or always.",
        examples: ["lazy"],
      }),
  idleTimeout: () =>
    z
      .number()
      .min(0)
      .optional()
      .meta({ description: "Minutes without a call until it is stopped; 0 for never.", examples: [10] }),
  startupTimeoutMs: () =>
    z
      .number()
      .positive()
      .optional()
      .meta({ description: "Milliseconds to start and list its tools.", examples: [30_000] }),
  timeout: () =>
    z
      .number()
      .positive()
      .optional()
      .meta({ description: "Seconds a call may take; progress renews it.", examples: [60] }),
  requestTimeoutMs: () =>
    z
      .number()
      .positive()
      .optional()
      .meta({ description: "The same in milliseconds.", examples: [60_000] }),
  exposeResources: () =>
    z
      .boolean()
      .optional()
      .meta({ description: "Offer its resources as tools.", examples: [true] }),
  directTools: () =>
    z
      .union([z.boolean(), names])
      .optional()
      .meta({
        description: "Tools that the model always sees: all, none or these.",
        examples: [["search_code"]],
      }),
  exposure: () =>
    z
      .enum(EXPOSURES)
      .optional()
      .meta({ description: "How its tools reach the model.", examples: ["deferred"] }),
  toolExposure: () =>
    z
      .record(z.string(), z.enum(EXPOSURES))
      .optional()
      .meta({
        description: "The same for single tools; * matches any characters.",
        examples: [{ "get_*": "direct", "delete_*": "hidden" }],
      }),
  includeTools: () =>
    names
      .optional()
      .meta({ description: "Only these tools; * matches any characters.", examples: [["get_*"]] }),
  excludeTools: () =>
    names
      .optional()
      .meta({ description: "Never these tools; * matches any characters.", examples: [["delete_*"]] }),
  toolPrefix: () =>
    z
      .enum(TOOL_PREFIXES)
      .optional()
      .meta({ description: "How its tools are named; see settings.toolPrefix.", examples: ["short"] }),
  description: () =>
    z
      .string()
      .optional()
      .meta({ description: "What the server is for, in a sentence.", examples: ["Search the docs"] }),
  outputGuard: () =>
    outputGuard()
      .optional()
      .meta({
        description: "How much of a result the model sees; the whole is kept in a file. false for all of it.",
        examples: [{ maxBytes: 50_000, maxLines: 2_000 }],
      }),
  debug: () =>
    z
      .boolean()
      .optional()
      .meta({
        description: "Ask the server for its debug messages and write them and its stderr to the log.",
        examples: [true],
      }),
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
        description: "Also offer the single tool mcp, for the smallest prompt.",
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
      .union([
        z.boolean(),
        z.looseObject({ path: z.string().optional(), flushDelayMs: z.number().min(0).optional() }),
      ])
      .optional()
      .meta({
        description: "Count calls, errors and bytes per tool; path starts from the agent folder.",
        examples: [true],
      }),
  directTools: () =>
    z
      .union([z.boolean(), names])
      .optional()
      .meta({ description: "Default of every server's directTools.", examples: [false] }),
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

const parts = lazily({
  servers: () =>
    z.record(z.string(), z.looseObject(entryShape).meta({ id: "server", description: "One MCP server." })),
  settings: () =>
    z.looseObject(settingsShape).meta({ id: "settings", description: "Settings of all servers." }),
});

/** A file is read key by key, so that one mistake costs one entry: the values are for the JSON Schema only. */
export const fileShape = lazily({
  $schema: () => z.string().optional(),
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
  settings: () => parts.settings.optional().meta({ description: "Settings of all servers.", examples: [{}] }),
  autoEnableCodemode: () => z.boolean().optional().meta({ description: "Read by Pi itself." }),
});

/** For the JSON Schema only. */
export const fileSchema = () => z.looseObject(fileShape).meta({ title: "MCP servers of Pi (mcp.json)" });

type Loose<S extends Record<string, z.ZodType>> = z.infer<z.ZodObject<S, z.core.$loose>>;

export type Entry = Loose<typeof entryShape>;
export type OAuthSettings = z.infer<ReturnType<typeof oauth>>;
export type SettingsEntry = Loose<typeof settingsShape>;
export type Exposure = "direct" | "search" | "hidden";
export type HostName = (typeof HOSTS)[number];
export type Lifecycle = (typeof LIFECYCLES)[number];
export type ToolPrefix = (typeof TOOL_PREFIXES)[number];
