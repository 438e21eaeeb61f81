/** Attacks by authorization servers and protected resources. README.md says how to add a row. */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

// These attackers are idle until a user signs in, and one program serves all of them: all cost little more than eight.
hostileSuite(GROUPS.signIn, { beside: 40 });
