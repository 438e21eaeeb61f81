/** Attacks by the amount that a server over stdio writes. README.md says how to add a row. */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.floods);
