// One incident is one message: quiet times, reminders, ends; and the error rate over a sliding window.
import { describe, expect, test } from "bun:test";
import { ErrorShares } from "../../../../src/observe/alerts/error-share.ts";
import { Incidents, type NotificationRules } from "../../../../src/observe/alerts/incidents.ts";
import type { Signal } from "../../../../src/observe/alerts/notice.ts";
import type { CountedTraffic } from "../../../../src/observe/metrics/series-rows.ts";
import { type Alert, alertInput } from "../../../../src/model/alert.ts";
import { decode } from "../../../../src/model/decode.ts";
import { emptyConfiguration } from "../../../../src/store/first-configuration.ts";

const S = 1000;
const rules: NotificationRules = { quietMs: 300 * S, repeatMs: 3600 * S, accepts: () => true };

const signal = (state: "begun" | "over", more: Partial<Signal> = {}): Signal => ({
  event: "target_down",
  key: "target a",
  state,
  serviceId: "s",
  message: "Because.",
  object: { kind: "target", id: "a", name: "10.0.0.1:80" },
  title: state === "begun" ? "Down" : "Up",
  isAlwaysTold: false,
  validUntil: null,
  ...more,
});

/** The notifications at each of these seconds: `begun`, `over`, or `-` when only time passes. */
function told(
  steps: readonly (readonly [second: number, what: "begun" | "over" | "-"])[],
  own = rules,
) {
  const incidents = new Incidents();
  return steps.flatMap(([second, what]) => {
    const now = second * S;
    const notices = what === "-" ? incidents.due(own, now) : incidents.take(signal(what), own, now);
    return notices.map(({ event, title }) => `${second}: ${event} ${title}`);
  });
}

describe("an incident", () => {
  test.each([
    [
      "is told once",
      [
        [0, "begun"],
        [1, "begun"],
        [2, "-"],
        [3, "begun"],
      ],
      ["0: target_down Down"],
    ],
    [
      "is told to end once",
      [
        [0, "begun"],
        [5, "over"],
        [6, "over"],
        [7, "-"],
      ],
      ["0: target_down Down", "5: target_up Up"],
    ],
    ["that was never told to begin has no end", [[0, "over"]], []],
    [
      "that comes and goes is told when it began and ended first",
      [
        [0, "begun"],
        [5, "over"],
        [6, "begun"],
        [7, "over"],
        [8, "begun"],
        [9, "over"],
        [400, "-"],
      ],
      ["0: target_down Down", "5: target_up Up"],
    ],
    [
      "that has begun again and lasts is told once the quiet time is over",
      [
        [0, "begun"],
        [5, "over"],
        [6, "begun"],
        [299, "-"],
        [300, "-"],
        [301, "-"],
        [302, "over"],
      ],
      ["0: target_down Down", "5: target_up Up", "300: target_down Down", "302: target_up Up"],
    ],
    [
      "that lasts is told again, but not all the time",
      [
        [0, "begun"],
        [3599, "-"],
        [3600, "-"],
        [3601, "-"],
        [7200, "-"],
      ],
      ["0: target_down Down", "3600: target_down Still: Down", "7200: target_down Still: Down"],
    ],
    [
      "that begins long after is told at once",
      [
        [0, "begun"],
        [5, "over"],
        [301, "begun"],
      ],
      ["0: target_down Down", "5: target_up Up", "301: target_down Down"],
    ],
  ] as const)("%s", (_, steps, wanted) => {
    expect(told(steps as never)).toEqual(wanted as unknown as string[]);
  });

  test("reports how often it began since the last notification", () => {
    const incidents = new Incidents();
    for (const [second, state] of [
      [0, "begun"],
      [1, "over"],
      [2, "begun"],
      [3, "over"],
      [4, "begun"],
    ] as const)
      incidents.take(signal(state), rules, second * S);
    const [notice] = incidents.due(rules, 300 * S);
    expect(notice?.message).toBe("Because. It began 2 times since the last notification.");
    expect(notice?.since).toBe(new Date(4 * S).toISOString());
  });

  test("that gets worse is notified again at once, without reminders", () => {
    const incidents = new Incidents();
    const worse = signal("begun", { event: "certificate_expiring", isAlwaysTold: true });
    expect(incidents.take(worse, rules, 0)).toHaveLength(1);
    expect(incidents.take(worse, rules, S)).toHaveLength(1);
    expect(incidents.due(rules, 9000 * S)).toHaveLength(0);
  });

  test("that no alert accepts any more is dropped without a notification", () => {
    const incidents = new Incidents();
    incidents.take(signal("begun"), rules, 0);
    expect(incidents.due({ ...rules, accepts: () => false }, S)).toEqual([]);
    expect(incidents.open).toEqual([]);
  });

  test("without reminders is notified once, however long it lasts", () => {
    const own = { ...rules, repeatMs: 0 };
    expect(
      told(
        [
          [0, "begun"],
          [90_000, "-"],
        ],
        own,
      ),
    ).toHaveLength(1);
  });
});

const config = emptyConfiguration("2026-01-01T00:00:00.000Z");
const alert = (fields: object): Alert => ({
  ...decode(alertInput, { name: "x", type: "webhook", events: ["error_share"], ...fields }),
  id: "alert",
  created_at: "",
  updated_at: "",
});
const row = (ended: number, errors: number, id = "r", serviceId = "s") =>
  ({
    owner: { kind: "route", id, name: id, serviceId, serviceName: serviceId },
    traffic: {
      counters: { ended },
      codes: new Map([
        ["200", ended - errors],
        ["502", errors],
      ]),
    },
  }) as unknown as CountedTraffic;

describe("the error rate", () => {
  const threshold = { percent: 10, window_seconds: 60, min_requests: 10 };
  const everything = alert({ threshold });
  const states = (shares: ErrorShares, now: number, of = everything) =>
    shares.judge(of, config, now).map(({ key, state }) => `${key} ${state}`);
  const all = new Set(["total"]);

  test("counts the window only", () => {
    const shares = new ErrorShares();
    shares.count([row(1000, 1000)], all, 0);
    shares.count([row(1100, 1005)], all, 5 * S);
    expect(states(shares, 5 * S)).toEqual(["share total over"]);
    shares.count([row(1120, 1020)], all, 10 * S);
    expect(states(shares, 10 * S)).toEqual(["share total begun"]);
    expect(shares.judge(everything, config, 10 * S)[0]?.message).toStartWith("20 of 120 responses");
    shares.count([row(1400, 1020)], all, 30 * S);
    expect(states(shares, 30 * S)).toEqual(["share total over"]);
    expect(shares.judge(everything, config, 200 * S)[0]?.message).toStartWith("0 of 0 responses");
  });

  test("of too few requests neither begins nor ends an incident", () => {
    const shares = new ErrorShares();
    shares.count([], all, 0);
    shares.count([row(9, 9)], all, S);
    expect(states(shares, S)).toEqual([]);
    shares.count([row(10, 10)], all, 2 * S);
    expect(states(shares, 2 * S)).toEqual(["share total begun"]);
  });

  test("is kept per service and route, and counters that restart count from zero", () => {
    const shares = new ErrorShares();
    const of = alert({ threshold, service_ids: ["s"], route_ids: ["b"] });
    const subjects = new Set(["service s", "route b"]);
    shares.count([row(500, 0, "a"), row(500, 0, "b", "t")], subjects, 0);
    shares.count([row(520, 20, "a"), row(20, 0, "b", "t")], subjects, S);
    expect(states(shares, S, of)).toEqual(["share service s begun", "share route b over"]);
  });
});
