/**
 * A server that no file names: `call https://example.com/mcp search`, `call -- npx -y some-server search`. Owns: its entry, in
 * an agent folder of its own, which exists as long as the command: neither Pi's files nor its caches hear of such a server.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { proposedName } from "../../shared/pasted.ts";
import { lackRemedy } from "../../shared/protocol/errors.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { parseAdd } from "../../shared/setup.ts";
import { asFailure, Failure, usage } from "../console/failure.ts";
import type { CommandLine } from "../words/parse.ts";
import type { Place } from "./place.ts";

/** The entry as `add` would write it. Throws a failure of usage. */
function entryOf(words: readonly string[], options: CommandLine["options"]): { name: string; entry: object } {
  const given = (["header", "bearer-token-env"] as const).flatMap((name) => {
    const value = options[name];
    return typeof value === "string" ? [`--${name}`, value] : [];
  });
  const parsed = parseAdd([...given, proposedName(words), ...(words.length === 1 ? [] : ["--"]), ...words]);
  if ("problem" in parsed) throw usage(parsed.problem);
  return parsed.add;
}

/** Advice for an entry of a file helps nobody here. */
const REMEDIES: Readonly<Record<string, string>> = {
  needs_auth:
    "--bearer-token-env NAME or --header NAME=value gives it a key. For a sign-in, add it first: pi-mcp-threads add, then login.",
  spawn_failed: "Check the command after --, and PATH.",
  bad_config: "Correct the options of the command; a variable must be set in this shell.",
  usage: "A second -- divides a command from what follows it: call -- <command> -- <tool> key=value",
};

/** The failure of a command about such a server, with what helps there. */
export function unconfiguredFailure(error: unknown): Failure {
  const failure = asFailure(error);
  const { exitCode, message, code, data } = failure;
  const remedy = lackRemedy(failure) ?? (Object.hasOwn(REMEDIES, code) ? REMEDIES[code] : failure.remedy);
  // The other mistakes are not about where the command ends.
  const isOther = code === "usage" && !(isObject(data) && data.missing === "tool");
  return isOther ? failure : new Failure(exitCode, message, { remedy, code, data });
}

/** The place of a command about that server. `place`: where the command was started, which keeps the log. */
export function placeOfUnconfigured(place: Place, { server = [], options }: CommandLine): Place {
  if (options.config !== undefined)
    throw usage("--config is for servers that a file names, and no file names this one.");
  const { name, entry } = entryOf(server, options);
  const agentDir = mkdtempSync(join(tmpdir(), "pi-mcp-threads-once-"));
  process.once("exit", () => rmSync(agentDir, { recursive: true, force: true }));
  writeFileSync(join(agentDir, "mcp.json"), JSON.stringify({ mcpServers: { [name]: entry } }), {
    mode: 0o600,
  });
  const trust = { trust: "no", reason: "the command names its server itself" } as const;
  return { agentDir, logDir: place.agentDir, key: { cwd: place.key.cwd, configFile: undefined }, trust };
}
