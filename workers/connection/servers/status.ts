/** A server's state as `/mcp` and main show it. Pure. */
import { toWireError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SignInStatus } from "../../../src/shared/protocol/sign-in.ts";
import type { ServerStatus } from "../../../src/shared/protocol/status.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { type ServerDefinition, transportOf } from "../config/entry/definition.ts";
import { mayBeDirect } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { Connection } from "../mcp/connection.ts";
import { offeredTools } from "../offers/offers.ts";
import { statusError } from "./errors.ts";
import type { ServerOffer } from "./offer.ts";
import type { ServerLimits } from "./policy.ts";
import type { ServerPhase } from "./state.ts";

export interface StatusParts {
  definition: ServerDefinition;
  phase: ServerPhase;
  waits?: string | undefined;
  /** Absent: no connection is open, so the definition says which transport there would be. */
  connection: Pick<Connection, "transport" | "pid" | "protocol"> | undefined;
  offer: Pick<ServerOffer, "tools" | "resources">;
  settings: Pick<Settings, "directTools">;
  limits: Pick<ServerLimits, "reconnectMs">;
  signIn?: SignInStatus | undefined;
}

export function serverStatus(parts: StatusParts): ServerStatus {
  const { definition, phase, connection, offer, settings, limits, signIn } = parts;
  const { name, lifecycle, file, description } = definition;
  const { tools, resources } = offer;
  const toolCount = tools?.length ?? 0;
  const error = statusError(definition, phase, limits.reconnectMs);
  return {
    name,
    state: phase.name,
    lifecycle,
    transport: connection?.transport ?? transportOf(definition),
    source: file,
    ...(description === undefined ? {} : { description }),
    toolCount,
    resourceCount: offeredTools({ definition, tools, resources }).length - toolCount,
    toolsKnown: tools !== undefined,
    direct: mayBeDirect(definition, settings.directTools),
    ...(connection?.protocol.version ? { protocol: connection.protocol.version } : {}),
    ...(error ? { error: toWireError(error) } : {}),
    ...(parts.waits === undefined ? {} : { waits: oneLine(parts.waits, LIMITS.waitsChars) }),
    ...(connection?.pid === undefined ? {} : { pid: connection.pid }),
    ...(signIn === undefined ? {} : { signIn }),
  };
}
