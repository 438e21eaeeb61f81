// The command that the conformance suite runs for each scenario. It hands what the suite says to the process of the tests,
// which plays the client (driver.ts), and ends as the client ends: a packed worker starts in a tenth of the time there.
import { connect } from "node:net";

const { env, argv } = process;
const asked = {
  url: argv.at(-1),
  scenario: env.MCP_CONFORMANCE_SCENARIO ?? "",
  revision: env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "",
  context: env.MCP_CONFORMANCE_CONTEXT ?? "{}",
};
/** Without an answer the client has failed. */
process.exitCode = 1;
const socket = connect(Number(env.CONFORMANCE_CLIENT), "127.0.0.1", () =>
  socket.write(`${JSON.stringify(asked)}\n`),
);
let answer = "";
socket.setEncoding("utf8").on("data", (text) => {
  answer += text;
});
socket.on("end", () => {
  const { code, said } = JSON.parse(answer);
  process.stderr.write(said);
  process.exitCode = code;
});
