/** Modes of what the extension writes: only the user may read it (docs/security.md). */
export const PRIVATE_FILE = 0o600;
export const PRIVATE_FOLDER = 0o700;
