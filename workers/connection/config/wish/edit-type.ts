/** Makes the new text of a file from the old one; undefined: there is no file yet. Throws `bad_config` if it cannot. */
export type Edit = (text: string | undefined) => string;
