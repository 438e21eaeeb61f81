/** Owns: a sign-in and the times of its lock, for tests and for the processes that they start. */

import type { SignInRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import type { LockTimes } from "../../../../../../workers/shared/files/lock.ts";

export const SERVER = "linear";
export const URL_OF_SERVER = "https://mcp.linear.example/mcp";

/** Of a store that runs no program. */
export const SYSTEM_OF_TEST = {
  tokenStore: () => "file" as const,
  system: {
    env: process.env,
    platform: process.platform,
    onSpawn: () => undefined,
    onExit: () => undefined,
  },
};

/** A dead holder's lock is taken soon; a live one's never. */
export const LOCK: LockTimes = { waitMs: 60_000, beatMs: 20, silentMs: 45_000 };

export const never = (): AbortSignal => new AbortController().signal;

export const signedIn = (over: Partial<SignInRecord> = {}): SignInRecord => ({
  version: 1,
  server: SERVER,
  url: URL_OF_SERVER,
  issuer: "https://auth.linear.example",
  tokenEndpoint: "https://auth.linear.example/token",
  client: { id: "client", method: "none", kind: "dynamic" },
  access_token: "access-token-1",
  token_type: "Bearer",
  refresh_token: "refresh-token-1",
  expiresAt: 1_800_000_000_000,
  ...over,
});
