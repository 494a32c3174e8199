// The path that a route was chosen by must be the one that every target understands: all known disguises, against several kinds of target.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type LenientOrigin, startLenientOrigin } from "../../support/lenient-origin.ts";
import { disguises, isUnder, mergedSlashes, readings } from "../../support/path-disguises.ts";
import { exchange } from "../../support/raw-exchange.ts";

let origin: LenientOrigin;
let gateway: RunningDataPlane;
beforeAll(async () => {
  origin = startLenientOrigin();
  gateway = await startDataPlane({
    services: [{ name: "s", targets: [{ port: origin.port }] }],
    routes: [
      { name: "admin", service_id: "s", paths: ["/admin"] },
      { name: "public", service_id: "s", paths: ["/public"] },
      { name: "strip", service_id: "s", paths: ["/api"], strip_path: true },
      { name: "moved", service_id: "s", paths: ["/old"], prefix_rewrite: "/tenant" },
      { name: "rest", service_id: "s" },
    ],
    settings: { debug_headers: true },
  });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

interface Seen {
  readonly status: number;
  /** Route that took it. */
  readonly route: string | null;
  /** What reached the origin. */
  readonly target: string | null;
}

async function ask(target: string): Promise<Seen> {
  origin.forget();
  const { answers } = await exchange(`GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`, {
    port: gateway.port,
  });
  return {
    status: answers[0]?.status ?? 0,
    route: answers[0]?.header("x-sluice-route") ?? null,
    target: origin.executed[0]?.target ?? null,
  };
}

describe("a target that any server could read as /admin matches the route of /admin, or is refused", () => {
  test.each(disguises)("%s (%s)", async (target) => {
    const seen = await ask(target);
    expect([200, 400, 505]).toContain(seen.status);
    if (seen.status !== 200) {
      expect(seen.target).toBeNull();
      return;
    }
    const understood = readings(seen.target!);
    // The stripped route gives its targets another tree, in which /admin is theirs.
    if (seen.route !== "strip") {
      if (understood.some((path) => isUnder(path, "/admin"))) expect(seen.route).toBe("admin");
      if (seen.route === "admin")
        expect(understood.some((path) => isUnder(path, "/admin"))).toBe(true);
      if (seen.route === "public")
        for (const path of understood) expect(path).toMatch(/^\/+public/);
    }
    // No server can leave the tree by reading the path again: no reading has fewer segments than dots would take.
    for (const path of understood) expect(path).not.toMatch(/(?:^|[/\\])\.\.?(?:[/\\;]|$)/);
  });
});

describe("the path behind a stripped prefix stays inside, however the target reads it", () => {
  test.each(disguises.filter(([target]) => /api/i.test(target)))("%s (%s)", async (target) => {
    const seen = await ask(target);
    if (seen.route !== "strip") return;
    expect(seen.target).toStartWith("/");
    expect(seen.target).not.toMatch(/(?:^|[/\\]|%2f|%5c)\.\.?(?:[/\\;]|%2f|%5c|%3b|$)/i);
    const whole = readings(`/api${seen.target}`);
    for (const path of whole) expect(isUnder(mergedSlashes(path), "/api")).toBe(true);
  });
});

describe("the path behind a replaced prefix stays below the replacement", () => {
  const moved = disguises
    .filter(([target]) => /api|%61pi/i.test(target))
    .map(([target, why]) => [target.replace(/api|%61pi/gi, "old"), why] as const);
  test.each(moved)("%s (%s)", async (target) => {
    const seen = await ask(target);
    if (seen.route !== "moved") return;
    expect(seen.target).toStartWith("/tenant");
    for (const path of readings(seen.target ?? ""))
      expect(isUnder(mergedSlashes(path), "/tenant")).toBe(true);
  });
});

describe("the matched path is the upstream path", () => {
  test.each([
    ["/public/a/../b", "/public/b"],
    ["/public/%61", "/public/a"],
    ["/public/%2f", "/public/%2F"],
    ["/public/%e2%82%ac", "/public/%E2%82%AC"],
    ["/public/\u00e9", "/public/%EF%BF%BD"],
    ["/public/a%20b", "/public/a%20b"],
    ["/public/a+b", "/public/a+b"],
    ["/public/a;b=c", "/public/a;b=c"],
    ["/public//a", "/public//a"],
    ["/public/~a", "/public/~a"],
    ["/public/%7ea", "/public/~a"],
    ["/public/[a]|b^c", "/public/[a]|b%5Ec"],
    ["/public/a?b=%2e%2e/../c", "/public/a?b=%2e%2e/../c"],
    ["/public?", "/public?"],
  ])("%s goes upstream as %s", async (target, upstream) => {
    expect(await ask(target)).toEqual({ status: 200, route: "public", target: upstream });
  });
});

describe("a fragment gets 400 under all rules", () => {
  test.each([
    "/x#.png",
    "/admin#/public",
    "/public#/admin",
    "/#",
    "/public?x#",
    "http://h/x#y",
    "/%23#",
  ])("%s", async (target) => {
    expect(await ask(target)).toEqual({ status: 400, route: null, target: null });
  });
});
