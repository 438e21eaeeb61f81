/** What the doctor may cost: its time, and the text that servers and files can fill. In docs/security.md. */

/** All checks together. What is not done by then is reported as unfinished. */
export const CHECKS_MS = 12_000;
/** One look at an address: its name, its port, its certificate. Names are looked up few at a time, as the system does. */
export const PROBE_MS = 3_000;
export const PROBES_AT_A_TIME = 50;
export const LOOKUPS_AT_A_TIME = 2;
/** Addresses that are looked at. */
export const PROBES = 200;
/** The doctor waits this long for a server that it was asked to connect. */
export const CONNECT_MS = 11_000;
/** Tools of one server that are declared from the start may cost so many tokens before the doctor warns. */
export const DIRECT_TOKENS = 5_000;
/** Files of sign-ins whose modes are looked at. */
export const FILES_LOOKED_AT = 500;
export const FINDINGS = 200;
export const SERVERS_SHOWN = 200;
export const TITLE_CHARS = 300;
export const DETAIL_CHARS = 1_000;
export const REMEDY_CHARS = 400;
