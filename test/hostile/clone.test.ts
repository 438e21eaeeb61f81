/** Attacks by the files of a cloned repository; README.md says how a row is added. */
import { CLONE } from "./rows/clone.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(CLONE);
