/**
 * Owns the metadata of a protected resource (RFC 9728): where a server's are, which resource they may be for, and the
 * authorization servers and scopes in them.
 */
import { type AuthChallenge, SignInProblem } from "../model/model.ts";
import { type AuthRequests, addressProblem, shownAddress } from "../requests/requests.ts";
import { type Fields, firstDocument } from "./document.ts";
import { readAddress, readAddresses, readWords } from "./fields.ts";
import { resourceAddresses } from "./well-known.ts";

export interface ResourceMetadata {
  /** Address at which the metadata are. */
  url: URL;
  /** As the server writes it. Absent: the server does not say. */
  resource?: string;
  issuers: string[];
  scopes?: string[];
}

export type ResourceSearch =
  | { kind: "found"; metadata: ResourceMetadata }
  /** `problem`: there was an answer, but it was not metadata. */
  | { kind: "absent"; problem?: SignInProblem };

/** More authorization servers than any server names. */
const ISSUERS = 10;

/** Why fields are not the metadata of a resource: a server may answer any path with some JSON. */
const lacksResource = (fields: Fields): string | undefined =>
  readAddress(fields.resource) === undefined && readAddresses(fields, "authorization_servers").length === 0
    ? "it names neither a resource nor an authorization server"
    : undefined;

export function readResource(fields: Fields, url: URL): ResourceMetadata {
  const resource = readAddress(fields.resource);
  const scopes = readWords(fields.scopes_supported);
  return {
    url,
    ...(resource === undefined ? {} : { resource }),
    issuers: [...new Set(readAddresses(fields, "authorization_servers"))].slice(0, ISSUERS),
    ...(scopes === undefined ? {} : { scopes }),
  };
}

/** The address in the challenge; undefined if there is none that may be asked. Some servers write a path only. */
function challengedAddress(endpoint: URL, challenge: AuthChallenge | undefined, note: Note): URL | undefined {
  const text = readAddress(challenge?.resourceMetadata);
  if (text === undefined || !URL.canParse(text, endpoint.href)) return undefined;
  const url = new URL(text, endpoint);
  // A server behind a proxy that ends TLS often takes its own address for http. The well-known address needs no trust.
  if (!addressProblem(url)) return url;
  note(
    `names ${shownAddress(url)} for its metadata, which is not https: its well-known address is asked instead`,
  );
  return undefined;
}

type Note = (note: string) => void;

export interface ResourceQuestion {
  /** The MCP endpoint. */
  url: URL;
  challenge: AuthChallenge | undefined;
  requests: AuthRequests;
  onNote: Note;
}

/** Looks at the address in the challenge, then for the endpoint's path, then for its origin. Throws `SignInProblem`. */
export async function findResource({
  url,
  challenge,
  requests,
  onNote,
}: ResourceQuestion): Promise<ResourceSearch> {
  const given = challengedAddress(url, challenge, onNote);
  const wellKnown = resourceAddresses(url).filter(({ href }) => href !== given?.href);
  const found = await firstDocument(given ? [given, ...wellKnown] : wellKnown, requests, lacksResource);
  if (found.kind === "found") return { kind: "found", metadata: readResource(found.fields, found.url) };
  return found.kind === "absent" ? { kind: "absent" } : { kind: "absent", problem: found.problem };
}

/** Path with one slash at its end, so that `/mcp` does not cover `/mcp2`. */
const asFolder = (path: string): string => (path.endsWith("/") ? path : `${path}/`);

/**
 * Whether metadata for `resource` are for the endpoint: the same origin, and a path that covers the endpoint's (MCP
 * 2025-11-25, canonical server URI; RFC 9728, section 3.3). Otherwise a server could get tokens for another one.
 */
export function coversEndpoint(resource: string, endpoint: URL): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname, hash, username, password } = new URL(resource);
  if (origin !== endpoint.origin || hash !== "" || username !== "" || password !== "") return false;
  return asFolder(endpoint.pathname).startsWith(asFolder(pathname));
}

/** Throws `SignInProblem` "resource-differs". */
export function checkResource({ resource }: ResourceMetadata, endpoint: URL): void {
  if (resource === undefined || coversEndpoint(resource, endpoint)) return;
  throw new SignInProblem("resource-differs", { expected: shownAddress(endpoint), found: resource });
}
