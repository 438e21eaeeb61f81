/** Owns: what a server's own configuration and its files may decide of its sign-in, by who wrote them. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ServerAuth } from "../../../../../workers/connection/auth/auth.ts";
import { SignIns } from "../../../../../workers/connection/auth/sign-in/sign-in.ts";
import { parseEntry } from "../../../../../workers/connection/config/entry/definition.ts";
import type { OAuthPlan } from "../../../../../workers/connection/config/entry/oauth-values.ts";
import { createHttpClient } from "../../../../../workers/connection/web/client.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { serving } from "./requests/support.ts";

/** No name service knows this host, so it is in no private network. */
const SERVER_URL = "https://mcp.example.invalid/mcp";
const SECRET = "hunter2-of-the-configuration";

type Origin = "user" | "project-file" | "project-pi";

async function authOf(origin: Origin, oauth: Partial<OAuthPlan> = {}) {
  const agentDir = await tempFolder();
  const entry = { url: SERVER_URL, oauth };
  const { definition } = parseEntry("docs", entry, { file: "/m.json", origin });
  if (!definition) throw new Error("the entry is wrong");
  const secrets: string[] = [];
  const onNote = (): void => undefined;
  const auth = new ServerAuth(
    {
      definition,
      url: SERVER_URL,
      headers: {},
      redact: (text) => text,
      onSecret: (secret) => secrets.push(secret),
      onNote,
    },
    {
      agentDir,
      resolvePlan: async () => ({ grantType: "authorization_code", clientRegistration: "auto", ...oauth }),
      createClient: async () => createHttpClient({}),
      warn: onNote,
      onRenewing: () => undefined,
      onStatus: () => undefined,
    },
  );
  const log = { info: onNote, warn: onNote };
  const signIns = new SignIns({ onEnd: () => undefined, log, env: { BROWSER: "none" }, platform: "linux" });
  onTestFinished(async () => {
    await signIns.close();
    await auth.close(0);
  });
  return {
    auth,
    agentDir,
    secrets,
    signIn: () =>
      auth.signIn(signIns, { agreed: {}, signedIn: async () => 1, signal: new AbortController().signal }),
  };
}

test.each<[Origin, string, number]>([
  ["project-file", "private-address", 0],
  ["project-pi", "private-address", 0],
  ["user", "bad-answer", 1],
])("%s names a private address for a public server's metadata -> %s", async (origin, reason, asked) => {
  const inside = await serving({ a: 1 });
  const { signIn } = await authOf(origin, { authServerMetadataUrl: `${inside.origin}/` });
  await expect(signIn()).rejects.toMatchObject({ data: { reason } });
  expect(inside.log).toHaveLength(asked);
});

test.each<[Origin, string | undefined]>([
  ["project-file", undefined],
  ["project-pi", undefined],
  ["user", "given-token"],
])("tokens.json, and %s names the server -> the token %s", async (origin, token) => {
  const { auth, agentDir } = await authOf(origin);
  const folder = join(agentDir, "mcp-oauth", "docs");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, "tokens.json"), JSON.stringify({ access_token: "given-token" }));
  expect(await auth.token(new AbortController().signal)).toBe(token);
});

test("a sign-in -> no text may show the secret of the configuration", async () => {
  const { signIn, secrets } = await authOf("user", { clientId: "c", clientSecret: SECRET });
  await expect(signIn()).rejects.toMatchObject({ data: { reason: "unreachable" } });
  expect(secrets).toContain(SECRET);
});
