/** Owns: how long a list of tools counts, by what the server says of its pages. */
import { describe, expect, test } from "vitest";
import { FRESH_LEAST_MS, FRESH_MOST_MS } from "../../../../../../workers/connection/mcp/modern/limits.ts";
import {
  afterPage,
  type Freshness,
  isStale,
} from "../../../../../../workers/connection/mcp/modern/server.ts";

const NOW = 1_800_000_000_000;
const REMEMBERED: Freshness = { until: NOW + 5_000, listedAt: undefined };

describe("afterPage", () => {
  test.each<[string, unknown, number]>([
    ["a time", 90_000, 90_000],
    ["no time", undefined, 0],
    ["zero", 0, 0],
    ["a negative time", -5, 0],
    ["no number", "90000", 0],
    ["no number at all", Number.NaN, 0],
    ["for ever", Number.POSITIVE_INFINITY, FRESH_MOST_MS],
    ["longer than a day", FRESH_MOST_MS + 1, FRESH_MOST_MS],
  ])("the first page says %s -> it counts from the request, bounded", (_what, ttlMs, freshMs) => {
    const after = afterPage(REMEMBERED, { isFirst: true, ttlMs, sentAt: NOW });
    expect(after).toEqual({ until: NOW + freshMs, listedAt: NOW });
  });

  test.each<[string, unknown, number]>([
    ["less", 10_000, NOW + 11_000],
    ["more", 500_000, NOW + 90_000],
    ["nothing", undefined, NOW + 1_000],
  ])("a later page says %s -> the shortest time of all pages counts", (_what, ttlMs, until) => {
    const first = { until: NOW + 90_000, listedAt: NOW };
    expect(afterPage(first, { isFirst: false, ttlMs, sentAt: NOW + 1_000 })).toEqual({
      until,
      listedAt: NOW + 1_000,
    });
  });
});

describe("isStale", () => {
  test.each<[string, Freshness, number, boolean]>([
    ["remembered, before its time", REMEMBERED, NOW + 4_999, false],
    ["remembered, at its time", REMEMBERED, NOW + 5_000, true],
    ["remembered without a time", { until: 0, listedAt: undefined }, NOW, true],
    ["listed without a time", { until: NOW, listedAt: NOW }, NOW + FRESH_MOST_MS, false],
    [
      "listed with a short time, before the least",
      { until: NOW + 10, listedAt: NOW },
      NOW + FRESH_LEAST_MS - 1,
      false,
    ],
    [
      "listed with a short time, at the least",
      { until: NOW + 10, listedAt: NOW },
      NOW + FRESH_LEAST_MS,
      true,
    ],
    ["listed, before its time", { until: NOW + 90_000, listedAt: NOW }, NOW + 89_999, false],
    ["listed, at its time", { until: NOW + 90_000, listedAt: NOW }, NOW + 90_000, true],
  ])("%s -> stale: %#", (_what, freshness, now, expected) => {
    expect(isStale(freshness, now)).toBe(expected);
  });
});
