# The command that the conformance suite runs for each scenario. It hands what the suite says to the process of the tests,
# which plays the client (driver.ts), and ends as the client ends. Bash, because a start of Node takes twenty times as long.
exec 3<> "/dev/tcp/127.0.0.1/$CONFORMANCE_CLIENT" || exit 1
printf '%s\n' "$1" "$MCP_CONFORMANCE_SCENARIO" "$MCP_CONFORMANCE_PROTOCOL_VERSION" "$MCP_CONFORMANCE_CONTEXT" >&3
# Without an answer the client has failed.
read -r code <&3 || exit 1
exit "$code"
