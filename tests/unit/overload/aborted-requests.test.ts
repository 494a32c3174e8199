// Which clients are rejected for aborting requests, over minutes and hours of a simulated clock.
import { expect, test } from "bun:test";
import {
  AbortedRequests,
  type AbortSource,
  type AbortStage,
} from "../../../src/dataplane/aborted-requests.ts";

const PER_CONNECTION = 300;
const PER_ADDRESS = 2000;

function scene(perConnection = PER_CONNECTION, perAddress = PER_ADDRESS) {
  let now = 0;
  const begun: string[] = [];
  const refused: AbortStage[] = [];
  const guard = new AbortedRequests(
    {
      aborted() {},
      refused: (stage) => refused.push(stage),
      began: (address, stage) => begun.push(`${stage} ${address}`),
    },
    () => now,
  );
  guard.setLimits({
    max_aborted_per_connection: perConnection,
    max_aborted_per_address: perAddress,
  });
  const times = (count: number, run: () => void) => {
    for (let i = 0; i < count; i++) run();
  };
  return {
    guard,
    begun,
    refused,
    pass(seconds: number) {
      now += seconds * 1000;
      guard.sweep();
    },
    abort: (source: AbortSource, count = 1) => times(count, () => guard.note(source)),
    complete: (source: AbortSource, count = 1) =>
      times(count, () => guard.ended(ended(source), 200)),
    whyNot: (source: AbortSource) => guard.refusal(source)?.reason ?? null,
  };
}

const from = (address: string, peerPort: number): AbortSource => ({
  clientAddress: () => address,
  peerPort,
});

/** A request that has ended. */
const ended = (source: AbortSource, { attempts = 1, aborted = false } = {}) => ({
  ...source,
  attempts,
  stream: { signal: { aborted } },
});

const map = from("192.0.2.1", 40_000);

test("a map that cancels 16 tiles in a second for an hour is never rejected, though it completes none", () => {
  const { abort, pass, whyNot } = scene();
  for (let second = 0; second < 3600; second++) {
    abort(map, 16);
    expect(whyNot(map)).toBeNull();
    pass(1);
  }
});

test("a map that completes as many tiles as it cancels is never rejected, however fast it is", () => {
  const { abort, complete, whyNot } = scene(PER_CONNECTION, 0);
  for (let round = 0; round < 1000; round++) {
    abort(map, 100);
    complete(map, 100);
    expect(whyNot(map)).toBeNull();
  }
});

test("without a token a connection is rejected, others of its address and its port are not", () => {
  const { abort, whyNot, begun, refused } = scene();
  abort(map, PER_CONNECTION - 1);
  expect(whyNot(map)).toBeNull();
  abort(map);
  expect(whyNot(map)).toBe("aborts.connection");
  expect(whyNot(from("192.0.2.1", 40_001))).toBeNull();
  expect(whyNot(from("192.0.2.2", 40_000))).toBeNull();
  expect(whyNot(map)).toBe("aborts.connection");
  expect(begun).toEqual(["connection 192.0.2.1"]);
  expect(refused).toEqual(["connection", "connection"]);
});

test("tokens come back in ten seconds, after paying for requests in flight when the last one was used", () => {
  const { abort, pass, whyNot } = scene(10);
  abort(map, 15);
  pass(5);
  expect(whyNot(map)).toBe("aborts.connection");
  pass(1.5);
  expect(whyNot(map)).toBeNull();
  abort(map, 1000);
  pass(10.9);
  expect(whyNot(map)).toBe("aborts.connection");
  pass(0.2);
  expect(whyNot(map)).toBeNull();
});

test("only a target's response to a client that did not abort returns a token", () => {
  const { guard, abort, complete, whyNot } = scene(1);
  abort(map);
  guard.ended(ended(map, { attempts: 0 }), 429);
  guard.ended(ended(map), 499);
  guard.ended(ended(map, { aborted: true }), 200);
  expect(whyNot(map)).toBe("aborts.connection");
  complete(map, 2);
  expect(whyNot(map)).toBeNull();
  complete(map, 50);
  abort(map);
  expect(whyNot(map)).toBe("aborts.connection");
});

test("an address that aborts more than its limit over many connections is rejected for ten seconds, others are not", () => {
  const { abort, pass, whyNot, begun } = scene();
  for (let port = 1; port <= PER_ADDRESS; port++) abort(from("192.0.2.1", port));
  expect(whyNot(from("192.0.2.1", 9000))).toBeNull();
  abort(from("192.0.2.1", 5000));
  expect(whyNot(from("192.0.2.1", 9000))).toBe("aborts.address");
  expect(whyNot(from("192.0.2.2", 9000))).toBeNull();
  expect(begun).toEqual(["address 192.0.2.1"]);
  pass(9.9);
  expect(whyNot(from("192.0.2.1", 9000))).toBe("aborts.address");
  pass(0.1);
  expect(whyNot(from("192.0.2.1", 9000))).toBeNull();
});

test("a limit of 0 rejects no client, and ends rejections", () => {
  const { guard, abort, whyNot } = scene(1, 1);
  abort(map, 5);
  expect(whyNot(map)).not.toBeNull();
  guard.setLimits({ max_aborted_per_connection: 0, max_aborted_per_address: 0 });
  expect(whyNot(map)).toBeNull();
  abort(map, 5000);
  expect(whyNot(map)).toBeNull();
  expect(guard.isWatching).toBeFalse();
});

test("no state exists before the first abort, and none remains afterwards", () => {
  const { guard, abort, pass } = scene();
  expect(guard.isWatching).toBeFalse();
  abort(map);
  expect(guard.isWatching).toBeTrue();
  pass(1);
  expect(guard.isWatching).toBeFalse();
});

test("beyond the tracked connections only the address is counted", () => {
  const { abort, whyNot } = scene(1, 15_000);
  for (let port = 1; port <= 10_000; port++) abort(from("192.0.2.1", port));
  const late = from("192.0.2.1", 20_000);
  abort(late, 5000);
  expect(whyNot(late)).toBeNull();
  abort(late);
  expect(whyNot(late)).toBe("aborts.address");
});
