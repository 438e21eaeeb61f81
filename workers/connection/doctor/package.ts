/** This package, as the report names it. */
import manifest from "../../../package.json" with { type: "json" };

export const PACKAGE = { name: manifest.name, version: manifest.version };
