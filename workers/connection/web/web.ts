/**
 * HTTP for everything in the worker that asks an address: MCP servers and authorization servers. Owns: one exchange,
 * the way through a proxy, redirects within the origin. Must not: know MCP or OAuth. Called by: transports/http, auth.
 * To change how all requests leave the machine (a proxy, a certificate): here.
 */
export {
  createHttpClient,
  type HttpClient,
  type HttpRequest,
  type HttpResponse,
  redirectTarget,
  type ServerBody,
  staysWithin,
} from "./client.ts";
export { bareHost, type Env, ProxyError, proxyAddress, proxyFor } from "./proxy.ts";
export { lookUp, openSocket, shakeHands } from "./reach.ts";
