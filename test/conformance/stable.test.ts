/** Owns: the client scenarios of the conformance suite, version 0.1.16. */
import { proveConformance } from "./support.ts";

proveConformance("stable");
