/** How this client names itself to servers. */
import manifest from "../../../package.json" with { type: "json" };

export const CLIENT_INFO = { name: manifest.name, version: manifest.version };
