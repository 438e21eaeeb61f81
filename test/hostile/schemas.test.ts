/** Attacks by schemas of tools; README.md says how a row is added. */
import { SCHEMAS } from "./rows/schemas.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(SCHEMAS);
