/** Owns: a sign-in that stands in the store before Pi starts, as an earlier session leaves it. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { placeOf } from "../../workers/connection/auth/store/file.ts";
import { formatRecord } from "../../workers/connection/auth/store/record.ts";

const HOUR_MS = 3_600_000;

export interface StoredToken {
  agentDir: string;
  server: string;
  url: string;
  token: string;
}

/** The token is good for an hour and can be renewed, by an authorization server that does not exist. */
export async function storeSignIn({ agentDir, server, url, token }: StoredToken): Promise<void> {
  const { file } = placeOf({ agentDir, server, url });
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const record = {
    version: 1 as const,
    server,
    url,
    issuer: "https://issuer.invalid",
    tokenEndpoint: "https://issuer.invalid/token",
    client: { id: "a client", method: "none" as const, kind: "dynamic" as const },
    access_token: token,
    token_type: "Bearer",
    refresh_token: `refresh of ${token}`.replaceAll(" ", "-"),
    obtainedAt: Date.now(),
    expiresAt: Date.now() + HOUR_MS,
  };
  await writeFile(file, formatRecord(record), { mode: 0o600 });
}
