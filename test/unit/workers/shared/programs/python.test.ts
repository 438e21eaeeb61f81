import { expect, test } from "vitest";
import { searchesWorkingDirectory } from "../../../../../workers/shared/programs/launch.ts";

test.each([
  ["python -m mcp_server_git", true],
  ["/usr/bin/python3.12 -m mcp_server_git --flag", true],
  ["C:\\Python312\\python.exe -m server", true],
  ["py -3 -m server", true],
  ["pypy3 -u -W ignore -m server", true],
  ["python -um server", true],
  ["python -mserver", true],
  ["python -X dev -c pass", true],
  ["python -W -m server.py", false],
  ["python server.py -m x", false],
  ["python /opt/server.py", false],
  ["python -u server.py", false],
  ["python -Xm=1 server.py", false],
  ["python", false],
  ["uvx mcp-server-git", false],
  ["pythonista -m x", false],
  ["node -m x", false],
])("searchesWorkingDirectory: %s -> %s", (line, expected) => {
  const [program = "", ...args] = line.split(" ");
  expect(searchesWorkingDirectory(program, args)).toBe(expected);
});
