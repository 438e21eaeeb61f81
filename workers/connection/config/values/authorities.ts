/**
 * Further certificate authorities of a server: `caFile` of its entry and of the settings. The files are read at each
 * connect, so that a renewed certificate counts. An error names key and file, never the content.
 */
import { X509Certificate } from "node:crypto";
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { badConfig, ownPath, type ResolveOptions, type Resolver } from "./resolver.ts";

/** All certificates that a browser trusts take a quarter of this. */
const FILE_BYTES = 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
};

/** The certificates of a file, or why it cannot be used. `file`: an absolute path. Never throws. */
async function readCertificates(file: string): Promise<string[] | { reason: string }> {
  const read = await readRegularText(file, FILE_BYTES);
  if (read.kind !== "text") {
    return { reason: read.kind === "unreadable" ? `it cannot be read (${read.code})` : whyUnread(read) };
  }
  const certificates = read.text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) return { reason: "it holds no certificate in PEM form" };
  const wrong = certificates.findIndex((pem) => !isCertificate(pem));
  return wrong === -1 ? certificates : { reason: `its certificate ${wrong + 1} is broken` };
}

/** Undefined if neither the entry nor the settings name a file. */
export async function authoritiesOf(
  definition: ServerDefinition,
  { resolver, options }: { resolver: Resolver; options: ResolveOptions },
): Promise<string[] | undefined> {
  const { target } = definition;
  const own = target.kind === "http" ? target.caFile : undefined;
  const named = [
    { key: "caFile", path: own },
    { key: "settings.caFile", path: options.caFile },
  ];
  const files = named.flatMap(({ key, path }) => (path ? [{ key, path }] : []));
  if (files.length === 0) return undefined;
  const found = await Promise.all(
    files.map(async ({ key, path }) => {
      const filled = resolver.path(key, path);
      // The settings are the user's own, also for a server of a project.
      const owner = key === "caFile" ? definition : { ...definition, definedByProject: false };
      const certificates = await readCertificates(ownPath({ definition: owner, key, path: filled }, options));
      if (Array.isArray(certificates)) return certificates;
      // The path as written, because no error may hold the value of a variable.
      const remedy = "Correct it, or put a file with PEM certificates there.";
      throw badConfig(definition, `${key} ${path} cannot be used: ${certificates.reason}`, remedy);
    }),
  );
  return found.flat();
}
