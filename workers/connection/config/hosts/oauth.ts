/**
 * OAuth clients of other programs in our own keys. A client is registered with the redirect URI of its program, so that
 * a client id alone already means that URI. Sources: code.claude.com/docs/en/mcp, Use pre-configured OAuth credentials;
 * VS Code's MCP configuration reference; opencode.ai/docs/mcp-servers, OAuth; Codex's mcp_types.rs. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { compact, type Data, pick } from "./dialect.ts";

const objectAt = (value: unknown): Data => (isObject(value) ? value : {});

/** A list of texts as one text. Anything else stays, so that the check of the entry finds it. */
const scopeText = (scopes: unknown): unknown =>
  Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string") ? scopes.join(" ") : scopes;

/** Undefined if the entry says nothing. */
function keysOf(data: Data): Data | undefined {
  const oauth = compact(data);
  return Object.keys(oauth).length > 0 ? oauth : undefined;
}

/** Adds the redirect URI of the program if the entry has a client or a port of its own. */
function withRedirect(oauth: Data, redirectUri: (port: number | undefined) => string): Data {
  const { clientId, callbackPort } = oauth;
  if (oauth.redirectUri !== undefined || (clientId === undefined && callbackPort === undefined)) return oauth;
  if (callbackPort !== undefined && typeof callbackPort !== "number") return oauth;
  return { ...oauth, redirectUri: redirectUri(callbackPort) };
}

/** `oauth` as several programs write it, and `auth` as Cursor does. Cursor's own redirect URI opens Cursor. */
export function commonOauth({ oauth, auth }: Data): Data | undefined {
  const own = objectAt(oauth);
  const client = objectAt(auth);
  return keysOf({
    ...pick(own, ["clientId", "clientSecret", "callbackPort", "redirectUri", "authServerMetadataUrl"]),
    clientId: client.CLIENT_ID ?? own.clientId,
    clientSecret: client.CLIENT_SECRET ?? own.clientSecret,
    scope: scopeText(client.scopes) ?? own.scope ?? scopeText(own.scopes),
  });
}

/** Claude Code listens on `localhost`, on `callbackPort` or any port. */
export function claudeOauth(entry: Data): Data | undefined {
  const oauth = commonOauth(entry);
  return oauth && withRedirect(oauth, (port) => `http://localhost:${port ?? "{port}"}/callback`);
}

/** VS Code listens on 127.0.0.1, on a port of its own. */
export function vscodeOauth(entry: Data): Data | undefined {
  const oauth = commonOauth(entry);
  return oauth && withRedirect(oauth, (port = 33418) => `http://127.0.0.1:${port}/`);
}

/** `false` stays: OpenCode then signs in to nothing. */
export function opencodeOauth({ oauth }: Data): unknown {
  if (!isObject(oauth)) return oauth;
  const keys = pick(oauth, ["clientId", "clientSecret", "scope", "callbackPort", "redirectUri"]);
  const own = keysOf(keys);
  return own && withRedirect(own, (port = 19876) => `http://127.0.0.1:${port}/mcp/oauth/callback`);
}

/** On loopback, a URI without a port stands for any port (RFC 8252, section 7.3). */
const withAnyPort = (uri: unknown): unknown =>
  typeof uri === "string"
    ? uri.replace(/^(http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]))(?=\/|$)/, "$1:{port}")
    : uri;

/** Codex has a callback for all servers in `root`, and one in an entry's `oauth`. */
export function codexOauth({ url, oauth, scopes, oauth_resource }: Data, root: Data): Data | undefined {
  if (url === undefined) return undefined;
  const own = objectAt(oauth);
  const keys = keysOf({ clientId: own.client_id, scope: scopeText(scopes), resource: oauth_resource });
  const callback = compact({
    callbackPort: own.callback_port ?? root.mcp_oauth_callback_port,
    redirectUri: withAnyPort(own.callback_url ?? root.mcp_oauth_callback_url),
  });
  return keysOf({ ...keys, ...callback });
}
