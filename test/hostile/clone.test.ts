/**
 * Attacks by files of a cloned repository that run programs, send secrets or shape the question, or that are too big or
 * not regular files. README.md says how to add a row.
 */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.clone);
