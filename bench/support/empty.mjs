/**
 * Owns: nothing. The extension that bare Pi gets in place of ours, so that what Pi spends on any extension
 * is on both sides of a comparison.
 */
export default function empty() {}
