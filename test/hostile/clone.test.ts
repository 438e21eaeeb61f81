/** Attacks by the files of a cloned repository; README.md says how a row is added. */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.clone);
