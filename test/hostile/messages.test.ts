/** Attacks by the form and the timing of the messages of a server over stdio. README.md says how to add a row. */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.messages);
