/** Owns: the values of a plan for OAuth, filled in when a sign-in needs them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { resolveOAuth, resolveTarget } from "../../../../../../workers/connection/config/values/values.ts";
import { oauthSecrets } from "../../../../../../workers/connection/secrets/find.ts";
import { createRedactor } from "../../../../../../workers/connection/secrets/redact.ts";
import { definition, PROJECT_FILE, temporaryFolder, USER } from "../support.ts";

const DEFAULTS = { grantType: "authorization_code", clientRegistration: "auto" };
const PEM = "-----BEGIN PRIVATE KEY-----\nMIGs3cret\n-----END PRIVATE KEY-----\n";
const ENV = {
  PATH: process.env.PATH,
  SECRET: "s3cret-value",
  EMPTY: "",
  HOST: "as.test",
  KEY: PEM,
  ODD: "s3cretï",
};

const options = (over: object = {}) => ({
  env: ENV,
  home: "/home/me",
  cwd: "/work/app",
  signal: new AbortController().signal,
  onSpawn: () => undefined,
  onExit: () => undefined,
  ...over,
});

const server = (keys: object, source = USER) =>
  definition("docs", { url: "https://x.test/mcp", ...keys }, source);

const resolve = (oauth: object, over: object = {}, source = USER): Promise<OAuthPlan> =>
  resolveOAuth(server({ oauth }, source), options(over));

const failureOf = (work: Promise<unknown>): Promise<ThreadsError> =>
  work.then(
    () => {
      throw new Error("resolved");
    },
    (error) => error,
  );

describe("resolveOAuth", () => {
  test.each<[object, object]>([
    [{}, {}],
    [
      { clientId: "${SECRET}", clientSecret: "!printf abc" },
      { clientId: "s3cret-value", clientSecret: "abc" },
    ],
    [{ clientId: "!!a" }, { clientId: "!a" }],
    [{ scope: " a  ${EMPTY} b " }, { scope: "a b" }],
    [{ scope: "${EMPTY}", clientId: "${EMPTY}" }, {}],
    [
      { issuer: "https://${HOST}", authServerMetadataUrl: "https://${HOST}/m" },
      { issuer: "https://as.test", authServerMetadataUrl: "https://as.test/m" },
    ],
    [
      { redirectUri: "http://localhost:{port}/cb", callbackPort: 5 },
      { redirectUri: "http://localhost:{port}/cb", callbackPort: 5 },
    ],
    [{ resource: "api://${HOST}" }, { resource: "api://as.test" }],
    [{ resource: false }, { resource: false }],
    [
      { authorizationParams: { access_type: "${SECRET}", prompt: "${EMPTY}", hd: "!echo x" } },
      { authorizationParams: { access_type: "s3cret-value", hd: "x" } },
    ],
    [{ privateKey: "${KEY}" }, { privateKey: PEM }],
    [{ privateKeyFile: "~/${HOST}.pem" }, { privateKeyFile: "/home/me/as.test.pem" }],
    [{ assertionFile: "!echo /run/token" }, { assertionFile: "/run/token" }],
    [
      { grantType: "client_credentials", clientId: "a", clientSecret: "${SECRET}" },
      { grantType: "client_credentials", clientId: "a", clientSecret: "s3cret-value" },
    ],
  ])("%j -> %j", async (oauth, plan) => {
    expect(await resolve(oauth)).toEqual({ ...DEFAULTS, ...plan });
  });

  test.each<[object, string]>([
    [
      { clientSecret: "${NOPE}" },
      "docs: oauth.clientSecret needs NOPE, which is not set in the environment.",
    ],
    [{ clientSecret: "!echo s3cret; exit 3" }, "docs: oauth.clientSecret: its command ended with code 3."],
    [
      { authorizationParams: { a: "${NOPE}" } },
      "docs: oauth.authorizationParams.a needs NOPE, which is not set in the environment.",
    ],
    [
      { issuer: "${SECRET}" },
      "docs: oauth.issuer is not an https URL without a query, once its variables are filled in.",
    ],
    [
      { clientSecret: "${ODD}" },
      "docs: oauth.clientSecret holds characters that OAuth does not allow, once its variables are filled in.",
    ],
    [
      { privateKey: "${SECRET}" },
      "docs: oauth.privateKey does not hold a private key in PEM form, once its variables are filled in.",
    ],
    [
      { grantType: "client_credentials", clientId: "a", clientSecret: "${EMPTY}" },
      "docs: oauth.grantType client_credentials has nothing that proves who the client is, once its variables are filled in.",
    ],
    // A relative path would let the folder in which Pi runs decide about the user's sign-in.
    [{ privateKeyFile: "key.pem" }, "docs: oauth.privateKeyFile is not an absolute path."],
    [{ assertionFile: "./${SECRET}" }, "docs: oauth.assertionFile is not an absolute path."],
  ])("%j -> an error without any value", async (oauth, message) => {
    const error = await failureOf(resolve(oauth));
    expect(error).toMatchObject({ code: "bad_config", message });
    expect(JSON.stringify([error.message, error.remedy, error.data])).not.toContain("s3cret");
    expect(error.remedy).toMatch(/\.$/);
  });

  test.each([{ oauth: false }, { auth: "none" }])(
    "%j -> an error that says how to allow a sign-in",
    async (keys) => {
      expect(await failureOf(resolveOAuth(server(keys), options()))).toMatchObject({
        code: "bad_config",
        message: "docs: its entry allows no sign-in with OAuth.",
      });
    },
  );

  test("commands of the plan -> not run by a connect, only by a sign-in", async () => {
    const folder = await temporaryFolder();
    const own = server({ oauth: { clientSecret: "!touch ran; echo s" } });
    await resolveTarget(own, options({ home: folder }));
    expect(existsSync(join(folder, "ran"))).toBe(false);
    await resolveOAuth(own, options({ home: folder }));
    expect(existsSync(join(folder, "ran"))).toBe(true);
  });

  test("a command of a project's file -> runs in the project; the user's own does not", async () => {
    const [home, cwd] = [await temporaryFolder(), await temporaryFolder()];
    const where = { clientId: "!pwd" };
    expect((await resolve(where, { home, cwd }, PROJECT_FILE)).clientId).toBe(cwd);
    expect((await resolve(where, { home, cwd })).clientId).toBe(home);
  });

  test("an abort -> cancelled, and no command is left running", async () => {
    const stop = new AbortController();
    const exited: number[] = [];
    const running = resolve(
      { clientSecret: "!sleep 60" },
      { signal: stop.signal, onSpawn: () => stop.abort(), onExit: (pid: number) => exited.push(pid) },
    );
    expect(await failureOf(running)).toMatchObject({ code: "cancelled" });
    expect(exited).toHaveLength(1);
  });
});

describe("oauthSecrets", () => {
  test("the secrets of a plan, and all that its variables and commands gave -> redacted", async () => {
    const written = server({
      oauth: {
        clientId: "!echo from-a-command",
        clientSecret: "plain-secret",
        privateKey: "${KEY}",
        scope: "read write",
        issuer: "https://as.test",
        authorizationParams: { login_hint: "me@example.com", api_key: "k3y!" },
      },
    });
    const resolved = await resolveOAuth(written, options());
    const redact = createRedactor(oauthSecrets(written.oauth, resolved));
    const text = redact(`plain-secret ${PEM} from-a-command me@example.com k3y! read write https://as.test`);
    expect(text).toMatch(
      /^\[redacted\] .*\[redacted\] \[redacted\] \[redacted\] read write https:\/\/as\.test$/s,
    );
    for (const secret of ["plain-secret", "MIGs3cret", "from-a-command", "k3y!"])
      expect(text).not.toContain(secret);
  });
});
