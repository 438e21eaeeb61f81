/** Owns: when a token is renewed, as a table over its life. */
import { expect, test } from "vitest";
import { isExpired, isFresh } from "../../../../../../workers/connection/auth/model/model.ts";

const NOW = 1_000_000_000;
const HOUR = 3_600_000;

test.each([
  ["no known end", {}, true],
  ["an hour's life, 61 s left", { obtainedAt: NOW + 61_000 - HOUR, expiresAt: NOW + 61_000 }, true],
  ["an hour's life, 60 s left", { obtainedAt: NOW + 60_000 - HOUR, expiresAt: NOW + 60_000 }, false],
  ["300 ms of life, 31 ms left", { obtainedAt: NOW - 269, expiresAt: NOW + 31 }, true],
  ["300 ms of life, 30 ms left", { obtainedAt: NOW - 270, expiresAt: NOW + 30 }, false],
  ["an unknown start, 61 s left", { expiresAt: NOW + 61_000 }, true],
  ["an unknown start, 60 s left", { expiresAt: NOW + 60_000 }, false],
  ["an end before its start", { obtainedAt: NOW, expiresAt: NOW - 1 }, false],
  ["over", { obtainedAt: NOW - HOUR, expiresAt: NOW }, false],
])("a token with %s -> fresh: %s", (_what, token, fresh) => {
  expect(isFresh(token, NOW)).toBe(fresh);
});

test.each([
  ["no known end", {}, false],
  ["an end in 1 ms", { expiresAt: NOW + 1 }, false],
  ["an end now", { expiresAt: NOW }, true],
])("a token with %s -> expired: %s", (_what, token, expired) => {
  expect(isExpired(token, NOW)).toBe(expired);
});
