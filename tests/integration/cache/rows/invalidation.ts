// Rows of invalidation: what unsafe requests do to stored responses.
import { hit, miss, type Row, type Section, store } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";
const UNSAFE = ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"];
const BODY = "Content-Length: 0";

const invalidates = (method: string): Row => [
  method,
  store(FRESH),
  miss({ method, request: BODY }),
  miss(),
];

const fails = (method: string): Row => [
  `${method} that fails`,
  store(FRESH),
  miss({ method, request: BODY, status: 500 }),
  hit(),
];

const named = (method: string, header: string): Row => [
  `${method} with ${header}`,
  store(FRESH, { path: "/target" }),
  miss({ method, path: "/", request: BODY, response: `${header}: target`, status: 201 }),
  miss({ path: "/target" }),
];

const escapedOtherwise = (method: string): Row => [
  `${method} with Location in another escaped form`,
  store(FRESH, { path: "/~target%C3%A9" }),
  miss({ method, path: "/", request: BODY, response: "Location: %7etarget%c3%a9", status: 201 }),
  miss({ path: "/~target%C3%A9" }),
];

const keeps = (name: string, response: string): Row => [
  name,
  store(FRESH, { path: "/target" }),
  miss({ method: "POST", path: "/", request: BODY, response }),
  hit({ path: "/target" }),
];

export const invalidation: readonly Section[] = [
  {
    rule: "RFC 9111 section 4.4, invalidation",
    must: [
      ...UNSAFE.map(invalidates),
      ...[201, 204, 205, 299, 303].map((status): Row => [
        `any success: ${status}`,
        store(FRESH),
        miss({ method: "POST", request: BODY, status }),
        miss(),
      ]),
      [
        "every variant",
        store([FRESH, "Vary: Foo"], { request: "Foo: 1" }),
        miss({ request: "Foo: 2", response: [FRESH, "Vary: Foo"] }),
        miss({ method: "POST", request: BODY }),
        miss({ request: "Foo: 1" }),
        miss({ request: "Foo: 2" }),
      ],
      [
        "a response with a validator is not validated, but fetched",
        store([FRESH, 'ETag: "a"']),
        miss({ method: "POST", request: BODY }),
        miss({ upstream: { lacks: "If-None-Match" } }),
      ],
      [
        "the same URL with the same query",
        store(FRESH, { path: "?a=1" }),
        miss({ method: "POST", path: "?a=1", request: BODY }),
        miss({ path: "?a=1" }),
      ],
      keeps("Location on another host", "Location: http://other.test/target"),
      keeps("Location on another port", "Location: http://cache.test:81{path}/target"),
      keeps("Content-Location on another host", "Content-Location: //other.test/target"),
      keeps("Location that is no URL", "Location: http://[/target"),
    ],
    better: [
      ...UNSAFE.map(fails),
      ...["POST", "PUT", "DELETE", "M-SEARCH"].flatMap((method) => [
        named(method, "Location"),
        named(method, "Content-Location"),
        escapedOtherwise(method),
      ]),
      [
        "a URL with this host",
        store(FRESH, { path: "/target" }),
        miss({
          method: "POST",
          path: "/",
          request: BODY,
          response: "Location: http://cache.test{path}/target",
        }),
        miss({ path: "/target" }),
      ],
      ["not 404", store(FRESH), miss({ method: "DELETE", request: BODY, status: 404 }), hit()],
      [
        "not another query",
        store(FRESH, { path: "?a=1" }),
        miss({ method: "POST", path: "?a=2", request: BODY }),
        hit({ path: "?a=1" }),
      ],
      ["not OPTIONS", store(FRESH), miss({ method: "OPTIONS" }), hit()],
    ],
  },
];
