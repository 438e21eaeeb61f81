/** What others see, as literals: change one on purpose, never by accident. */
import { expect, test } from "vitest";
import { CONNECTION_METHODS } from "../../src/protocol/api.ts";
import { ERROR_CODES } from "../../src/protocol/errors.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import { WEIGHTED } from "../../src/search/weighted.ts";

test("error codes", () => {
  expect(ERROR_CODES).toEqual([
    "cancelled",
    "deadline",
    "runtime_restarted",
    "runtime_stopped",
    "internal",
    "bad_config",
    "unknown_server",
    "server_removed",
    "unknown_tool",
    "tool_excluded",
    "server_not_trusted",
    "server_disabled",
    "spawn_failed",
    "connect_failed",
    "connect_timeout",
    "needs_auth",
    "server_died",
    "call_timeout",
    "call_rejected",
    "message_too_large",
  ]);
});

test("requests of main to the connection worker", () => {
  expect(CONNECTION_METHODS).toEqual([
    "startSession",
    "settleTools",
    "callTool",
    "reconnect",
    "answerConsent",
    "askAgain",
    "applyHeld",
    "setRegistered",
    "setEnabled",
    "readConfig",
    "writeConfig",
    "explainMissing",
    "stats",
    "turnEnded",
    "ping",
    "status",
    "log",
    "shutdown",
  ]);
});

test("limits that users and models meet", () => {
  expect(LIMITS).toMatchObject({
    toolNameChars: 64,
    searchResults: 5,
    searchWaitMs: 5_000,
    directWaitMs: 10_000,
    firstPlanWaitMs: 300,
    startupTimeoutMs: 30_000,
    requestTimeoutMs: 60_000,
    requestCapMs: 3_600_000,
    progressIntervalMs: 100,
    retryAfterFailureMs: 60_000,
    connectsAtATime: 10,
    idleTimeoutMs: 600_000,
    healthCheckMs: 30_000,
    healthAnswerMs: 10_000,
    refreshIntervalMs: 1_000,
    drainMs: 30_000,
    npxFreshMs: 86_400_000,
    listPages: 200,
    toolsPerServer: 10_000,
    listBytes: 33_554_432,
    messageBytes: 67_108_864,
    unaskedBytes: 16_777_216,
    unaskedDepth: 1_000,
    messageValues: 2_000_000,
    longMessagesAtATime: 4,
    serverRequestsOpen: 1_000,
    unsentReplyBytes: 8_388_608,
    serverRequestsInWindow: 10_000,
    serverRequestsWindowMs: 10_000,
    stderrTailBytes: 8_192,
    resultBytes: 51_200,
    resultLines: 2_000,
    imageChars: 4_718_592,
    imagePixels: 8_000,
    filesPerResult: 100,
    errorTextChars: 4_000,
    errorDataBytes: 4_096,
    serverLogLines: 100,
    serverLogChars: 65_536,
    serverLogWindowMs: 10_000,
    closeTermMs: 500,
    closeKillMs: 2_000,
    shutdownTermMs: 250,
    shutdownKillMs: 800,
    shutdownMs: 1_000,
    cacheEntryMs: 604_800_000,
    unusedMs: 2_592_000_000,
    heartbeatMs: 5_000,
    respawnMs: [100, 1_000, 5_000],
    respawnsAMinute: 5,
    workerHeapMebibytes: 1_024,
    logBytes: 5_242_880,
  });
});

test("search weights", () => {
  expect(WEIGHTED).toEqual({ part: 10, partSubstring: 5, descriptionWord: 4, fullNameOnly: 3 });
});
