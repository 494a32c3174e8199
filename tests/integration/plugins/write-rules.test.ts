// Writing a plugin's configuration reports problems beyond its schema.
import { beforeAll, describe, expect, test } from "bun:test";
import { freePort } from "../../support/data-plane.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();
let streamRoute = "";
beforeAll(async () => {
  const targets = [{ host: "127.0.0.1", port: 9 }];
  await api.create("/services", { name: "db", protocol: "tcp", targets });
  const { id } = await api.create("/stream-routes", {
    name: "db",
    listen_address: "127.0.0.1",
    listen_port: freePort(),
    service_id: "db",
  });
  streamRoute = id;
});

const problem = async (plugin: object): Promise<string> => {
  const { status, body } = await api.call("POST /plugins", { body: plugin });
  if (status !== 200) return String(body.error);
  await api.call(`DELETE /plugins/${body.id}`);
  return "accepted";
};

const SLOW = "^(a+)+$";

describe("the rule of a policy", () => {
  test.each([
    [{ when: { cidr: ["10.0.0.0/40"] }, action: "deny" }, "config.rules[0].when.cidr[0]: "],
    [{ when: { path: ["admin"] }, action: "deny" }, "config.rules[0].when.path[0]: "],
    [{ when: { path: ["/a?b"] }, action: "deny" }, "config.rules[0].when.path[0]: "],
    [{ when: { path: ["=/a#b"] }, action: "deny" }, "config.rules[0].when.path[0]: "],
    [{ when: { path: ["/%zz"] }, action: "deny" }, "config.rules[0].when.path[0]: "],
    [{ when: { path: ["/a/..%2fb"] }, action: "deny" }, "config.rules[0].when.path[0]: "],
    [{ when: { header: { "a b": "x" } }, action: "deny" }, "config.rules[0].when.header.a b: "],
    [{ when: { path: [`~${SLOW}`] }, action: "deny" }, "config.rules[0].when.path[0]: "],
    [{ when: { header: { a: `~${SLOW}` } }, action: "deny" }, "config.rules[0].when.header.a: "],
    [
      { when: { not: { country: ["DEU"] } }, action: "deny" },
      "config.rules[0].when.not.country[0]: ",
    ],
    [{ when: { paths: ["/"] }, action: "deny" }, "config.rules[0].when.paths: "],
    [{ when: {}, action: "drop" }, "config.rules[0].action: "],
    [{ when: {} }, "config.rules[0].action: "],
    [{ when: {}, action: "deny", name: "a:b" }, "config.rules[0].name: "],
  ])("%j is refused", async (rule, message) => {
    expect(await problem({ name: "access-policy", config: { rules: [rule] } })).toStartWith(
      message,
    );
  });

  test("is accepted when it is valid", async () => {
    const rules = [
      { when: { path: ["/a", "=/b", "~^/c"], time: { after: "08:00" } }, action: "deny" },
    ];
    expect(await problem({ name: "access-policy", config: { rules } })).toBe("accepted");
  });
});

test.each([
  ["cors", { origins: [`~${SLOW}`] }, "config.origins[0]: "],
  // Harmless where a part is enough, and not where the whole has to fit.
  ["cors", { origins: ["~(a*)*"] }, "config.origins[0]: "],
  ["cors", { origins: ["https://a*.example.com"] }, 'config.origins[0]: may have "*" only'],
  ["cors", { origins: ["https://*"] }, 'config.origins[0]: may have "*" only'],
  ["cors", { origins: ["https://*.a.*.test"] }, 'config.origins[0]: may have "*" only'],
  ["cors", { origins: ["https://*.EXAMPLE.com"] }, "config.origins[0]: must be written"],
  ["cors", { origins: ["*"], credentials: true }, "config.credentials: "],
  ["csrf", { allowed_origins: ["~("] }, "config.allowed_origins[0]: "],
  ["bot-detection", { deny: [SLOW] }, "config.deny[0]: "],
  ["redirect", { to: "https://${request.query.x}" }, "config.to: "],
  ["redirect", { to: "/${request.nothing}" }, "config.to: "],
  ["redirect", { prefix: "/old" }, "config.to: is required with a prefix"],
  ["redirect", { prefix: "old", to: "/new" }, "config.prefix: must be a path"],
  ["redirect", { prefix: "/a/../b", to: "/new" }, "config.prefix: must be a path"],
  ["redirect", { prefix: "/a?b", to: "/new" }, "config.prefix: must be a path"],
  ["redirect", { prefix: "/a", regex: "^/b", to: "/new" }, "config.prefix: cannot be combined"],
  ["redirect", { prefix: "/a", keep_path: false, to: "/new" }, "config.prefix: needs keep_path"],
  ["redirect", { prefix: "/a", to: "/b${request.path}" }, "config.prefix: cannot be combined"],
  ["csrf", { allowed_origins: ["*"] }, "config.allowed_origins[0]: would allow every page"],
  ["csrf", { allowed_origins: ["https://a*.test"] }, 'config.allowed_origins[0]: may have "*"'],
  ["redirect", { to: "/", regex: SLOW }, "config.regex: "],
  ["redirect", { status: 304 }, "config.status: "],
  ["respond", { headers: { "X-A": "a\r\nb" } }, "config.headers.X-A: "],
  ["respond", { bypass: { cidr: ["x"] } }, "config.bypass.cidr[0]: "],
  ["ip-restriction", { deny: ["1.2.3"] }, "config.deny[0]: "],
  ["ip-restriction", { message: "a\nb" }, "config.message: "],
  ["error-pages", { pages: { "200": { html: "x" } } }, "config.pages[200]: is not a known field"],
  ["transform", { response: { status_map: { all: 200 } } }, "config.response.status_map.all: "],
  ...["Content-Type", "set-cookie", "transfer-encoding"].map(
    (field) =>
      [
        "transform",
        { response: { trailers: { set: { [field]: "1" } } } },
        `config.response.trailers.set.${field}: is reserved for the gateway`,
      ] as const,
  ),
  ["transform", { response: { trailers: { remove: ["a b"] } } }, "config.response.trailers.remove"],
  ["transform", { request: { host: "https://a.test" } }, "config.request.host: "],
  ["script", { source: "throw 1; export function onLog() {}" }, "plugin script: it threw 1"],
  ["script", { source: "throw {}; export function onLog() {}" }, "plugin script: it threw a value"],
  ["script", { source: "null.x; export function onLog() {}" }, "plugin script: TypeError: cannot"],
  ["script", { source: "for (;;); export function onLog() {}" }, "plugin script: the script took"],
  ["mirror", { url: "http://a.test", methods: ["get"] }, "config.methods[0]: "],
  ...["Content-Length", "transfer-encoding", "Retry-After"].map(
    (field) =>
      [
        "circuit-breaker",
        { response: { headers: { [field]: "1" } } },
        `config.response.headers.${field}: is reserved for the gateway`,
      ] as const,
  ),
  ["security-headers", { csp: "a\nb" }, "config.csp: "],
  ["request-id", { header: "Host" }, "config.header: "],
])("%s with %j is refused", async (name, config, message) => {
  expect(await problem({ name, config })).toStartWith(message);
});

describe("on a stream route", () => {
  test.each([
    [{ cidr: ["10.0.0.0/8"], country: ["DE"], asn: [1], time: { after: "08:00" } }, "accepted"],
    [{ not: { cidr: ["10.0.0.0/8"] } }, "accepted"],
    [
      { path: ["/"] },
      "when.path: does not apply to stream connections: only cidr, country, asn and time do",
    ],
    [
      { not: { method: ["GET"] } },
      "when.not.method: does not apply to stream connections: only cidr, country, asn and time do",
    ],
  ])("the condition %j gets %s", async (when, message) => {
    const plugin = { name: "ip-restriction", stream_route_id: streamRoute, when };
    expect(await problem(plugin)).toBe(message);
  });

  test("a plugin for HTTP is refused", async () => {
    expect(await problem({ name: "cors", stream_route_id: streamRoute })).toContain(
      "cannot be applied to a stream route",
    );
  });
});
