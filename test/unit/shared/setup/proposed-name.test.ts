/** Owns: the name that `/mcp add` proposes for a command or a URL. */
import { expect, test } from "vitest";
import { proposedName } from "../../../../src/shared/setup.ts";

test.each<[string, string]>([
  ["npx -y @modelcontextprotocol/server-filesystem .", "filesystem"],
  ["npx -y @playwright/mcp@latest", "playwright"],
  ["npx chrome-devtools-mcp@latest", "chrome-devtools"],
  ["uvx mcp-server-git", "git"],
  ["docker run -i --rm ghcr.io/github/github-mcp-server", "github"],
  ["node /home/me/notes-server/dist/index.js", "notes"],
  ["./bin/my-tool", "my-tool"],
  ["https://mcp.notion.com/mcp", "notion"],
  ["https://api.githubcopilot.com/mcp/", "githubcopilot"],
  ["https://user:pw@docs.example.co/mcp?key=secret", "example"],
  ["http://127.0.0.1:3000/mcp", "server"],
  ["http://localhost:3000/mcp", "localhost"],
  ["node", "server"],
  ["", "server"],
  [`npx ${"a".repeat(100)}`, "a".repeat(32)],
])("%s -> %s", (target, name) => {
  expect(proposedName(target.split(" "))).toBe(name);
});
