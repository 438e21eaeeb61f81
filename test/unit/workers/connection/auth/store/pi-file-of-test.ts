/** Owns: an entry of `mcp-auth.json` as Pi 1.5 writes it after a sign-in with dynamic registration. */
import { SERVER, URL_OF_SERVER } from "./record-of-test.ts";

export const PI_KEY = `mcp__${SERVER}|${URL_OF_SERVER}`;

export const metadata = {
  issuer: "https://auth.linear.example",
  authorization_endpoint: "https://auth.linear.example/authorize",
  token_endpoint: "https://auth.linear.example/token",
  registration_endpoint: "https://auth.linear.example/register",
  revocation_endpoint: "https://auth.linear.example/revoke",
  response_types_supported: ["code"],
  token_endpoint_auth_methods_supported: ["none"],
};

const entry = {
  serverUrl: URL_OF_SERVER,
  discovery: {
    authorizationServerUrl: "https://auth.linear.example/",
    authorizationServerMetadata: metadata,
    resourceMetadata: { resource: URL_OF_SERVER, authorization_servers: ["https://auth.linear.example/"] },
  },
  clientInformation: {
    client_id: "registered",
    client_id_issued_at: 1_700_000_000,
    redirect_uris: ["http://127.0.0.1:4711/callback"],
  },
  oauthState: "state",
  codeVerifier: "verifier",
  tokens: {
    access_token: "pi-access",
    token_type: "Bearer",
    expires_in: 3600,
    refresh_token: "pi-refresh",
    scope: "read",
  },
  tokensExpireAt: 1_800_000_000_000,
};

export const inPi = (over: Record<string, unknown> = {}): typeof entry => ({ ...entry, ...over });

/** The text of Pi's file. */
export const piText = (states: object): string => `${JSON.stringify(states, null, 2)}\n`;
