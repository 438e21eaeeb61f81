/** Limits on the files that the command itself reads. */

/** Pi's file of trusted folders: room for 100,000 of them. */
export const TRUST_FILE_BYTES = 16 * 1024 * 1024;
/** A file that an argument of a call names, and what a pipe brings as arguments. */
export const ARGUMENT_BYTES = 16 * 1024 * 1024;
