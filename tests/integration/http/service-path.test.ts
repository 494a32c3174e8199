// The path that a target receives, from the service's path, the route's and strip_path: Kong's tables row by row, where
// each row that differs says why; docs/migrating.md says the same in words.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type RouteSketch,
  type RunningDataPlane,
  type ServiceSketch,
  startDataPlane,
} from "../../support/data-plane.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { type Anything, convertWith } from "../../unit/import/samples.ts";

/** A route of Kong matches any path with its prefix, a prefix here whole segments. */
const SEGMENTS = "a prefix matches whole segments";
/** The service's path is sent as written when nothing follows it; Kong removes its slash. */
const AS_WRITTEN = "the service's path is sent as it is written";
/** A slash that the client has sent stays, as in the reference and in later versions of Kong. */
const AS_SENT = "the client's slash stays";
/** Segments are joined by a slash, as Kong's path_handling v0 does; v1 concatenates them. */
const NO_V1 = "there is no path_handling v1";

interface Row {
  readonly service: string;
  /** Null: the route has a host only. */
  readonly route: string | null;
  readonly strip: boolean;
  readonly version: "v0" | "v1";
  readonly request: string;
  readonly kong: string;
  /** What differs here, and why; null: no route matches. */
  readonly differs: readonly [target: string | null, why: string] | null;
}

type Line = readonly [
  service: string,
  route: string | null,
  strip: "no" | "yes" | "any",
  version: "v0" | "v1" | "any",
  request: string,
  kong: string,
  here?: string | null,
  why?: string,
];

/** The table of the Admin API's reference (Kong 3.x, "path_handling"), whose `/s/fv01/` is read as `/s/fv0/`. */
const documented: readonly Line[] = [
  ["/s", "/fv0", "no", "v0", "/fv0/req", "/s/fv0/req"],
  ["/s", "/fv0", "no", "v0", "/fv0", "/s/fv0"],
  ["/s", "/fv1", "no", "v1", "/fv1/req", "/sfv1/req", "/s/fv1/req", NO_V1],
  ["/s", "/fv1", "no", "v1", "/fv1", "/sfv1", "/s/fv1", NO_V1],
  ["/s", "/tv0", "yes", "v0", "/tv0/req", "/s/req"],
  ["/s", "/tv0", "yes", "v0", "/tv0", "/s"],
  ["/s", "/tv1", "yes", "v1", "/tv1/req", "/s/req"],
  ["/s", "/tv1", "yes", "v1", "/tv1", "/s"],
  ["/s", "/fv0/", "no", "v0", "/fv0/req", "/s/fv0/req"],
  ["/s", "/fv0/", "no", "v0", "/fv0/", "/s/fv0/"],
  ["/s", "/fv1/", "no", "v1", "/fv1/req", "/sfv1/req", "/s/fv1/req", NO_V1],
  ["/s", "/fv1/", "no", "v1", "/fv1/", "/sfv1/", "/s/fv1/", NO_V1],
  ["/s", "/tv0/", "yes", "v0", "/tv0/req", "/s/req"],
  ["/s", "/tv0/", "yes", "v0", "/tv0/", "/s/"],
  ["/s", "/tv1/", "yes", "v1", "/tv1/req", "/sreq", "/s/req", NO_V1],
  ["/s", "/tv1/", "yes", "v1", "/tv1/", "/s", "/s/", NO_V1],
];

/**
 * The table of Kong's own tests, in its order (spec/fixtures/router_path_handling_tests.lua). Where the route's path ends in
 * a slash and is all of the request, later versions and the reference above keep the slash: `/service/`.
 */
const tested: readonly Line[] = [
  ["/", "/", "any", "any", "/", "/"],
  ["/", "/", "any", "any", "/route", "/route"],
  ["/", "/", "any", "any", "/route/", "/route/"],
  ["/", "/", "any", "any", "/routereq", "/routereq"],
  ["/", "/", "any", "any", "/route/req", "/route/req"],
  ["/", "/route", "no", "any", "/route", "/route"],
  ["/", "/route", "no", "any", "/route/", "/route/"],
  ["/", "/route", "no", "any", "/routereq", "/routereq", null, SEGMENTS],
  ["/", "/route", "yes", "any", "/route", "/"],
  ["/", "/route", "yes", "any", "/route/", "/"],
  ["/", "/route", "yes", "any", "/routereq", "/req", null, SEGMENTS],
  ["/", "/route/", "no", "any", "/route/", "/route/"],
  ["/", "/route/", "no", "any", "/route/req", "/route/req"],
  ["/", "/route/", "yes", "any", "/route/", "/"],
  ["/", "/route/", "yes", "any", "/route/req", "/req"],
  ["/srv", "/rou", "no", "v0", "/roureq", "/srv/roureq", null, SEGMENTS],
  ["/srv", "/rou", "no", "v1", "/roureq", "/srvroureq", null, SEGMENTS],
  ["/srv", "/rou", "yes", "v0", "/roureq", "/srv/req", null, SEGMENTS],
  ["/srv", "/rou", "yes", "v1", "/roureq", "/srvreq", null, SEGMENTS],
  ["/srv/", "/rou", "no", "any", "/rou", "/srv/rou"],
  ["/srv/", "/rou", "yes", "v0", "/rou", "/srv", "/srv/", AS_WRITTEN],
  ["/srv/", "/rou", "yes", "v1", "/rou", "/srv/"],
  ["/service", "/", "any", "any", "/", "/service"],
  ["/service", "/", "any", "v0", "/route", "/service/route"],
  ["/service", "/", "any", "v1", "/route", "/serviceroute", "/service/route", NO_V1],
  ["/service", "/", "any", "v0", "/route/", "/service/route/"],
  ["/service", "/", "any", "v1", "/route/", "/serviceroute/", "/service/route/", NO_V1],
  ["/service", "/", "any", "v0", "/routereq", "/service/routereq"],
  ["/service", "/", "any", "v1", "/routereq", "/serviceroutereq", "/service/routereq", NO_V1],
  ["/service", "/", "any", "v0", "/route/req", "/service/route/req"],
  ["/service", "/", "any", "v1", "/route/req", "/serviceroute/req", "/service/route/req", NO_V1],
  ["/service", "/route", "no", "v0", "/route", "/service/route"],
  ["/service", "/route", "no", "v1", "/route", "/serviceroute", "/service/route", NO_V1],
  ["/service", "/route", "no", "v0", "/route/", "/service/route/"],
  ["/service", "/route", "no", "v1", "/route/", "/serviceroute/", "/service/route/", NO_V1],
  ["/service", "/route", "no", "v0", "/routereq", "/service/routereq", null, SEGMENTS],
  ["/service", "/route", "no", "v1", "/routereq", "/serviceroutereq", null, SEGMENTS],
  ["/service", "/route", "yes", "any", "/route", "/service"],
  ["/service", "/route", "yes", "any", "/route/", "/service/"],
  ["/service", "/route", "yes", "v0", "/routereq", "/service/req", null, SEGMENTS],
  ["/service", "/route", "yes", "v1", "/routereq", "/servicereq", null, SEGMENTS],
  ["/service", "/route/", "no", "v0", "/route/", "/service/route/"],
  ["/service", "/route/", "no", "v1", "/route/", "/serviceroute/", "/service/route/", NO_V1],
  ["/service", "/route/", "no", "v0", "/route/req", "/service/route/req"],
  [
    "/service",
    "/route/",
    "no",
    "v1",
    "/route/req",
    "/serviceroute/req",
    "/service/route/req",
    NO_V1,
  ],
  ["/service", "/route/", "yes", "any", "/route/", "/service", "/service/", AS_SENT],
  ["/service", "/route/", "yes", "v0", "/route/req", "/service/req"],
  ["/service", "/route/", "yes", "v1", "/route/req", "/servicereq", "/service/req", NO_V1],
  ["/service/", "/", "no", "any", "/", "/service/"],
  ["/service/", "/", "yes", "v0", "/", "/service", "/service/", AS_WRITTEN],
  ["/service/", "/", "yes", "v1", "/", "/service/"],
  ["/service/", "/", "any", "any", "/route/", "/service/route/"],
  ["/service/", "/", "any", "any", "/route", "/service/route"],
  ["/service/", "/", "any", "any", "/routereq", "/service/routereq"],
  ["/service/", "/", "any", "any", "/route/req", "/service/route/req"],
  ["/service/", "/route", "no", "any", "/route", "/service/route"],
  ["/service/", "/route", "no", "any", "/route/", "/service/route/"],
  ["/service/", "/route", "no", "any", "/routereq", "/service/routereq", null, SEGMENTS],
  ["/service/", "/route", "yes", "v0", "/route", "/service", "/service/", AS_WRITTEN],
  ["/service/", "/route", "yes", "v1", "/route", "/service/"],
  ["/service/", "/route", "yes", "any", "/route/", "/service/"],
  ["/service/", "/route", "yes", "any", "/routereq", "/service/req", null, SEGMENTS],
  ["/service/", "/route/", "no", "any", "/route/", "/service/route/"],
  ["/service/", "/route/", "no", "any", "/route/req", "/service/route/req"],
  ["/service/", "/route/", "yes", "v0", "/route/", "/service", "/service/", AS_WRITTEN],
  ["/service/", "/route/", "yes", "v1", "/route/", "/service/"],
  ["/service/", "/route/", "yes", "any", "/route/req", "/service/req"],
  ["/", null, "any", "any", "/", "/"],
  ["/", null, "any", "any", "/route", "/route"],
  ["/", null, "any", "any", "/route/", "/route/"],
  ["/service", null, "any", "any", "/", "/service"],
  ["/service", null, "any", "v0", "/route", "/service/route"],
  ["/service", null, "any", "v1", "/route", "/serviceroute", "/service/route", NO_V1],
  ["/service", null, "any", "v0", "/route/", "/service/route/"],
  ["/service", null, "any", "v1", "/route/", "/serviceroute/", "/service/route/", NO_V1],
  ["/service/", null, "no", "any", "/", "/service/"],
  ["/service/", null, "yes", "v0", "/", "/service", "/service/", AS_WRITTEN],
  ["/service/", null, "yes", "v1", "/", "/service/"],
  ["/service/", null, "any", "any", "/route", "/service/route"],
  ["/service/", null, "any", "any", "/route/", "/service/route/"],
];

const rows = [...documented, ...tested].flatMap(
  ([service, route, strip, version, request, kong, here, why = ""]) =>
    (strip === "any" ? [false, true] : [strip === "yes"]).flatMap((stripped) =>
      (version === "any" ? (["v0", "v1"] as const) : [version]).map((path_handling): Row => ({
        service,
        route,
        strip: stripped,
        version: path_handling,
        request,
        kong,
        differs: here === undefined ? null : [here, why],
      })),
    ),
);

let origin: Origin;
const gateways = new Map<string, RunningDataPlane>();

beforeAll(async () => {
  origin = startOrigin();
  const target = { port: origin.port };
  const written = {
    services: rows.map(({ service }, at) => ({
      name: `s${at}`,
      targets: [target],
      path: service === "/" ? "" : service,
    })),
    routes: rows.map(({ route, strip }, at) => ({
      name: `r${at}`,
      service_id: `s${at}`,
      hosts: [`h${at}.test`],
      strip_path: strip,
      ...(route === null ? {} : { paths: [route] }),
    })),
  };
  gateways.set("written here", await startDataPlane(written));
  gateways.set("imported from Kong", await startDataPlane(await imported()));
});
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.stop();
  origin.stop();
});

/** The same as Kong has it, converted. */
async function imported() {
  const { document } = await convertWith("kong", {
    _format_version: "3.0",
    services: rows.map(({ service, route, strip, version }, at) => ({
      name: `s${at}`,
      host: "127.0.0.1",
      port: origin.port,
      path: service,
      routes: [
        {
          name: `r${at}`,
          hosts: [`h${at}.test`],
          strip_path: strip,
          path_handling: version,
          ...(route === null ? {} : { paths: [route] }),
        },
      ],
    })),
  });
  const names = new Map<string, string>();
  const services = document.services.map(({ id, ...service }: ServiceSketch) => {
    names.set(id ?? "", service.name);
    return { ...service, targets: [{ port: origin.port }] };
  }) as ServiceSketch[];
  const routes = document.routes.map(({ id: _, service_id, ...route }: Anything) => ({
    ...route,
    service_id: names.get(service_id) ?? null,
  })) as RouteSketch[];
  return { services, routes };
}

for (const how of ["written here", "imported from Kong"])
  test.each(rows.map((row, at) => ({ ...row, at })))(
    `${how}: service $service, route $route, strip_path $strip, $version: $request`,
    async ({ at, request, kong, differs }) => {
      const before = origin.requests.length;
      const { answers } = await exchange(`GET ${request} HTTP/1.1\r\nHost: h${at}.test\r\n\r\n`, {
        port: gateways.get(how)?.port ?? 0,
      });
      const expected = differs === null ? kong : differs[0];
      expect(origin.requests[before]?.target ?? null).toBe(expected);
      expect(answers[0]?.status).toBe(expected === null ? 404 : 200);
    },
  );

test("every row that differs gives one of the reasons that docs/migrating.md explains", () => {
  const reasons = new Set(rows.flatMap(({ differs }) => (differs === null ? [] : [differs[1]])));
  expect([...reasons].toSorted()).toEqual([SEGMENTS, AS_WRITTEN, AS_SENT, NO_V1].toSorted());
  for (const { differs, kong } of rows) expect(differs?.[0] ?? null).not.toBe(kong);
});
