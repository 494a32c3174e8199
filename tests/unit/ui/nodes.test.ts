// Figures of nodes in words, and the headers of a reply that name them, without a browser.
import { describe, expect, test } from "bun:test";
import { liveNodesOf } from "../../../src/ui/api/connection.ts";
import { clockText, lagText, seenText } from "../../../src/ui/pages/fleet/node-text.ts";

test.each([
  { served: 7, head: 7, text: "up to date" },
  { served: 8, head: 7, text: "up to date" },
  { served: 6, head: 7, text: "1 entry behind" },
  { served: 0, head: 7, text: "7 entries behind" },
])("served $served of $head: $text", ({ served, head, text }) => {
  expect(lagText(served, head)).toBe(text);
});

test.each([
  { ms: 0, text: "just now" },
  { ms: 12_400, text: "12 s ago" },
  { ms: 180_000, text: "3 min ago" },
  { ms: 3 * 3_600_000, text: "3 h ago" },
  { ms: 72 * 3_600_000, text: "3 days ago" },
])("a heartbeat $ms ms ago was $text", ({ ms, text }) => {
  expect(seenText(ms)).toBe(text);
});

test.each([
  { ms: -99, text: "in sync" },
  { ms: 1500, text: "1.5 s ahead" },
  { ms: -300_000, text: "5 min behind" },
])("a clock with an offset of $ms ms is $text", ({ ms, text }) => {
  expect(clockText(ms)).toBe(text);
});

describe("the headers of a reply", () => {
  test("name the nodes that do not serve the change", () => {
    const headers = new Headers({
      "sluice-nodes": "1/3",
      "sluice-nodes-missing": "n_2;cut_off, n3;away",
    });
    expect(liveNodesOf(headers)).toEqual({
      live: "1",
      all: "3",
      missing: "n_2 (cut off), n3 (away)",
    });
  });

  test("are absent without a fleet", () => {
    expect(liveNodesOf(new Headers())).toBeNull();
  });
});
