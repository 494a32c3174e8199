// Redirects and rewrites: the tests of the Gateway API's conformance suite by their names, as routes and plugins can express them.
import { modified, modify } from "./modified-headers.ts";
import { conformance, type Rule, useWorld, v1, v2 } from "./world.ts";

const world = useWorld();

const redirect = (path: string, config: object): Rule => ({
  route: { paths: [path] },
  filters: [{ name: "redirect", config: { status: 302, ...config } }],
});
const location = (path: string, status: number, to: string) => ({
  path,
  status,
  host: "origin.example",
  answer: { Location: to },
});

conformance(
  world,
  "HTTPRouteRedirectHostAndStatus",
  {
    rules: [
      redirect("/hostname-redirect", { to: "http://example.org" }),
      redirect("/host-and-status", { to: "http://example.org", status: 301 }),
    ],
  },
  [
    location("/hostname-redirect", 302, "http://example.org/hostname-redirect"),
    location("/host-and-status", 301, "http://example.org/host-and-status"),
  ],
);

conformance(
  world,
  "HTTPRouteRedirectPath",
  {
    rules: [
      redirect("/original-prefix", { prefix: "/original-prefix", to: "/replacement-prefix" }),
      redirect("/full", { to: "/full-path-replacement", keep_path: false }),
      redirect("/path-and-host", {
        prefix: "/path-and-host",
        to: "http://example.org/replacement-prefix",
      }),
      redirect("/path-and-status", {
        prefix: "/path-and-status",
        to: "/replacement-prefix",
        status: 301,
      }),
      redirect("/full-path-and-host", {
        to: "http://example.org/replacement-full",
        keep_path: false,
      }),
      redirect("/full-path-and-status", { to: "/replacement-full", keep_path: false, status: 301 }),
    ],
  },
  [
    location("/original-prefix/lemon", 302, "/replacement-prefix/lemon"),
    location("/full/path/original", 302, "/full-path-replacement"),
    location("/path-and-host", 302, "http://example.org/replacement-prefix"),
    location("/path-and-status", 301, "/replacement-prefix"),
    location("/full-path-and-host", 302, "http://example.org/replacement-full"),
    location("/full-path-and-status", 301, "/replacement-full"),
  ],
);

conformance(
  world,
  "HTTPRouteRedirectPort",
  {
    rules: [
      redirect("/port", { to: "http://${request.host}:8083" }),
      redirect("/port-and-host", { to: "http://example.org:8083" }),
      redirect("/port-and-status", { to: "http://${request.host}:8083", status: 301 }),
      redirect("/port-and-host-and-status", { to: "http://example.org:8083", status: 301 }),
    ],
  },
  [
    location("/port", 302, "http://origin.example:8083/port"),
    location("/port-and-host", 302, "http://example.org:8083/port-and-host"),
    location("/port-and-status", 301, "http://origin.example:8083/port-and-status"),
    location("/port-and-host-and-status", 301, "http://example.org:8083/port-and-host-and-status"),
  ],
);

conformance(
  world,
  "HTTPRouteRedirectScheme",
  {
    rules: [
      redirect("/scheme", { scheme: "https" }),
      redirect("/scheme-and-host", { to: "https://example.org" }),
      redirect("/scheme-and-status", { scheme: "https", status: 301 }),
      redirect("/scheme-and-host-and-status", { to: "https://example.org", status: 301 }),
    ],
  },
  [
    location("/scheme", 302, "https://origin.example/scheme"),
    location("/scheme-and-host", 302, "https://example.org/scheme-and-host"),
    location("/scheme-and-status", 301, "https://origin.example/scheme-and-status"),
    location("/scheme-and-host-and-status", 301, "https://example.org/scheme-and-host-and-status"),
  ],
);

conformance(
  world,
  "HTTPRouteRedirectPortAndScheme",
  {
    rules: [
      redirect("/scheme-nil-and-port-8080", { to: "http://example.org:8080" }),
      redirect("/scheme-https-and-port-nil", { to: "https://example.org" }),
      redirect("/scheme-https-and-port-8443", { to: "https://example.org:8443" }),
    ],
  },
  [
    location("/scheme-nil-and-port-8080", 302, "http://example.org:8080/scheme-nil-and-port-8080"),
    location("/scheme-https-and-port-nil", 302, "https://example.org/scheme-https-and-port-nil"),
    location(
      "/scheme-https-and-port-8443",
      302,
      "https://example.org:8443/scheme-https-and-port-8443",
    ),
  ],
);

for (const status of [303, 307, 308])
  conformance(
    world,
    `HTTPRoute${status}Redirect`,
    { rules: [redirect("/", { to: "http://example.org", status })] },
    [location("/x", status, "http://example.org/x")],
  );

conformance(
  world,
  "HTTPRouteRewriteHost",
  {
    rules: [
      {
        route: { paths: ["/one"] },
        to: v1,
        filters: [{ name: "transform", config: { request: { host: "one.example.org" } } }],
      },
      { route: { paths: ["/two"] }, to: v2 },
    ],
  },
  [
    { path: "/one", host: "rewrite.example", backend: v1, seen: { Host: "one.example.org" } },
    { path: "/two", host: "rewrite.example", backend: v2, seen: { Host: "rewrite.example" } },
  ],
);

const full = (to: string) => ({ regex: "^.*$", to });

conformance(
  world,
  "HTTPRouteRewritePath",
  {
    rules: [
      { route: { paths: ["/prefix/one"], prefix_rewrite: "/one" }, to: v1 },
      { route: { paths: ["/strip-prefix"], prefix_rewrite: "/" }, to: v1 },
      { route: { paths: ["/full/one"], path_rewrite: full("/one") }, to: v1 },
      {
        route: { paths: ["/full/rewrite-path-and-modify-headers"], path_rewrite: full("/test") },
        to: v1,
        filters: [modify],
      },
      {
        route: { paths: ["/prefix/rewrite-path-and-modify-headers"], prefix_rewrite: "/prefix" },
        to: v1,
        filters: [modify],
      },
    ],
  },
  [
    { path: "/prefix/one/two", seenPath: "/one/two" },
    { path: "/strip-prefix/three", seenPath: "/three" },
    { path: "/strip-prefix", seenPath: "/" },
    { path: "/full/one/two", seenPath: "/one" },
    { path: "/full/rewrite-path-and-modify-headers/test", seenPath: "/test", ...modified },
    { path: "/prefix/rewrite-path-and-modify-headers/one", seenPath: "/prefix/one", ...modified },
  ],
);
