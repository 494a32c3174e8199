// CORS: the tests of the Gateway API's conformance suite by their names.
import { conformance, type Rule, useWorld, v1 } from "./world.ts";

const world = useWorld();

const cors = (path: string, config: object): Rule => ({
  route: { paths: [path] },
  to: v1,
  filters: [{ name: "cors", config }],
});
const preflight = (origin: string, method: string, fields?: string) => ({
  method: "OPTIONS",
  headers: {
    Origin: origin,
    "access-control-request-method": method,
    ...(fields === undefined ? {} : { "access-control-request-headers": fields }),
  },
});
const permitted = (origin: string) => ({
  status: 204,
  answer: {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET, OPTIONS",
    "access-control-allow-headers": "x-header-1, x-header-2",
    "access-control-expose-headers": "x-header-3, x-header-4",
    "access-control-max-age": "3600",
    "access-control-allow-credentials": "true",
  },
});

conformance(
  world,
  "HTTPRouteCORS",
  {
    rules: [
      cors("/cors-1", {
        origins: ["https://www.foo.com", "https://*.bar.com"],
        methods: ["GET", "OPTIONS"],
        allow_headers: ["x-header-1", "x-header-2"],
        expose_headers: ["x-header-3", "x-header-4"],
        credentials: true,
        max_age: 3600,
      }),
      cors("/cors-2", { origins: ["https://www.foo.com"], methods: ["*"] }),
      cors("/cors-wildcard-origin", { origins: ["*"], methods: ["PUT"] }),
    ],
  },
  [
    ...["https://www.foo.com", "https://www.bar.com", "https://xpto.www.bar.com"].flatMap(
      (origin) => [
        {
          path: "/cors-1",
          ...preflight(origin, "GET", "x-header-1, x-header-2"),
          ...permitted(origin),
        },
        {
          path: "/cors-1",
          headers: { Origin: origin },
          backend: v1,
          answer: { "access-control-allow-origin": origin },
        },
      ],
    ),
    {
      path: "/cors-1",
      ...preflight("https://foobar.com", "GET"),
      status: 204,
      answer: { "access-control-allow-origin": null },
    },
    {
      path: "/cors-1",
      headers: { Origin: "https://foobar.com" },
      answer: { "access-control-allow-origin": null },
    },
    {
      path: "/cors-2",
      ...preflight("https://www.foo.com", "POST"),
      status: 204,
      answer: {
        "access-control-allow-origin": "https://www.foo.com",
        "access-control-allow-methods": "*",
        "access-control-allow-credentials": null,
      },
    },
    ...["https://foobar.com", "https://foobar.com:12345"].flatMap((origin) => [
      {
        path: "/cors-wildcard-origin",
        ...preflight(origin, "PUT"),
        status: 204,
        answer: {
          "access-control-allow-origin": "*",
          "access-control-allow-methods": "PUT",
          "access-control-allow-credentials": null,
        },
      },
      {
        path: "/cors-wildcard-origin",
        method: "PUT",
        headers: { Origin: origin },
        backend: v1,
        answer: { "access-control-allow-origin": "*" },
      },
    ]),
  ],
);

const signedIn = { Cookie: "sid=abc123", Authorization: "Bearer test" };

conformance(
  world,
  "HTTPRouteCORSAllowCredentialsBehavior",
  {
    rules: [
      cors("/cors-behavior-creds-false", { origins: ["https://app.example"], credentials: false }),
      cors("/cors-behavior-creds-true", { origins: ["https://app.example"], credentials: true }),
    ],
  },
  [
    {
      path: "/cors-behavior-creds-false",
      headers: { Origin: "https://app.example", ...signedIn },
      answer: { "Access-Control-Allow-Credentials": null },
    },
    {
      path: "/cors-behavior-creds-true",
      headers: { Origin: "http://not-app.example", ...signedIn },
      answer: { "Access-Control-Allow-Credentials": null },
    },
    {
      path: "/cors-behavior-creds-true",
      headers: { Origin: "https://app.example", ...signedIn },
      answer: {
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Allow-Origin": "https://app.example",
      },
    },
  ],
);
