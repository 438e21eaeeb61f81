/** What the servers' own states say: sign-ins, failures, and what was learned when they were connected last. */

import type { Finding, FindingId, Severity } from "../../../src/shared/protocol/doctor.ts";
import { type WireError, withoutServer } from "../../../src/shared/protocol/errors.ts";
import type { ServerStatus } from "../../../src/shared/protocol/status.ts";
import { counted } from "../../../src/shared/text/counts.ts";
import { commandFor } from "../../shared/commands.ts";
import { allWell, type DoctorInput, reasonOf } from "./check.ts";

/** Kind of a failed exchange (transports/http/failure.ts) or code of the network -> what the finding is about. */
const BY_REASON: ReadonlyMap<string, FindingId> = new Map(
  Object.entries({
    ENOTFOUND: "dns",
    EAI_AGAIN: "dns",
    EAI_FAIL: "dns",
    ENODATA: "dns",
    ECONNREFUSED: "port",
    EHOSTUNREACH: "port",
    EHOSTDOWN: "port",
    ENETUNREACH: "port",
    ETIMEDOUT: "port",
    certificate: "tls",
    "not-tls": "tls",
    proxy: "proxy",
    "web-page": "address",
    redirect: "address",
    "refuses-streamable": "address",
    unusable: "address",
    "not-http": "address",
    rejected: "refused",
    era: "protocol",
  } as const),
);

const BY_CODE: Readonly<Partial<Record<WireError["code"], FindingId>>> = {
  needs_auth: "sign-in",
  spawn_failed: "command",
  connect_timeout: "time-out",
  server_died: "ended",
  bad_config: "variable",
  server_not_trusted: "consent",
};

/** What the error of a server is about. */
export const idOf = (error: WireError): FindingId =>
  (reasonOf(error)?.startsWith("npm-") ? "npx" : BY_REASON.get(reasonOf(error) ?? "")) ??
  BY_CODE[error.code] ??
  "connect";

/** Words that point to the one thing to change, for answers whose own remedy is general. */
function remedyOf(error: WireError): string | undefined {
  if (error.data?.status === 404) {
    return "The path of the url is probably wrong: the MCP endpoint often ends in /mcp, or in /sse for old servers.";
  }
  return error.remedy;
}

/** Words of a server that was at work when a worker died (servers/status.ts). */
const isHeldBack = ({ code, message }: WireError): boolean =>
  code === "server_died" && message.endsWith("The server is not connected by itself any more.");

/** The finding about the error of an attempt to reach a server. */
export function findingOf(server: string, error: WireError, severity: Severity): Finding {
  const remedy = remedyOf(error);
  // What a process wrote follows on lines of its own.
  const [title = "", ...more] = withoutServer(server, error.message).split("\n");
  return {
    id: isHeldBack(error) ? "crash" : idOf(error),
    severity,
    server,
    title,
    ...(more.length === 0 ? {} : { detail: more.join("\n") }),
    ...(remedy === undefined ? {} : { remedy }),
  };
}

function ofSignIn({ name, state, signIn, error }: ServerStatus): Finding | undefined {
  if (signIn === undefined || (state !== "needs-auth" && signIn.state !== "needed")) return undefined;
  if (signIn.state === "running") return undefined;
  const isOld = signIn.state === "signed-in";
  return {
    id: "sign-in",
    severity: "warning",
    server: name,
    title: isOld ? "The server no longer accepts its sign-in." : "The server needs a sign-in.",
    ...(error ? { detail: withoutServer(name, error.message) } : {}),
    remedy: commandFor("auth", name),
  };
}

/** The findings about one server. */
export function judgeState(status: ServerStatus): Finding[] {
  const { name, state, error, transport, protocol } = status;
  const signIn = ofSignIn(status);
  if (signIn) return [signIn];
  if (error) return [findingOf(name, error, state === "idle" && !isHeldBack(error) ? "warning" : "error")];
  if (state === "connected" && transport === "sse") {
    return [
      {
        id: "protocol",
        severity: "note",
        server: name,
        title: `The server speaks only the old SSE transport${protocol ? ` (MCP ${protocol})` : ""}.`,
        detail: "Newer revisions of MCP do without it; it works here.",
      },
    ];
  }
  return [];
}

export function checkStates({ servers }: DoctorInput): Finding[] {
  const statuses = servers.map((server) => server.status());
  const found = statuses.flatMap(judgeState);
  const connected = statuses.filter(({ state }) => state === "connected").length;
  if (found.some(({ severity }) => severity !== "note") || connected === 0) return found;
  return [...found, allWell("connect", `${counted(connected, "server")} connected without an error.`)];
}
