/**
 * Reads a package argument: a name with an exact version, a range, a tag or nothing. Follows npm-package-arg for
 * packages of a registry; anything else (git, URL, file, folder, alias) is not read. Pure.
 */
import satisfies from "semver/functions/satisfies.js";
import valid from "semver/functions/valid.js";
import validRange from "semver/ranges/valid.js";

export interface PackageSpec {
  /** As the command line writes it: the name of npm's cache folder depends on that. */
  raw: string;
  name: string;
  kind: "version" | "range" | "tag";
  /** The part after the name; `*` if there is none. */
  wanted: string;
}

const SPEC = /^((?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*)(?:@(.+))?$/i;
/** npm takes such a name for a file. */
const ARCHIVE = /\.(?:tgz|tar\.gz|tar)$/i;

/** Undefined for anything but a package of a registry. */
export function parseSpec(raw: string): PackageSpec | undefined {
  const match = SPEC.exec(raw);
  const name = match?.[1];
  if (name === undefined || ARCHIVE.test(raw)) return undefined;
  // As in npm, a name alone means any version, and yet npx asks the registry for the newest one.
  const wanted = match?.[2] ?? "*";
  if (valid(wanted, true) !== null) return { raw, name, kind: "version", wanted };
  if (validRange(wanted, true) !== null) return { raw, name, kind: "range", wanted };
  if (encodeURIComponent(wanted) !== wanted) return undefined;
  return { raw, name, kind: "tag", wanted };
}

/** Whether the spec allows an installed version. A tag says nothing about versions. */
export function isWanted({ kind, wanted }: PackageSpec, version: string): boolean {
  if (kind === "tag" || wanted === "*") return true;
  return satisfies(version, wanted, { loose: true });
}
