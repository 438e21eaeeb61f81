/** Owns: the conformance suite's scenarios about the extensions of sign-in, with the real Pi as the client, in print mode. */
import { expect, test } from "vitest";
import { startCli } from "../cli/support.ts";
import { browse } from "../support/browser.ts";
import { family } from "../support/long.ts";
import { toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { playScenario } from "./conformance-support.ts";
import { call, ENTRY, home, model, searchFor } from "./support.ts";

const TOOL = "docs__test-tool";

type Context = Record<string, string>;
interface Row {
  suite?: "stable";
  /** `oauth` of the server, as a user would write it. */
  oauth: (context: Context) => Record<string, unknown>;
  settings?: (context: Context) => Record<string, unknown>;
  /** Whether the user signs in with a browser before. */
  logsIn?: true;
}

const BEARER: Row = {
  oauth: ({ client_id, valid_jwt }) => ({
    ...{ grantType: "jwt_bearer", clientId: client_id, assertion: valid_jwt },
  }),
};
const COMPANY: Row = {
  oauth: ({ client_id, client_secret }) => ({
    ...{ grantType: "identity_provider", clientId: client_id, clientSecret: client_secret },
  }),
  settings: ({ idp_issuer, idp_client_id, idp_id_token }) => ({
    identityProvider: { issuer: idp_issuer, clientId: idp_client_id, assertion: idp_id_token },
  }),
};
const SIGNED_IN: Row = { oauth: () => ({}), logsIn: true };

async function logIn(at: Awaited<ReturnType<typeof home>>): Promise<void> {
  const login = startCli(at, ["login", "docs"], { env: { BROWSER: "none" } });
  let text = "";
  let isOpened = false;
  login.child.stderr?.on("data", (chunk: string) => {
    text += chunk;
    const [, page] = /^(https?:\/\/\S+)\n/m.exec(text) ?? [];
    if (page === undefined || isOpened) return;
    isOpened = true;
    void browse(page);
  });
  expect(await login.ended).toMatchObject({ code: 0 });
}

test.each(
  family<[string, Row]>([
    ["auth/cross-app-access-complete-flow", { ...COMPANY, suite: "stable" }],
    ["auth/wif-jwt-bearer", BEARER],
    ["auth/enterprise-managed-authorization", COMPANY],
    ["auth/dpop", SIGNED_IN],
    ["auth/dpop-nonce", SIGNED_IN],
  ]),
)("%s -> the call runs, and each check of the suite is met", async (scenario, row) => {
  const { suite = "next", oauth, settings, logsIn } = row;
  const { statuses, played } = await playScenario(suite, scenario, async ({ url, context }) => {
    const mcpServers = { docs: { url, lifecycle: "eager", oauth: oauth(context) } };
    const at = await home({ mcp: { mcpServers, settings: settings?.(context) ?? {} } });
    if (logsIn) await logIn(at);
    const scripted = await model([searchFor(`select:${TOOL}`), call(TOOL, {}), { text: "ok" }]);
    await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    const last = scripted.requests.at(-1);
    return last ? toolResultTexts(last) : [];
  });
  expect(played?.[1]).toBe("test");
  expect(statuses.length).toBeGreaterThan(0);
  expect(statuses.filter((status) => status !== "SUCCESS" && status !== "INFO")).toEqual([]);
});
