import { stat } from "node:fs/promises";

/** False for anything else, for a link that leads nowhere, and for what cannot be looked at. Never rejects. */
export const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
