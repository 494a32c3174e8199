// Which rule a request matches: the tests of the Gateway API's conformance suite by their names, as far as routes can express them.
import { conformance, type Rule, useWorld, v1, v2, v3 } from "./world.ts";

const world = useWorld();
const equals = (name: string, value: string) => ({ name, op: "equals", value });
const header = (name: string, value: string) => ({ headers: [equals(name, value)] });
const query = (...pairs: [string, string][]) => ({
  query: pairs.map(([name, value]) => equals(name, value)),
});
const to = (backend: Rule["to"], route: object): Rule => ({
  route,
  ...(backend && { to: backend }),
});

conformance(world, "HTTPRouteSimpleSameNamespace", { rules: [to(v1, {})] }, [
  { path: "/", backend: v1 },
]);

conformance(
  world,
  "HTTPExactPathMatching",
  { rules: [to(v1, { paths: ["=/one"] }), to(v2, { paths: ["=/two"] })] },
  [
    { path: "/one", backend: v1 },
    { path: "/two", backend: v2 },
    { path: "/", status: 404 },
    { path: "/one/example", status: 404 },
    { path: "/two/", status: 404 },
    { path: "/Two", status: 404 },
  ],
);

conformance(
  world,
  "HTTPRouteMatching",
  {
    rules: [
      to(v1, { paths: ["/"] }),
      to(v1, header("version", "one")),
      to(v2, { paths: ["/v2"] }),
      to(v2, header("version", "two")),
    ],
  },
  [
    { path: "/", backend: v1 },
    { path: "/example", backend: v1 },
    { path: "/", headers: { Version: "one" }, backend: v1 },
    { path: "/v2", backend: v2 },
    { path: "/v2/example", backend: v2 },
    { path: "/", headers: { Version: "two" }, backend: v2 },
    { path: "/v2/", backend: v2 },
    // Matched by segments, not by characters.
    { path: "/v2example", backend: v1 },
    { path: "/foo/v2/example", backend: v1 },
  ],
);

conformance(
  world,
  "HTTPRouteMatchingAcrossRoutes",
  {
    rules: [
      to(v1, { hosts: ["example.com", "example.net"], paths: ["/"] }),
      to(v1, { hosts: ["example.com", "example.net"], ...header("version", "one") }),
      to(v2, { hosts: ["example.com"], paths: ["/v2"] }),
      to(v2, { hosts: ["example.com"], ...header("version", "two") }),
    ],
  },
  [
    { host: "example.com", path: "/", backend: v1 },
    { host: "example.com", path: "/example", backend: v1 },
    { host: "example.net", path: "/example", backend: v1 },
    { host: "example.com", path: "/example", headers: { Version: "one" }, backend: v1 },
    { host: "example.com", path: "/v2", backend: v2 },
    { host: "example.net", path: "/v2", backend: v1 },
    { host: "example.com", path: "/v2/example", backend: v2 },
    { host: "example.com", path: "/", headers: { Version: "two" }, backend: v2 },
    { host: "unknown.com", path: "/", status: 404 },
  ],
);

conformance(
  world,
  "HTTPRouteHeaderMatching",
  {
    rules: [
      to(v1, header("version", "one")),
      to(v2, header("version", "two")),
      to(v1, { headers: [equals("version", "two"), equals("color", "orange")] }),
      to(v1, header("color", "blue")),
      to(v1, header("color", "green")),
      to(v2, header("color", "red")),
      to(v2, header("color", "yellow")),
    ],
  },
  [
    { headers: { Version: "one" }, backend: v1 },
    { headers: { Version: "two" }, backend: v2 },
    { headers: { Version: "two", Color: "orange" }, backend: v1 },
    { headers: { Version: "two", Color: "blue" }, backend: v2 },
    { headers: { Color: "orange" }, status: 404 },
    { headers: { "Some-Other-Header": "one" }, status: 404 },
    { headers: { Color: "blue" }, backend: v1 },
    { headers: { Color: "green" }, backend: v1 },
    { headers: { Color: "red" }, backend: v2 },
    { headers: { Color: "yellow" }, backend: v2 },
    { headers: { Color: "purple" }, status: 404 },
  ],
);

conformance(
  world,
  "HTTPRouteMethodMatching",
  {
    rules: [
      to(v1, { methods: ["POST"], paths: ["=/"] }),
      to(v2, { methods: ["GET"], paths: ["=/"] }),
      to(v1, { methods: ["GET"], paths: ["/path1"] }),
      to(v2, { methods: ["PUT"], ...header("version", "one") }),
      to(v3, { methods: ["POST"], paths: ["/path2"], ...header("version", "two") }),
      to(v1, { methods: ["PATCH"], paths: ["/path3"] }),
      to(v1, { methods: ["DELETE"], paths: ["/path4"], ...header("version", "three") }),
      to(v1, { paths: ["/path5"] }),
      to(v2, { methods: ["PATCH"] }),
      to(v3, header("version", "four")),
    ],
  },
  [
    { method: "POST", backend: v1 },
    { method: "GET", backend: v2 },
    { method: "HEAD", status: 404 },
    { method: "GET", path: "/path1", backend: v1 },
    { method: "PUT", headers: { version: "one" }, backend: v2 },
    { method: "POST", path: "/path2", headers: { version: "two" }, backend: v3 },
    { method: "PATCH", path: "/path3", backend: v1 },
    { method: "DELETE", path: "/path4", headers: { version: "three" }, backend: v1 },
    { method: "PUT", status: 404 },
    { method: "DELETE", path: "/path4", status: 404 },
    { method: "PATCH", path: "/path5", backend: v1 },
    { method: "PATCH", headers: { version: "four" }, backend: v2 },
  ],
);

conformance(
  world,
  "HTTPRouteQueryParamMatching",
  {
    rules: [
      to(v1, query(["animal", "whale"])),
      to(v2, query(["animal", "dolphin"])),
      to(v3, query(["animal", "dolphin"], ["color", "blue"])),
      to(v3, query(["ANIMAL", "Whale"])),
      to(v2, { ...query(["animal", "whale"]), ...header("version", "one") }),
      to(v3, { paths: ["/path2"], ...query(["animal", "whale"]), ...header("version", "two") }),
      to(v1, { paths: ["/path3"], ...query(["animal", "shark"]) }),
      to(v1, { paths: ["/path4"], ...query(["animal", "kraken"]), ...header("version", "three") }),
      to(v1, { paths: ["/path5"], ...query(["animal", "hydra"]) }),
      to(v2, query(["animal", "hydra"])),
      // The suite prefers headers to parameters; the gateway prefers `priority`, then the older route with as many conditions.
      to(v3, { ...header("version", "four"), priority: 1 }),
    ],
  },
  [
    { path: "/?animal=whale", backend: v1 },
    { path: "/?animal=dolphin", backend: v2 },
    { path: "/?animal=dolphin&color=blue", backend: v3 },
    { path: "/?ANIMAL=Whale", backend: v3 },
    { path: "/?animal=whale&otherparam=irrelevant", backend: v1 },
    { path: "/?animal=dolphin&color=yellow", backend: v2 },
    { path: "/?color=blue", status: 404 },
    { path: "/?animal=dog", status: 404 },
    { path: "/?animal=whaledolphin", status: 404 },
    { path: "/", status: 404 },
    { path: "/path1?animal=whale", backend: v1 },
    { path: "/?animal=whale", headers: { version: "one" }, backend: v2 },
    { path: "/path2?animal=whale", headers: { version: "two" }, backend: v3 },
    { path: "/path3?animal=shark", backend: v1 },
    { path: "/path4?animal=kraken", headers: { version: "three" }, backend: v1 },
    { path: "/?animal=shark", status: 404 },
    { path: "/path4?animal=kraken", status: 404 },
    { path: "/path5?animal=hydra", backend: v1 },
    { path: "/?animal=hydra", headers: { version: "four" }, backend: v3 },
  ],
);

conformance(
  world,
  "HTTPRoutePathMatchOrder",
  {
    rules: [
      to(v1, { paths: ["/match/prefix"] }),
      to(v2, { paths: ["/match/prefix/one"] }),
      to(v3, { paths: ["/match"] }),
      to(v1, { paths: ["=/match"] }),
      to(v2, { paths: ["=/match/exact"] }),
      to(v3, { paths: ["=/match/exact/one"] }),
    ],
  },
  [
    { path: "/match/exact/one", backend: v3 },
    { path: "/match/exact", backend: v2 },
    { path: "/match", backend: v1 },
    { path: "/match/prefix/one/any", backend: v2 },
    { path: "/match/prefix/any", backend: v1 },
    { path: "/match/any", backend: v3 },
  ],
);

conformance(
  world,
  "HTTPRouteListenerHostnameMatching",
  {
    listeners: [
      { name: "listener-1", hosts: ["bar.com"] },
      { name: "listener-2", hosts: ["foo.bar.com"] },
      { name: "listener-3", hosts: ["*.bar.com"] },
      { name: "listener-4", hosts: ["*.foo.com"] },
    ],
    rules: [
      { to: v1, listeners: ["listener-1"] },
      { to: v2, listeners: ["listener-2"] },
      { to: v3, listeners: ["listener-3", "listener-4"] },
    ],
  },
  [
    { host: "bar.com", backend: v1 },
    { host: "foo.bar.com", backend: v2 },
    { host: "baz.bar.com", backend: v3 },
    { host: "boo.bar.com", backend: v3 },
    { host: "multiple.prefixes.bar.com", backend: v3 },
    { host: "multiple.prefixes.foo.com", backend: v3 },
    { host: "foo.com", status: 404 },
    { host: "no.matching.host", status: 404 },
  ],
);

const intersecting = (backend: Rule["to"], path: string, hosts: readonly string[]): Rule =>
  to(backend, { paths: [path], hosts });

conformance(
  world,
  "HTTPRouteHostnameIntersection",
  {
    listeners: [
      { name: "listener-1", hosts: ["very.specific.com"] },
      { name: "listener-2", hosts: ["*.wildcard.io"] },
      { name: "listener-3", hosts: ["*.anotherwildcard.io"] },
    ],
    rules: [
      intersecting(v1, "/s1", [
        "non.matching.com",
        "*.nonmatchingwildcard.io",
        "very.specific.com",
      ]),
      intersecting(v2, "/s2", [
        ...["non.matching.com", "wildcard.io", "foo.wildcard.io"],
        ...["bar.wildcard.io", "foo.bar.wildcard.io"],
      ]),
      intersecting(v3, "/s3", ["non.matching.com", "*.specific.com"]),
      intersecting(v1, "/s4", ["*.anotherwildcard.io"]),
      intersecting(v2, "/s5", ["specific.but.wrong.com", "wildcard.io"]),
    ],
  },
  [
    { host: "very.specific.com", path: "/s1", backend: v1 },
    { host: "very.specific.com:1234", path: "/s1", backend: v1 },
    { host: "non.matching.com", path: "/s1", status: 404 },
    { host: "foo.nonmatchingwildcard.io", path: "/s1", status: 404 },
    { host: "foo.wildcard.io", path: "/s1", status: 404 },
    { host: "very.specific.com", path: "/non-matching-prefix", status: 404 },
    { host: "foo.wildcard.io", path: "/s2", backend: v2 },
    { host: "bar.wildcard.io", path: "/s2", backend: v2 },
    { host: "foo.bar.wildcard.io", path: "/s2", backend: v2 },
    { host: "non.matching.com", path: "/s2", status: 404 },
    { host: "wildcard.io", path: "/s2", status: 404 },
    { host: "very.specific.com", path: "/s2", status: 404 },
    { host: "very.specific.com", path: "/s3", backend: v3 },
    { host: "non.matching.com", path: "/s3", status: 404 },
    { host: "foo.specific.com", path: "/s3", status: 404 },
    { host: "foo.wildcard.io", path: "/s3", status: 404 },
    { host: "foo.anotherwildcard.io", path: "/s4", backend: v1 },
    { host: "bar.anotherwildcard.io", path: "/s4", backend: v1 },
    { host: "foo.bar.anotherwildcard.io", path: "/s4", backend: v1 },
    { host: "anotherwildcard.io", path: "/s4", status: 404 },
    { host: "foo.wildcard.io", path: "/s4", status: 404 },
    { host: "very.specific.com", path: "/s4", status: 404 },
    { host: "specific.but.wrong.com", path: "/s5", status: 404 },
    { host: "wildcard.io", path: "/s5", status: 404 },
  ],
);

conformance(
  world,
  "HTTPRouteHostnameIntersection, a listener without a host name",
  { rules: [to(v2, { hosts: ["first.com", "sub.first.com", "second.com", "*.second.com"] })] },
  [
    { host: "first.com", backend: v2 },
    { host: "sub.first.com", backend: v2 },
    { host: "second.com", backend: v2 },
    { host: "sub.second.com", backend: v2 },
    { host: "third.com", status: 404 },
    { host: "sub.third.com", status: 404 },
  ],
);

const isolated = [
  "empty-hostname",
  "wildcard-example-com",
  "wildcard-foo-example-com",
  "abc-foo-example-com",
];
const ISOLATED_HOSTS = [[], ["*.example.com"], ["*.foo.example.com"], ["abc.foo.example.com"]];
const ASKED_HOSTS = ["bar.com", "bar.example.com", "bar.foo.example.com", "abc.foo.example.com"];

for (const [name, hasHosts] of [
  ["GatewayHTTPListenerIsolation", false],
  ["GatewayHTTPListenerIsolation, with hostname intersection", true],
] as const)
  conformance(
    world,
    name,
    {
      listeners: isolated.map((listener, at) => ({ name: listener, hosts: ISOLATED_HOSTS[at] })),
      rules: isolated.map((listener) => ({
        listeners: [listener],
        to: v1,
        route: { paths: [`/${listener}`], hosts: hasHosts ? ASKED_HOSTS : [] },
      })),
    },
    ASKED_HOSTS.flatMap((host, at) =>
      isolated.map((listener, of) => ({
        host,
        path: `/${listener}`,
        ...(at === of ? { backend: v1 } : { status: 404 }),
      })),
    ),
  );
