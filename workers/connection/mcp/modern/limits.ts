/** The limits of what a server of the modern era may make this client do. docs/limits.md lists them. */

/** Rounds of questions for one request. */
export const ROUNDS = 10;
/** Pauses before a request is repeated whose server asks for nothing but patience: each is twice as long, up to the longest. */
export const PATIENCE_MS = 250;
export const PATIENCE_MOST_MS = 2_000;
/** Questions of one round, or of one answer about a task. */
export const ROUND_QUESTIONS = 20;
/** A state that the client sends back with the repeated request. */
export const STATE_CHARS = 1024 * 1024;
/** Parameters of one tool that are mirrored into headers, and the bytes of all their values. */
export const MIRRORED_PARAMETERS = 50;
export const MIRRORED_BYTES = 12 * 1024;
/** The id of a task, which is sent back in a header. */
export const TASK_ID_CHARS = 1_000;
/** Pauses between two looks at a task, whatever the server names. */
export const POLL_LEAST_MS = 1_000;
export const POLL_MOST_MS = 30_000;
/** Looks at a task in a row that get no answer. */
export const FAILED_POLLS = 10;
/** A stream of changes that ends is opened again after this time, which doubles up to the longest. */
export const LISTEN_AGAIN_MS = 1_000;
export const LISTEN_AGAIN_MOST_MS = 5 * 60_000;
/** How long a list may count as fresh, whatever the server says; and the least time between two lists for that reason. */
export const FRESH_MOST_MS = 24 * 60 * 60 * 1_000;
export const FRESH_LEAST_MS = 60_000;
