/** The keys of a server entry: what each may hold, and its description and example for editors and messages. */
import * as z from "zod";
import { isLate } from "./interpolate.ts";
import { authShape, oauthShape } from "./oauth-shape.ts";
import {
  approve,
  EXPOSURES,
  LIFECYCLES,
  type Loose,
  lazily,
  names,
  outputGuard,
  PROTOCOLS,
  strings,
  TOOL_PREFIXES,
} from "./shape.ts";

/** Far more folders than a person lists, and few enough for each answer to a server. */
const ROOTS = 100;

/** A URL with a variable, or a whole !command, is known only at connect; values.ts checks it then. */
const isHttpUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "");

const httpUrl = z
  .string()
  .refine((text) => isLate(text) || isHttpUrl(text), { error: "expected an http or https URL" });

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
  envFileNames: () =>
    names.optional().meta({
      description:
        "Names that your own server gets from an envFile in the session's folder, beside those that are known for data, such as *_TOKEN and *_KEY.",
      examples: [["API_URL"]],
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
      .union([z.enum(["oauth", "bearer", "none"]), z.literal(false), authShape()])
      .optional()
      .meta({
        description:
          "How to sign in: bearer sends the token, none sends nothing, oauth signs in even beside an Authorization header. Without it: OAuth, if there is no such header and the server asks for it.",
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
      .union([oauthShape(), z.literal(false)])
      .optional()
      .meta({
        description: "How to sign in with OAuth, or false for no sign-in.",
        examples: [{ clientId: "my-client" }],
      }),
  caFile: () =>
    z
      .string()
      .min(1)
      .optional()
      .meta({
        description:
          "PEM file of further certificate authorities that this server may use; ~/ and ${VAR} are filled in.",
        examples: ["~/certificates/gateway.pem"],
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
  exposePrompts: () =>
    z
      .boolean()
      .optional()
      .meta({ description: "Offer its prompts as commands.", examples: [true] }),
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
      .meta({
        description:
          "How its tools reach the model: direct ones are declared from the first request on, hidden ones never; the others are found by ToolSearch and by codemode scripts.",
        examples: ["deferred"],
      }),
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
  approve: () =>
    approve()
      .optional()
      .meta({
        description:
          "Which calls of its tools ask you: never, destructive (tools that the server does not call read-only), always, or a rule for each tool or pattern, of which the most specific counts.",
        examples: [{ "read_*": "allow", "delete_*": "deny", "*": "ask" }],
      }),
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
  elicitation: () =>
    z
      .boolean()
      .optional()
      .meta({
        description:
          "Whether the server may ask you questions while it works. false: it is told that nobody answers.",
        examples: [false],
      }),
  protocol: () =>
    z
      .enum(PROTOCOLS)
      .optional()
      .meta({
        description:
          "Revision of MCP: auto finds it out, legacy is 2025-11-25 and older, 2026-07-28 the one without a handshake.",
        examples: ["auto"],
      }),
  roots: () =>
    z
      .union([z.boolean(), z.array(z.string().min(1)).max(ROOTS)])
      .optional()
      .meta({
        description:
          "Folders that the server is told to work in, if it asks: true for the session's, or a list of paths. Some servers then use these in place of the folders in their arguments.",
        examples: [["~/notes"]],
      }),
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

export type Entry = Loose<typeof entryShape>;
