/**
 * Attacks on what a user is asked and told: by the questions of a server, on `/mcp doctor`, and while servers are set up
 * with `/mcp add` and `/mcp import`. README.md says how to add a row.
 */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

// Most of these attackers are idle until they are called or tried: twenty cost little more than eight.
hostileSuite(GROUPS.user, { beside: 20 });
