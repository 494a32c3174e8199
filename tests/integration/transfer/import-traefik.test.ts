// Requests to a gateway with an imported configuration of Traefik: which service gets them according to Traefik's reference.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Asked, ask } from "../../e2e/import/judge.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";

/** Reports its name, and the request that it got. */
const startOrigin = (name: string) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname, search } = new URL(request.url);
      const prefix = request.headers.get("x-forwarded-prefix") ?? "";
      return Response.json(
        {
          path: pathname + search,
          prefix,
          host: request.headers.get("host"),
          added: request.headers.get("x-added"),
        },
        { headers: { "x-open": name, "x-path": pathname } },
      );
    },
  });

const names = ["one", "two", "three"] as const;
const origins = names.map(startOrigin);
const services = Object.fromEntries(
  names.map((name, at) => [
    name,
    { loadBalancer: { servers: [{ url: `http://127.0.0.1:${origins[at]?.port}` }] } },
  ]),
);

const hash = Bun.password.hashSync("secret", { algorithm: "bcrypt", cost: 4 });
const USER = `alice:${hash}`;

const router = (rule: string, service: string, rest: object = {}) => ({ rule, service, ...rest });

const configuration = {
  http: {
    routers: {
      // Rules of the reference.
      host: router("Host(`host.test`)", "one"),
      hosts: router("Host(`h1.test`) || Host(`h2.test`)", "one"),
      "v2-hosts": router("Host(`h3.test`, `h4.test`)", "one"),
      pattern: router("HostRegexp(`{sub:[a-z]+}.pattern.test`)", "one"),
      regexp: router("HostRegexp(`^[a-z]+\\.regexp\\.test$`)", "one"),
      any: router("HostRegexp(`^.+\\.any\\.test$`)", "one"),
      path: router("Host(`path.test`) && Path(`/products`)", "one"),
      prefix: router("Host(`prefix.test`) && PathPrefix(`/products`)", "one"),
      expression: router("Host(`expr.test`) && PathRegexp(`\\.(jpeg|jpg|png)$`)", "one"),
      "v2-path": router("Host(`vpath.test`) && Path(`/articles/{id:[0-9]+}`)", "one"),
      method: router("Host(`method.test`) && (Method(`POST`) || Method(`PUT`))", "one"),
      header: router("Host(`header.test`) && Header(`X-Kind`, `blue`)", "one"),
      "header-re": router("Host(`header2.test`) && HeaderRegexp(`X-Kind`, `^(red|green)$`)", "one"),
      query: router("Host(`query.test`) && Query(`mobile`, `true`)", "one"),
      "v2-query": router("Host(`query2.test`) && Query(`a=1`, `b=2`)", "one"),
      client: router("Host(`client.test`) && ClientIP(`127.0.0.1/32`)", "one"),
      not: router("Host(`not.test`) && !PathPrefix(`/private`)", "one"),
      "not-method": router("Host(`notm.test`) && !Method(`POST`)", "one"),
      "not-header": router("Host(`noth.test`) && !Header(`X-Kind`, `blue`)", "one"),
      both: router("Host(`both.test`) && PathPrefix(`/a`) && PathRegexp(`z$`)", "one"),
      or: router("Host(`or.test`) && (PathPrefix(`/a`) || Header(`X-Kind`, `blue`))", "one"),
      // Priorities: the longer rule precedes, unless the router has a number.
      "long-a": router("Host(`prio.test`)", "one"),
      "long-b": router("Host(`prio.test`) && PathPrefix(`/b`)", "two"),
      "number-a": router("Host(`number.test`)", "one", { priority: 100 }),
      "number-b": router("Host(`number.test`) && PathPrefix(`/b`)", "two"),
      "wide-a": router("HostRegexp(`^[a-z]+\\.wide\\.test$`) && PathPrefix(`/`)", "one"),
      "wide-b": router("Host(`x.wide.test`)", "two"),
      rest: router("PathPrefix(`/`)", "three", { priority: 1 }),
      // Paths that middlewares change.
      strip: router("Host(`strip.test`) && PathPrefix(`/api`)", "one", { middlewares: ["strip"] }),
      strips: router("Host(`strips.test`)", "one", { middlewares: ["strips"] }),
      add: router("Host(`add.test`)", "one", { middlewares: ["add"] }),
      move: router("Host(`move.test`)", "one", { middlewares: ["move"] }),
      replace: router("Host(`replace.test`)", "one", { middlewares: ["replace"] }),
      "replace-re": router("Host(`replace2.test`)", "one", { middlewares: ["replace-re"] }),
      headers: router("Host(`headers.test`)", "one", { middlewares: ["headers"] }),
      www: router("Host(`www.site.test`)", "one", { middlewares: ["www"] }),
      https: router("Host(`tls.test`)", "noop@internal", {
        entryPoints: ["web"],
        middlewares: ["https"],
      }),
      secure: router("Host(`tls.test`)", "one", { entryPoints: ["websecure"], tls: {} }),
      // Protections.
      guarded: router("Host(`guard.test`) && PathPrefix(`/admin`)", "one", {
        middlewares: ["auth"],
      }),
      open: router("Host(`guard.test`)", "two"),
      "chain-a": router("Host(`chain.test`)", "one", { middlewares: ["chain"] }),
      lan: router("Host(`lan.test`)", "one", { middlewares: ["lan"] }),
      lost: router("Host(`lost.test`)", "one", { middlewares: ["auth@file"] }),
      plugin: router("Host(`plugin.test`)", "one", { middlewares: ["plugin"] }),
      digest: router("Host(`digest.test`)", "one", { middlewares: ["digest"] }),
      md5: router("Host(`md5.test`)", "one", { middlewares: ["md5"] }),
      inside: router("Host(`inside.test`)", "one", { entryPoints: ["internal"] }),
      mtls: router("Host(`mtls.test`)", "one", { tls: { options: "mtls" } }),
      unknown: router("Host(`unknown.test`) && Unknown(`x`)", "one", { middlewares: ["auth"] }),
      "unknown-rest": router("Host(`unknown.test`)", "two"),
    },
    services,
    middlewares: {
      strip: { stripPrefix: { prefixes: ["/api"] } },
      strips: { stripPrefix: { prefixes: ["/foo", "/bar"] } },
      add: { addPrefix: { prefix: "/v2" } },
      move: { chain: { middlewares: ["strip", "add"] } },
      replace: { replacePath: { path: "/new" } },
      "replace-re": { replacePathRegex: { regex: "^/foo/(.*)", replacement: "/bar/$1" } },
      headers: {
        headers: {
          customRequestHeaders: { "X-Added": "yes" },
          customResponseHeaders: { "X-Sent": "1", "X-Path": "" },
        },
      },
      www: {
        redirectRegex: {
          regex: "^https?://www\\.site\\.test/(.*)",
          replacement: "https://site.test/${1}",
          permanent: true,
        },
      },
      https: { redirectScheme: { scheme: "https", permanent: true } },
      auth: { basicAuth: { users: [USER] } },
      chain: { chain: { middlewares: ["add", "auth"] } },
      lan: { ipAllowList: { sourceRange: ["127.0.0.2/32"] } },
      plugin: { plugin: { geo: {} } },
      digest: { digestAuth: { users: ["a:b:c"] } },
      md5: { basicAuth: { users: ["a:$apr1$x$y"] } },
    },
  },
  tls: { options: { mtls: { clientAuth: { clientAuthType: "RequireAndVerifyClientCert" } } } },
};

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  const answer = await gateway.api("POST", "/api/v1/import?from=traefik", configuration);
  expect(answer.status).toBe(200);
});
afterAll(async () => {
  await gateway?.stop();
  for (const server of origins) await server.stop(true);
});

const parse = (text: string): Asked => {
  const [, method = "GET", host = "", path = "", fields = ""] =
    /^(?:([A-Z]+) )?([^/]+)(\/\S*)(?: (.*))?$/.exec(text) ?? [];
  return { method, host, path, fields: fields === "" ? "" : `${fields}\r\n` };
};

describe("the service of a request", () => {
  test.each([
    ["host.test/", "one"],
    ["HOST.test/", "one"],
    ["host.test:8080/", "one"],
    ["x.host.test/", "three"],
    ["h1.test/", "one"],
    ["h2.test/", "one"],
    ["h4.test/x", "one"],
    ["abc.pattern.test/", "one"],
    ["a1.pattern.test/", "three"],
    ["a.b.pattern.test/", "three"],
    ["abc.regexp.test/", "one"],
    ["abc.regexp.test:80/", "one"],
    ["a.b.regexp.test/", "three"],
    ["a1.regexp.test/", "three"],
    ["a.b.any.test/", "one"],
    ["any.test/", "three"],
    ["path.test/products", "one"],
    ["path.test/products/", "three"],
    ["path.test/products/shoes", "three"],
    ["prefix.test/products", "one"],
    ["prefix.test/products/shoes", "one"],
    ["prefix.test/x/products", "three"],
    ["expr.test/a/b.png", "one"],
    ["expr.test/a.png/b", "three"],
    ["vpath.test/articles/12", "one"],
    ["vpath.test/articles/x", "three"],
    ["vpath.test/articles/12/x", "three"],
    ["POST method.test/", "one"],
    ["method.test/", "three"],
    ["header.test/ X-Kind: blue", "one"],
    ["header.test/ X-Kind: bluer", "three"],
    ["header.test/", "three"],
    ["header2.test/ X-Kind: green", "one"],
    ["header2.test/ X-Kind: greener", "three"],
    ["query.test/?mobile=true", "one"],
    ["query.test/?mobile=false", "three"],
    ["query2.test/?a=1&b=2", "one"],
    ["query2.test/?a=1", "three"],
    ["client.test/", "one"],
    ["not.test/", "one"],
    ["not.test/private", "three"],
    ["not.test/privately", "three"],
    ["notm.test/", "one"],
    ["POST notm.test/", "three"],
    ["noth.test/", "one"],
    ["noth.test/ X-Kind: red", "one"],
    ["noth.test/ X-Kind: blue", "three"],
    ["both.test/a/z", "one"],
    ["both.test/a/y", "three"],
    ["both.test/b/z", "three"],
    ["or.test/a", "one"],
    ["or.test/b X-Kind: blue", "one"],
    ["or.test/b", "three"],
    ["prio.test/b", "two"],
    ["prio.test/c", "one"],
    ["number.test/b", "one"],
    ["x.wide.test/", "one"],
    ["any.other/", "three"],
    // Protections: null is denied.
    ["guard.test/admin", null],
    ["guard.test/adminx", null],
    ["guard.test//admin", null],
    ["guard.test/%61dmin", null],
    ["guard.test/", "two"],
    ["guard.test/ADMIN", "two"],
    ["chain.test/", null],
    ["lan.test/", null],
    ["lost.test/", null],
    ["plugin.test/", null],
    ["digest.test/", null],
    ["md5.test/", null],
    ["inside.test/", null],
    ["unknown.test/", null],
  ])("%s: %j", async (text, expected) => {
    const { open } = await ask(parse(text), gateway.httpPort);
    expect(open).toBe(expected);
  });

  test.each([
    { host: "mtls.test", open: null },
    { host: "tls.test", open: "one" },
    { host: "host.test", open: "one" },
  ])("over HTTPS: $host", async ({ host, open }) => {
    const response = await fetch(`https://127.0.0.1:${gateway.httpsPort}/`, {
      headers: { host },
      tls: { rejectUnauthorized: false },
    });
    expect(response.headers.get("x-open")).toBe(open);
  });

  test("a client in the allowed network", async () => {
    const asked = { ...parse("lan.test/"), from: "127.0.0.2" };
    expect((await ask(asked, gateway.httpPort)).open).toBe("one");
  });

  test("with the password", async () => {
    const login = `Authorization: Basic ${btoa("alice:secret")}`;
    const verdict = await ask(parse(`guard.test/admin ${login}`), gateway.httpPort);
    expect([verdict.open, verdict.status]).toEqual(["one", 200]);
  });
});

const get = (host: string, path: string) =>
  fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, { headers: { host }, redirect: "manual" });

describe("the request that the service gets", () => {
  test.each([
    { host: "strip.test", path: "/api/x?y=1", sent: "/x?y=1", prefix: "/api" },
    { host: "strip.test", path: "/api", sent: "/", prefix: "/api" },
    { host: "strips.test", path: "/bar/x", sent: "/x", prefix: "" },
    { host: "strips.test", path: "/foobar", sent: "/bar", prefix: "" },
    { host: "strips.test", path: "/x/foo", sent: "/x/foo", prefix: "" },
    { host: "add.test", path: "/x", sent: "/v2/x", prefix: "" },
    { host: "move.test", path: "/api/x", sent: "/v2/x", prefix: "/api" },
    { host: "move.test", path: "/x", sent: "/v2/x", prefix: "/api" },
    { host: "replace.test", path: "/a/b?c", sent: "/new?c", prefix: "" },
    { host: "replace2.test", path: "/foo/x/y", sent: "/bar/x/y", prefix: "" },
    { host: "replace2.test", path: "/fo", sent: "/fo", prefix: "" },
  ])("$host$path: $sent", async ({ host, path, sent, prefix }) => {
    const response = await get(host, path);
    expect(await response.json()).toMatchObject({ path: sent, prefix, host });
  });

  test("headers are set and removed", async () => {
    const response = await get("headers.test", "/");
    expect(response.headers.get("x-sent")).toBe("1");
    expect(response.headers.get("x-path")).toBeNull();
    expect(await response.json()).toMatchObject({ added: "yes" });
  });
});

describe("redirects", () => {
  test.each([
    { host: "www.site.test", path: "/a/b", to: "https://site.test/a/b", status: 301 },
    { host: "tls.test", path: "/a?b", to: "https://tls.test/a?b", status: 301 },
  ])("$host$path", async ({ host, path, to, status }) => {
    const response = await get(host, path);
    expect(response.status).toBe(status);
    expect(response.headers.get("location")?.replace(/:\d+(?=\/)/, "")).toBe(to);
  });
});
