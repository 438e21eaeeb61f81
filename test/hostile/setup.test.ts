/** Attacks while servers are set up, by `/mcp add` and `/mcp import`. README.md says how to add a row. */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.setup);
