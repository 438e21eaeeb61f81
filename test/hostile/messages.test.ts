/** Attacks by messages of a server over stdio; README.md says how a row is added. */
import { MESSAGES } from "./rows/messages.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(MESSAGES);
