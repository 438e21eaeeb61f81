/** What the doctor may cost: its time, and the text that servers and files can fill. In docs/security.md. */

/** All checks together. What is not done by then is reported as unfinished. */
export const CHECKS_MS = 12_000;
export const FINDINGS = 200;
export const SERVERS_SHOWN = 200;
export const TITLE_CHARS = 300;
export const DETAIL_CHARS = 1_000;
export const REMEDY_CHARS = 400;
