// A gateway whose clock jumps, or passes the hour at which summer time begins or ends; libfaketime sets the clock.
import { afterEach, describe, expect } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../support/cleanups.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const LIBRARY = `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/faketime/libfaketimeMT.so.1`;
const HOUR = 3600;
const DAY = 24 * HOUR;
const PASSWORD = "a long password of theirs";

const cleanups = cleanupsOf(afterEach);

/** A gateway with a site, and its clock. */
async function scene(env: Record<string, string> = {}, startAt = 0) {
  const directory = mkdtempSync(join(tmpdir(), "sluice-clock-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const hand = join(directory, "offset");
  /** Seconds from the true time. */
  const turn = (seconds: number) =>
    writeFileSync(hand, `${seconds < 0 ? "" : "+"}${Math.round(seconds)}\n`);
  turn(startAt);
  const gateway = await startGateway({
    workers: 2,
    env: {
      ...env,
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: hand,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
  });
  cleanups.push(() => gateway.stop());
  const held: (() => void)[] = [];
  const origin = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      if (request.url.endsWith("/hold"))
        await new Promise<void>((resolve) => held.push(() => resolve()));
      return new Response("here");
    },
  });
  cleanups.push(() => origin.stop(true));
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  const page = async (path = "/") =>
    await (await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`)).text();
  const pages = async (count: number) => {
    for (let i = 0; i < count; i++) expect(await page()).toBe("here");
  };
  return { gateway, turn, page, pages, held };
}

const offsetOf = async (gateway: Gateway) => {
  const { at } = await gateway.ok("GET", "/api/v1/stats");
  return (Date.parse(at) - Date.now()) / 1000;
};

const isAscending = (texts: readonly string[]) =>
  texts.every((text, i) => i === 0 || text >= (texts[i - 1] ?? ""));

describe("a clock", () => {
  const { test } = needs({
    lacks: existsSync(LIBRARY) ? null : "libfaketime (Debian package faketime)",
  });

  test("that jumps back and forth aborts no request, counts none twice and keeps the order of changes", async () => {
    const { gateway, turn, page, pages, held } = await scene();
    const waiting = page("/hold");
    await eventually(() => held.length === 1);
    const changes: number[] = [];
    const change = async () => {
      const body = { description: `change ${changes.length}` };
      await gateway.ok("PATCH", "/api/v1/services/site", body);
      changes.push((await gateway.ok("GET", "/api/v1/admin/status")).revision);
    };
    for (const offset of [0, -2 * HOUR, 0, 5 * 60, 0]) {
      turn(offset);
      expect(Math.abs((await offsetOf(gateway)) - offset)).toBeLessThan(60);
      await pages(20);
      await change();
      // Each second the gateway runs what is due: timeouts, health checks, rollups.
      await eventually(async () => (await gateway.api("GET", "/readyz")).ok);
    }
    held.shift()?.();
    expect(await waiting).toBe("here");
    expect(changes).toEqual(changes.map((_, i) => (changes[0] ?? 0) + i));
    turn(10 * 60);
    const total = async () =>
      (await gateway.ok("GET", "/api/v1/stats?range=24h")).history.total.requests;
    await eventually(async () => (await total()) === 101);
    // In the order of the changes, independent of the clock.
    const audit: { revision: number }[] = await gateway.ok("GET", "/api/v1/audit?newest=100");
    const revisions: { number: number }[] = await gateway.ok("GET", "/api/v1/revisions");
    const [first = 0] = changes;
    const told = audit.map(({ revision }) => revision).filter((revision) => revision >= first);
    expect(told).toEqual(changes.toReversed());
    const stored = revisions.map(({ number }) => number).filter((number) => number >= first);
    expect(stored).toEqual(changes);
    expect((await gateway.ok("GET", "/api/v1/admin/status")).workers_ready).toBe(2);
    const bad = gateway.log.filter(
      ({ level, message }) => level === "error" || message === "worker stopped",
    );
    expect(bad).toEqual([]);
  });

  test("that jumps ahead ends expired sessions, but neither tokens without expiry nor traffic", async () => {
    const { gateway, turn, pages } = await scene();
    const email = "root@example.org";
    await gateway.ok("POST", "/api/v1/users", {
      email,
      name: "Root",
      role: "admin",
      password: PASSWORD,
    });
    const signedIn = await gateway.api("POST", "/api/v1/auth/login", { email, password: PASSWORD });
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
    const made = await gateway.api("POST", "/api/v1/admin/token", undefined, { cookie });
    const { token }: { token: string } = await made.json();
    const asks = (headers: Record<string, string>) =>
      gateway.api("PATCH", "/api/v1/services/site", { description: "x" }, headers);
    const byToken = { authorization: `Bearer ${token}` };
    expect((await asks({ cookie })).status).toBe(200);
    turn(6 * DAY);
    expect([(await asks({ cookie })).status, (await asks(byToken)).status]).toEqual([200, 200]);
    turn(8 * DAY);
    expect([(await asks({ cookie })).status, (await asks(byToken)).status]).toEqual([401, 200]);
    await pages(20);
    turn(0);
    // Back again: sign-in works and traffic flows, with or without the old session.
    const again = await gateway.api("POST", "/api/v1/auth/login", { email, password: PASSWORD });
    expect([again.status, (await asks(byToken)).status]).toEqual([200, 200]);
    await pages(20);
  });

  test.each([
    { what: "ends", at: "2026-11-01T06:00:00Z" },
    { what: "begins", at: "2027-03-14T07:00:00Z" },
  ])("works as usual at the hour at which summer time $what", async ({ at }) => {
    const start = (Date.parse(at) - Date.now()) / 1000 - 4;
    const { gateway, pages } = await scene({ TZ: "America/New_York" }, start);
    const created: string[] = [];
    let sent = 0;
    const step = async () => {
      await pages(5);
      sent += 5;
      const { created_at } = await gateway.ok("POST", "/api/v1/services", {
        name: `s${created.length}`,
      });
      created.push(created_at);
      return created_at;
    };
    await eventually(async () => (await step()) > at);
    await step();
    expect(isAscending(created)).toBe(true);
    for (const time of created)
      expect(Math.abs(Date.parse(time) - Date.parse(at))).toBeLessThan(60_000);
    const { history } = await gateway.ok("GET", "/api/v1/stats");
    expect(history.total.requests).toBe(sent);
    const points: string[] = history.points.map((point: { at: string }) => point.at);
    expect(new Set(points).size).toBe(points.length);
    expect(isAscending(points)).toBe(true);
    expect(isAscending(gateway.log.map(({ time }) => time))).toBe(true);
  });
});
