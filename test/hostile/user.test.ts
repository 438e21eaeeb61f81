/**
 * Attacks on what a user is asked and told: while he signs in, by the questions of a server, on `/mcp doctor`, and while
 * servers are set up with `/mcp add` and `/mcp import`. README.md says how to add a row.
 */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

// Most of these attackers are idle until they are called, tried or signed in to: thirty cost little more than eight.
hostileSuite(GROUPS.user, { beside: 30 });
