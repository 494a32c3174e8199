// What of nginx cannot be converted closes the requests that it covers, and no others.
import { describe, expect, test } from "bun:test";
import { widerExpression } from "../../../src/import/nginx/paths.ts";
import { isClosed, site } from "./nginx-samples.ts";

const rest = "location / { proxy_pass http://127.0.0.1:81; }";

test("hidden files but those of ACME are denied, and the rest of the host is open", async () => {
  for (const lookahead of ["well-known\\/", "well-known", "well-known/"]) {
    const { routes, pluginsOf } = await site(
      `${rest} location ~* /\\.(?!${lookahead}) { deny all; }`,
    );
    expect(routes.map(isClosed)).toEqual([false, false]);
    const [denial, open] = routes;
    expect(pluginsOf(denial.name)).toMatchObject({ respond: { status: 403 } });
    const [{ value }] = denial.paths;
    const matches = (path: string) => new RegExp(value).test(path);
    expect(["/.git", "/a/.env", "/.well-known/x"].map(matches)).toEqual([true, true, false]);
    // No parameter in a path makes it one of these.
    expect(pluginsOf(open.name)).toEqual({});
  }
});

test.each([
  ["^/(?<user>\\w++)/x", "^/(\\w+)/x"],
  ["^/(?!(a|b)/).*\\.env", "^/.*\\.env"],
  ["^/files/(?R)", "^/files/"],
  ["^/(a)\\1\\.bak", "^/(a).*\\.bak"],
  ["^/(?>a|b)/c", "^/(?:a|b)/c"],
])("%s closes only what %s matches", async (expression, wider) => {
  const { routes, report } = await site(`${rest} location ~ "${expression}" { deny all; }`);
  const [denial, open] = routes;
  expect([isClosed(denial), isClosed(open)]).toEqual([true, false]);
  expect(denial.paths[0].value).toStartWith(wider);
  expect(
    report.filter(({ what, why }: { what: string; why: string }) =>
      /nginx.conf:1/.test(what + why),
    ),
  ).not.toEqual([]);
});

test.each([
  ["[a*+b]++x", "a class with signs of quantifiers", ["a", "*", "+", "b"].map((one) => `/${one}x`)],
  ["^/\\++x(?!y)", "an escaped quantifier", ["/+x", "/++x"]],
  ["^/(?!a(?:b|c))[^/]*z", "a group in a lookahead", ["/abz", "/qz"]],
  ["^/x\\x41y(?!z)", "a character by its number", ["/xAy", "/x%41y"]],
  ["^/(?=[)])x\\)(?!y)", "a parenthesis in a class", ["/x)"]],
])("what stands for %s (%s) matches at least the same", (expression, _, paths) => {
  const wider = widerExpression(expression, false);
  for (const path of paths)
    expect(wider?.some((one) => new RegExp(one).test(path)) ?? true).toBe(true);
});

describe("conditions on headers", () => {
  const conditions = async (condition: string, body = "return 403;") => {
    const { routes } = await site(
      `location / { if (${condition}) { ${body} } proxy_pass http://127.0.0.1:81; }`,
    );
    expect(routes.filter(isClosed)).toEqual([]);
    return routes.slice(0, -1).map(({ headers }) => headers[0]);
  };

  test.each([
    ["$http_x_key = k", [{ name: "x-key", op: "regex", value: "^k$" }]],
    [
      "$http_x_key != k",
      [
        { name: "x-key", op: "absent" },
        { name: "x-key", op: "regex", value: "^(?![^]*?(?:^k$))" },
      ],
    ],
    [
      '$http_x = ""',
      [
        { name: "x", op: "absent" },
        { name: "x", op: "regex", value: "^(?![^]*?(?:[^]))" },
      ],
    ],
    ['$http_x != ""', [{ name: "x", op: "regex", value: "[^]" }]],
    ["$http_x", [{ name: "x", op: "regex", value: "^(?!0$)[^]" }]],
    ["$http_user_agent ~* bot", [{ name: "user-agent", op: "regex", value: "[bB][oO][tT]" }]],
    ["$cookie_a = 1", [{ name: "cookie", op: "regex", value: "(?:^|;) *[aA]=1 *(?:;|$)" }]],
  ])("%s", async (condition, headers) => {
    expect(await conditions(condition)).toEqual(headers);
  });

  test.each([
    ["$http_x ~ ^$", "return 403;", "an expression that holds without the header"],
    ["$arg_x = 1", "return 302 /login;", "a parameter"],
    ["$http_cookie !~ session", "rewrite ^ https://$login/ redirect;", "a missing login"],
    ["$request_uri ~ ^/admin", "return 302 /login;", "a path, in the spelling of the client"],
    ["$http_x = 1", "set $a 1; return 403; return 404;", "several responses"],
  ])("%s { %s } closes its location, and only that: %s", async (condition, body) => {
    const { routes } = await site(
      `${rest} location /x { if (${condition}) { ${body} } proxy_pass http://127.0.0.1:82; }`,
    );
    const closed = routes.filter(isClosed);
    expect(closed.map(({ paths }) => paths[0].value)).toEqual(["/x"]);
  });

  test("a redirect that clients choose by a header closes nothing", async () => {
    const { routes, report } = await site(
      `location / { if ($http_user_agent ~ phone) { rewrite ^ https://$phones/ permanent; } proxy_pass http://127.0.0.1:81; }`,
    );
    expect(routes.filter(isClosed)).toEqual([]);
    expect(report).toContainEqual({
      level: "omitted",
      what: "if at nginx.conf:1",
      why: "its redirect depends on a header, and is not imported",
    });
  });
});

test("a path that resembles one below a redirect elsewhere is denied, and below one with a slash it is not", async () => {
  const below = "location /admin/ { proxy_pass http://127.0.0.1:82; }";
  const policy = async (to: string) => {
    const { pluginsOf } = await site(`${rest} ${below} location /admin { return 302 ${to}; }`);
    return pluginsOf("a.test admin")["access-policy"];
  };
  expect(await policy("/x")).toMatchObject({ rules: [{ when: { ambiguous_path: true } }] });
  expect(await policy("/admin/")).toBeUndefined();
});

test("a header of the client that is sent on as it is stays the client's", async () => {
  const { pluginsOf } = await site(
    "location / { proxy_pass http://127.0.0.1:81; proxy_set_header X-Key $http_x_key; proxy_set_header X-B b; }",
  );
  expect(pluginsOf("a.test").transform.request).toEqual({ headers: { set: { "X-B": "b" } } });
});

test("headers of add_header are set on redirects and errors, too", async () => {
  const { document, routes } = await site(
    `add_header X-A "b"; ${rest} location /old { return 301 /new; }`,
  );
  const transforms = document.plugins.filter(({ name }: { name: string }) => name === "transform");
  expect(transforms).toHaveLength(routes.length);
  for (const { config, priority } of transforms) {
    expect(config.response.headers.add).toEqual({ "X-A": "b" });
    // Above that of redirect.
    expect(priority).toBeGreaterThan(9400);
  }
});
