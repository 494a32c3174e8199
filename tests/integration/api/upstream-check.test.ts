// Checking an upstream before anything is created: results and rejected addresses.
import { Dialer } from "../../../src/dialer/dialer.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { promises as dns } from "node:dns";
import { hostname } from "node:os";
import { checkUpstream } from "../../../src/applications/upstream-check.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { useGateway } from "./client.ts";

const api = useGateway();
let origin: ReturnType<typeof Bun.serve>;
let asked = 0;
beforeAll(() => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/broken") return new Response("no", { status: 503 });
      if (pathname === "/asked-again") asked++;
      if (pathname === "/away") return Response.redirect(at("/asked-again"), 302);
      if (pathname === "/moved") return Response.redirect("/app", 302);
      return new Response("ok", {
        status: request.headers.get("host") === "shop.test" ? 200 : 404,
      });
    },
  });
});
afterAll(() => origin.stop(true));

const at = (path = "", port = origin.port) => `http://127.0.0.1:${port}${path}`;
const check = async (body: object) => {
  const { status, body: report } = await api.call("POST /applications/check-upstream", { body });
  return { status, ...report };
};

test("a check of a working application sends the public host name", async () => {
  expect(await check({ upstream: at(), host: "shop.test" })).toEqual({
    status: 200,
    ok: true,
    checks: [{ name: "upstream", status: "ok", message: `${at()} responds with status 200` }],
  });
  expect((await check({ upstream: at() })).checks[0].message).toContain("status 404");
  expect((await check({ upstream: at("/moved") })).checks[0].message).toContain("redirects to");
});

test("a broken one is a warning, an unreachable one a failure", async () => {
  expect((await check({ upstream: at("/broken") })).checks[0].status).toBe("warning");
  const gone = await check({ upstream: at("", quietPort()) });
  expect(gone).toMatchObject({ ok: false, checks: [{ status: "failed" }] });
  expect(gone.checks[0].message).toEndWith("refused the connection");
});

test.each(["10.0.0.5:3000", "ftp://10.0.0.5", "http://a:b@10.0.0.5", "http://10.0.0.5:99999"])(
  "%s is an invalid address",
  async (upstream) => {
    const { status, error } = await check({ upstream });
    expect(status).toBe(400);
    expect(error).toStartWith("upstream: must ");
  },
);

describe("a check rejects forbidden targets", () => {
  const management = () => new URL(api.gateway.admin).port;
  const places: [string, () => string][] = [
    ["the management API", () => `127.0.0.1:${management()}`],
    ["by another address of the machine itself", () => `127.9.9.9:${management()}`],
    ["by its name", () => `localhost:${management()}`],
    ["by a name below it", () => `a.localhost:${management()}`],
    ["in IPv6", () => `[::ffff:127.0.0.1]:${management()}`],
    ["as one number", () => `0x7f000001:${management()}`],
    ["as any address", () => `0.0.0.0:${management()}`],
    ["the metadata service", () => "169.254.169.254"],
    ["of containers", () => "169.254.170.2:80"],
    ["in IPv6 notation", () => "[::ffff:169.254.169.254]"],
    ["as hexadecimal digits", () => "0xa9fea9fe"],
    ["of AWS in IPv6", () => "[fd00:ec2::254]"],
    ["a link-local address", () => "[fe80::1]:8080"],
  ];
  test.each(places)("%s", async (_, place) => {
    const { status, error } = await check({ upstream: `http://${place()}/` });
    expect([status, error]).toEqual([400, expect.stringMatching(/^upstream: (is|must) /)]);
  });

  test("by resolved address, and connects to the checked address", async () => {
    const name = hostname();
    const found = await dns.lookup(name).catch(() => null);
    if (found === null) return console.warn(`${name} has no address: not tried`);
    const { address } = found;
    const bound = { address, port: origin.port ?? 0 };
    const rules = { permitted: [], management: [bound] };
    const changes = { destinationRules: () => rules, dialer: new Dialer({ rules: () => rules }) };
    const report = await checkUpstream({ upstream: `http://${name}:${bound.port}` }, changes);
    expect(report).toMatchObject({ ok: false });
    expect(report.checks[0]?.message).toContain("is the management API itself");
  });

  test("and follows no redirect", async () => {
    const { checks } = await check({ upstream: at("/away") });
    expect(checks[0].message).toContain(`redirects to ${at("/asked-again")}`);
    expect(asked).toBe(0);
  });
});

test("targets are refused at the same places", async () => {
  for (const host of ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fd00:ec2::254"]) {
    const body = { name: `meta ${host.length}`, targets: [{ host, port: 80 }] };
    const { status, body: answer } = await api.call("POST /services", { body });
    expect([status, answer.error]).toEqual([
      400,
      expect.stringContaining("targets[0].host: is a link-local or metadata address"),
    ]);
  }
  const application = { name: "meta", domains: ["m.test"], upstream: "http://169.254.169.254" };
  expect((await api.call("POST /applications", { body: application })).status).toBe(400);
});
