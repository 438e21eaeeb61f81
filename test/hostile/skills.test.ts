/** Attacks by skills of servers. README.md says how to add a row. */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.skills);
