/** Owns: the client scenarios of the conformance suite, version 0.2.0-alpha.12. */
import { proveConformance } from "./support.ts";

proveConformance("next");
