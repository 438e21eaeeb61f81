/** Limits on what a person types at a prompt. */

/** One line that is typed or pasted: an address of a browser, with what an authorization server may add to it. */
export const LINE_CHARS = 16 * 1024;
