/** The limits of what a server may ask the user. docs/limits.md lists them. */

/** One message, which a person reads before answering: a screen of text. */
export const MESSAGE_CHARS = 2_000;
export const MESSAGE_LINES = 40;
export const TITLE_CHARS = 200;
export const DESCRIPTION_CHARS = 500;
export const CHOICE_CHARS = 100;
/** Fields of one form: each is a dialog of its own. */
export const FIELDS = 50;
/** Choices of one field. The countries of the world are 250. */
export const CHOICES = 500;
/** Default text of a field. The user agrees to it, so it has to be readable. */
export const DEFAULT_CHARS = 1_000;
/** An address. Longer ones are refused by servers and browsers as well. */
export const URL_CHARS = 8 * 1024;
/** Questions of one server that wait behind the open one. */
export const WAITING = 4;
/** A server that the user has declined so often in a turn of the model is declined unseen until the turn ends. */
export const DECLINES = 3;
/** A question without an answer ends as cancelled after this time. */
export const ASK_MS = 10 * 60 * 1_000;
/** Addresses of one call that the server refuses until the user has opened them (-32042). */
export const URLS_OF_CALL = 3;
/** Characters of all texts of a prompt for the model. A longer one is refused: the person could not read it. */
export const PROMPT_CHARS = 50_000;
export const PROMPT_MESSAGES = 100;
/** The most tokens that a server gets for one yes of the person, and the most characters of them. */
export const REPLY_TOKENS = 4_096;
export const REPLY_CHARS = 100_000;
/** Texts at which the answer of the model ends. */
export const STOPS = 16;
export const STOP_CHARS = 200;
