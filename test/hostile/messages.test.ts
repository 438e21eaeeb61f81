/** Attacks by messages of a server over stdio; README.md says how a row is added. */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.messages);
