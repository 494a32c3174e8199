// Access over two nodes with one log: a code that both get in the same turn, and sessions that end on both.
import { describe, expect, test } from "bun:test";
import type { Staleness } from "../../../src/control/fleet-view.ts";
import type { Settings } from "../../../src/model/settings.ts";
import { base32 } from "oslo/encoding";
import { CutOff } from "../../../src/control/cut-off.ts";
import { SecondFactors } from "../../../src/auth/totp.ts";
import { Sessions } from "../../../src/auth/sessions.ts";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { createLog } from "../../../src/log.ts";
import { SessionTable } from "../../../src/store/sessions.ts";
import { TotpTable } from "../../../src/store/totp.ts";
import { userOf } from "../auth/fixture.ts";
import { type TestNode, twoNodes } from "./node.ts";

const NOW = Date.parse("2026-03-01T12:00:15Z");
const STEP_MS = 30_000;
const anna = userOf("anna", "viewer");
const log = createLog({ level: "error", format: "json", sink: () => {} });
const box = new SecretBox(new Uint8Array(32));

interface CodePeer {
  readonly changes: TestNode["changes"];
  readonly factors: SecondFactors;
}

interface SessionPeer {
  readonly changes: TestNode["changes"];
  readonly sessions: Sessions;
}

test("a code that two nodes get in the same turn is right on one of them", async () => {
  using fleet = twoNodes();
  const [first, second] = fleet.nodes.map(({ store, changes }) => ({
    changes,
    factors: new SecondFactors({
      store: store.with((context) => new TotpTable(context)),
      box,
      changes,
    }),
  })) as [CodePeer, CodePeer];
  const { secret } = await first.changes.record(() => first.factors.begin(anna));
  const code = (time: number) => hotp(base32.decode(secret), stepAt(time));
  const current = await first.factors.currentCodes(anna.id, NOW);
  await first.changes.record(() => first.factors.confirm(anna.id, code(NOW), current));
  await second.changes.follow();
  for (let round = 1; round <= 20; round++) {
    const now = NOW + round * STEP_MS;
    const results = await Promise.all(
      [first, second].map(async ({ changes, factors }) => {
        const codes = await factors.currentCodes(anna.id, now);
        return await changes.record(() => factors.verifySecondFactor(anna.id, code(now), codes));
      }),
    );
    expect(results.toSorted()).toEqual([false, true]);
  }
});

test("expired sessions are recorded once, though each node finds them", async () => {
  using fleet = twoNodes();
  const clock = { time: NOW, now: () => clock.time };
  const [first, second] = fleet.nodes.map(({ store, changes }) => ({
    changes,
    sessions: new Sessions({
      store: store.with((context) => new SessionTable(context)),
      changes,
      clock,
      log,
    }),
  })) as [SessionPeer, SessionPeer];
  const signIn = { method: "password", address: "", userAgent: "", isSecure: false } as const;
  await first.changes.record(() => first.sessions.create(anna.id, signIn));
  await second.changes.follow();
  expect(second.sessions.list()).toHaveLength(1);
  clock.time += 8 * 86_400_000;
  for (const { sessions } of [first, second]) sessions.prune();
  for (const { sessions } of [first, second]) await sessions.settled();
  expect(fleet.source.entries).toHaveLength(2);
  for (const { store } of fleet.nodes)
    expect(store.with((context) => new SessionTable(context)).load()).toEqual([]);
});

test("sessions are trusted for a time after the database went away, and without a fleet for ever", () => {
  const state = {
    ...{ since: null as number | null, now: 0 },
    ...{ max_stale_sessions: 1000, max_stale: 0, unready_after: 60_000 },
  };
  const settings = () => state;
  const fleet = {
    staleness: () => ({ cutOffSince: state.since, behindSince: null, stop: null }),
  };
  const cutOff = new CutOff({ fleet, settings, now: () => state.now });
  expect([cutOff.sessionProblem(), cutOff.hasTurned()]).toEqual([null, false]);
  state.since = 0;
  state.now = 1000;
  expect([cutOff.sessionProblem(), cutOff.hasTurned()]).toEqual([null, false]);
  state.now = 1001;
  expect(cutOff.sessionProblem()).toContain("cut off");
  expect(cutOff.readyProblem()).toBeNull();
  expect([cutOff.hasTurned(), cutOff.hasTurned()]).toEqual([true, false]);
  state.max_stale = 1000;
  expect(cutOff.readyProblem()).toContain("fleet.max_stale");
  state.max_stale_sessions = 0;
  expect([cutOff.sessionProblem(), cutOff.hasTurned()]).toEqual([null, true]);
  state.max_stale_sessions = 1000;
  state.since = null;
  expect(cutOff.sessionProblem()).toBeNull();
  expect(new CutOff({ fleet: null, settings, now: () => 1e12 }).sessionProblem()).toBeNull();
});

describe("a node stops to be ready", () => {
  /** What /readyz says at a time; `stale`: what keeps the node from serving the last change, since time 0. */
  const readyAt = (
    now: number,
    stale: Partial<Staleness>,
    given: Partial<Settings["fleet"]> = {},
  ): string => {
    const none: Staleness = { cutOffSince: null, behindSince: null, stop: null };
    const fleet = { staleness: () => ({ ...none, ...stale }) };
    const settings = () => ({
      ...{ max_stale_sessions: 0, max_stale: 0, unready_after: 60_000 },
      ...given,
    });
    return new CutOff({ fleet, settings, now: () => now }).readyProblem() ?? "ready";
  };

  test.each(["refused", "outdated", "diverged"] as const)(
    "while it is %s, after a minute, with the reason, also without max_stale",
    (state) => {
      const stale = { stop: { state, since: 0 } };
      expect(readyAt(60_000, stale)).toBe("ready");
      expect(readyAt(60_001, stale)).toStartWith(`${state}: `);
      // Being cut off as well does not make it ready.
      expect(readyAt(60_001, { ...stale, cutOffSince: 60_000 })).toStartWith(`${state}: `);
      expect(readyAt(2001, stale, { unready_after: 2000 })).toStartWith(`${state}: `);
      expect(readyAt(1e9, stale, { unready_after: 0 })).toBe("ready");
    },
  );

  test.each(["cutOffSince", "behindSince"] as const)("behind by %s, after max_stale", (since) => {
    const stale = { [since]: 0 };
    expect(readyAt(1e9, stale)).toBe("ready");
    expect(readyAt(5000, stale, { max_stale: 5000 })).toBe("ready");
    expect(readyAt(5001, stale, { max_stale: 5000 })).toContain("fleet.max_stale");
  });
});

test("a caller who lost access on another node records nothing, though the request came before", async () => {
  using fleet = twoNodes();
  const [first, second] = fleet.nodes;
  const by = { actor: "anna", method: "token", address: "10.0.0.1", sessionId: null } as const;
  // As the end of a token on the first node.
  second.changes.onFact((fact) => {
    if (fact.kind === "admin_token") second.changes.refuseUnless((actor) => actor !== by);
  });
  const token = { token_hash: "a".repeat(64), created_at: "2026-03-01T12:00:00.000Z" };
  const recordOn = ({ changes }: TestNode, token_hash: string) =>
    changes.record(
      () => ({
        value: null,
        facts: [{ kind: "admin_token", token: { ...token, token_hash } }],
      }),
      by,
    );
  await recordOn(first, "a".repeat(64));
  // It finds out at the append, because another entry has its place.
  expect(recordOn(second, "b".repeat(64))).rejects.toMatchObject({ status: 401 });
  await recordOn(second, "b".repeat(64)).catch(() => undefined);
  expect(fleet.source.entries).toHaveLength(1);
});
