/**
 * Owns: nothing. Bare Pi gets this extension in place of a client, so that Pi's cost for any extension is on both sides
 * of a comparison.
 */
export default function empty() {}
