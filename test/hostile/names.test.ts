/** Attacks by names, descriptions and instructions; README.md says how a row is added. */
import { NAMES } from "./rows/names.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(NAMES);
