/** Owns: oauth4webapi, which is strict, over the answers of servers that are not. */
import * as oauth from "oauth4webapi";
import { describe, expect, test } from "vitest";
import { type Route, requestsFor, sending, serving } from "./support.ts";

describe("oauth4webapi over these requests", () => {
  const client = { client_id: "c" };
  const granting = async (route: Route): Promise<oauth.TokenEndpointResponse> => {
    const { origin } = await serving(route);
    const server: oauth.AuthorizationServer = { issuer: origin, token_endpoint: `${origin}/` };
    const { fetch } = requestsFor(origin);
    const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetch };
    const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), "old", options);
    return oauth.processRefreshTokenResponse(server, client, response);
  };

  const TOKENS: [name: string, route: Route, answer: object][] = [
    [
      "null fields",
      { access_token: "a", token_type: "Bearer", scope: null, expires_in: null, refresh_token: null },
      { access_token: "a" },
    ],
    [
      "a number as a text",
      { access_token: "a", token_type: "bearer", expires_in: "3600" },
      { expires_in: 3_600 },
    ],
    ["no type", { access_token: "a" }, { token_type: "bearer" }],
    ["a wrong ID token", { access_token: "a", token_type: "bearer", id_token: "x.y" }, { access_token: "a" }],
    ["a form", sending(200, "access_token=a&token_type=bearer&scope="), { access_token: "a" }],
    [
      "the type text/plain",
      sending(200, '\uFEFF{"access_token":"a"}', { "content-type": "text/plain" }),
      { access_token: "a" },
    ],
    ["status 201", sending(201, '{"access_token":"a"}'), { access_token: "a" }],
  ];
  test.each(TOKENS)("tokens with %s -> accepted", async (_name, route, answer) => {
    expect(await granting(route)).toMatchObject(answer);
  });

  const REFUSALS: [name: string, route: Route][] = [
    ["an error under 200", { error: "invalid_grant" }],
    ["an error in a form under 200", sending(200, "error=invalid_grant")],
    [
      "an error with a challenge",
      sending(401, '{"error":"invalid_grant"}', { "www-authenticate": 'Basic realm="x"' }),
    ],
    ["an error without a type", sending(400, '{"error":"invalid_grant"}')],
    ["an error as an object", { error: { code: "invalid_grant" } }],
  ];
  test.each(REFUSALS)("%s -> the error", async (_name, route) => {
    await expect(granting(route)).rejects.toMatchObject({ error: "invalid_grant" });
  });

  test("a registration under 200 with a secret without an end -> accepted", async () => {
    const { origin } = await serving({ client_id: "c", client_secret: "s", scope: null });
    const server: oauth.AuthorizationServer = { issuer: origin, registration_endpoint: `${origin}/` };
    const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: requestsFor(origin).fetch };
    const response = await oauth.dynamicClientRegistrationRequest(server, {}, options);
    expect(await oauth.processDynamicClientRegistrationResponse(response)).toEqual({
      client_id: "c",
      client_secret: "s",
      client_secret_expires_at: 0,
    });
  });
});
