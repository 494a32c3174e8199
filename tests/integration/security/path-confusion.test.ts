// The path that a route was chosen by must be the one that every target understands: all known disguises, against several kinds of target.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type LenientOrigin, startLenientOrigin } from "../../support/lenient-origin.ts";
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

/** How servers read a path, each on its own and all together. */
const steps: Record<string, (path: string) => string> = {
  decodesUnreserved: (path) =>
    path.replace(/%([0-9a-f]{2})/gi, (triplet, hex) => {
      const character = String.fromCharCode(Number.parseInt(hex, 16));
      return /[\w.~-]/.test(character) ? character : triplet;
    }),
  decodesAll: (path) =>
    path.replace(/%([0-7][0-9a-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  dropsParameters: (path) => path.replace(/;[^/]*/g, ""),
  readsBackslash: (path) => path.replace(/\\/g, "/"),
  mergesSlashes: (path) => path.replace(/\/{2,}/g, "/"),
  resolvesDots: (path) => {
    const out: string[] = [];
    for (const segment of path.split("/").slice(1)) {
      if (segment === "..") out.pop();
      else if (segment !== ".") out.push(segment);
    }
    return `/${out.join("/")}`;
  },
};
const {
  decodesUnreserved,
  decodesAll,
  dropsParameters,
  readsBackslash,
  mergesSlashes,
  resolvesDots,
} = steps as Record<string, (path: string) => string>;
const servers: readonly (readonly ((path: string) => string)[])[] = [
  [],
  [resolvesDots!],
  [mergesSlashes!],
  [mergesSlashes!, resolvesDots!],
  [decodesUnreserved!, resolvesDots!],
  [decodesAll!, resolvesDots!],
  [decodesAll!, mergesSlashes!, resolvesDots!],
  [resolvesDots!, decodesAll!],
  [dropsParameters!, resolvesDots!],
  [dropsParameters!, decodesAll!, resolvesDots!],
  [decodesAll!, dropsParameters!, resolvesDots!],
  [readsBackslash!, resolvesDots!],
  [decodesAll!, readsBackslash!, mergesSlashes!, resolvesDots!],
  [decodesAll!, readsBackslash!, dropsParameters!, mergesSlashes!, resolvesDots!],
];

/** All the paths that some server could take the target for. */
function readings(target: string): string[] {
  const path = target.replace(/[?#].*$/, "");
  return servers.map((server) => server.reduce((seen, step) => step(seen), path));
}

const isUnder = (path: string, prefix: string) => path === prefix || path.startsWith(`${prefix}/`);

const disguises: [target: string, why: string][] = [
  ["/admin", "plain"],
  ["/admin/", "a slash behind"],
  ["/admin/x", "below"],
  ["/admin?x", "a query"],
  ["/admin/?x=/../public", "a path in the query"],
  ["/%61dmin", "an escaped letter"],
  ["/%61%64%6d%69%6e", "all letters escaped"],
  ["/%61%64%6D%69%6E", "in another case"],
  ["/adm%69n/x", "one letter"],
  ["/public/../admin", "dot segments"],
  ["/public/./../admin", "dot segments"],
  ["/public/%2e%2e/admin", "escaped dots"],
  ["/public/%2E%2E/admin", "escaped dots"],
  ["/public/.%2e/admin", "half escaped"],
  ["/public/%2e./admin", "half escaped"],
  ["/public/..%2fadmin", "an escaped slash"],
  ["/public/..%2Fadmin", "an escaped slash"],
  ["/public/%2e%2e%2fadmin", "all escaped"],
  ["/public%2f..%2fadmin", "escaped slashes on both sides"],
  ["/public%2f%2e%2e%2fadmin", "all escaped"],
  ["/public/..;/admin", "a parameter (Tomcat)"],
  ["/public/..;x=y/admin", "a parameter"],
  ["/public/%2e%2e;/admin", "a parameter behind escaped dots"],
  ["/public/..%3b/admin", "an escaped semicolon"],
  ["/public;/../admin", "a parameter before"],
  ["/public/;/../admin", "an empty segment with a parameter"],
  ["/public/.;/../admin", "a dot with a parameter"],
  ["/public\\..\\admin", "backslashes"],
  ["/public/..\\admin", "a backslash"],
  ["/public%5c..%5cadmin", "escaped backslashes"],
  ["/public/..%5cadmin", "an escaped backslash"],
  ["/public/%2e%2e%5cadmin", "an escaped backslash"],
  ["/public..\\admin", "dots at the end of a segment"],
  ["/public/..%252fadmin", "escaped twice"],
  ["/public/%252e%252e/admin", "escaped twice"],
  ["/public/..%c0%afadmin", "an overlong slash"],
  ["/public/..%ef%bc%8fadmin", "a full-width slash"],
  ["/public/%u002e%u002e/admin", "IIS escapes"],
  ["/public/..%00/admin", "NUL"],
  ["/admin%00", "NUL"],
  ["/admin%00.png", "NUL before an extension"],
  ["/admin%20", "a space behind"],
  ["/admin%09", "a tab behind"],
  ["/admin%0a", "a line end behind"],
  ["/admin.", "a dot behind"],
  ["/admin..", "dots behind"],
  ["/admin/.", "a dot segment behind"],
  ["/admin/..", "its parent"],
  ["/admin/../admin", "there and back"],
  ["/admin/..;/admin", "there and back with a parameter"],
  ["//admin", "two slashes"],
  ["///admin", "three slashes"],
  ["/.//admin", "a dot and two slashes"],
  ["/;/admin", "an empty segment with a parameter"],
  ["/;x=y/admin", "a parameter first"],
  ["/admin;", "an empty parameter"],
  ["/admin;x=y", "a parameter"],
  ["/admin;/x", "a parameter before a slash"],
  ["/admin;x/../public", "a parameter and dots"],
  ["/admin%3bx", "an escaped semicolon"],
  ["/admin%2f", "an escaped slash behind"],
  ["/admin%2fx", "an escaped slash"],
  ["/%2fadmin", "an escaped slash first"],
  ["/%2e/admin", "an escaped dot"],
  ["/%5cadmin", "an escaped backslash first"],
  ["/\\admin", "a backslash first"],
  ["\\admin", "nothing but a backslash"],
  ["/admin\\x", "a backslash below"],
  ["/admin%5cx", "an escaped backslash below"],
  ["/./admin", "a dot"],
  ["/x/../admin", "dots"],
  ["/../admin", "dots at the root"],
  ["/../../../admin", "many dots at the root"],
  ["/public/x/../../admin", "two levels"],
  ["/public/x/..//../admin", "an empty segment between"],
  ["/public//../admin", "an empty segment before"],
  ["/public/...//../admin", "three dots"],
  ["/api/../admin", "out of a stripped prefix"],
  ["/api/..%2fadmin", "out of a stripped prefix"],
  ["/api/..;/admin", "out of a stripped prefix"],
  ["/api../admin", "a prefix with dots behind (Traefik CVE-2025-32431)"],
  ["/api..%2fadmin", "a prefix with dots behind"],
  ["/api%2fadmin", "an escaped slash behind the prefix"],
  ["/api%2f..%2fadmin", "out of the prefix, escaped"],
  ["/api%5c..%5cadmin", "out of the prefix, backslashes"],
  ["/api//admin", "two slashes behind the prefix"],
  ["/api/%2fadmin", "an escaped slash behind"],
  ["/api/;/admin", "a parameter behind"],
  ["/api;x/admin", "a parameter on the prefix"],
  ["/%61pi/x", "an escaped prefix"],
  ["//api/x", "two slashes before the prefix"],
  ["/api", "the prefix itself"],
  ["/api/", "the prefix with a slash"],
  ["/apix", "not the prefix"],
  ["/public/.%00./admin", "NUL between dots"],
  ["/public/.\t./admin", "a tab between dots"],
  ["/public/%09../admin", "an escaped tab"],
  ["http://h/public/../admin", "absolute form"],
  ["http://h/public/..%2fadmin", "absolute form"],
  ["http://h\\admin", "absolute form with a backslash"],
];

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
    for (const path of whole) expect(isUnder(mergesSlashes!(path), "/api")).toBe(true);
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
      expect(isUnder(mergesSlashes!(path), "/tenant")).toBe(true);
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
