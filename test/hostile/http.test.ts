/** Attacks by servers over HTTP; README.md says how a row is added. */
import { HTTP } from "./rows/http.ts";
import { hostileSuite } from "./support/suite.ts";

hostileSuite(HTTP);
