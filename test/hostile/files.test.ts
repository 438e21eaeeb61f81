/**
 * Attacks by configuration files of a cloned repository that are too big or are not regular files. README.md says how
 * to add a row.
 */
import { GROUPS } from "./rows/groups.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(GROUPS.files);
