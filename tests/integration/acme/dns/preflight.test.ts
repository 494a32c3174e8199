// Preflight checks before an order: whether port 80 of a name reaches this gateway or another server.
import { testDialer } from "../../../support/dialer.ts";
import { afterEach, expect, test } from "bun:test";
import { Preflight } from "../../../../src/applications/preflight.ts";
import type { ProbeProof } from "../../../../src/acme/self-probe.ts";
import { DnsLookup } from "../../../../src/acme/dns/lookup.ts";
import { local } from "../../../../src/control/principal.ts";
import type { GatewayConfig } from "../../../../src/model/gateway-config.ts";
import { startDnsServer } from "../../../support/dns-server.ts";
import { quietPort } from "../../../support/quiet-port.ts";

const stops: (() => unknown)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const nothing = {
  acme_accounts: new Map(),
  dns_providers: new Map(),
} as unknown as GatewayConfig;

async function start(answer: (request: Request, proofs: Map<string, string>) => Response | null) {
  const proofs = new Map<string, string>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => answer(request, proofs) ?? new Response("somebody else"),
  });
  const names = await startDnsServer({
    "www.example.test": [{ type: "A", value: "127.0.0.1" }],
    "far.example.test": [{ type: "A", value: "192.0.2.1" }],
    "none.example.test": [],
    "home.example.com": [{ type: "A", value: "127.0.0.1" }],
  });
  stops.push(() => server.stop(true), names.stop);
  const preflight = (port = server.port ?? 0) =>
    new Preflight({
      config: () => nothing,
      dialer: testDialer,
      lookup: new DnsLookup([names.address]),
      dns: {
        open: () => {
          throw new Error("no provider");
        },
        createClient: () => {
          throw new Error("no provider");
        },
        waitForPropagation: () => Promise.resolve(),
        aliasOf: () => Promise.resolve(null),
      },
      identitiesOf: () => Promise.resolve([]),
      show: ({ token, answer: text }: ProbeProof) => {
        proofs.set(token, text);
        return Promise.resolve(() => void proofs.delete(token));
      },
      ports: { http: port, tls: port },
    });
  const check = async (body: object, port?: number) => {
    const report = await preflight(port).check(body, local);
    return { report, of: (name: string) => report.checks.find((each) => each.name === name) };
  };
  return { check, proofs };
}

const asGateway = (request: Request, proofs: Map<string, string>) => {
  const token = new URL(request.url).pathname.split("/").at(-1) ?? "";
  const text = request.headers.get("host")?.startsWith("www.example.test:")
    ? proofs.get(token)
    : null;
  return text === undefined || text === null ? null : new Response(text);
};

test("this gateway is recognised by a temporary token", async () => {
  const { check, proofs } = await start(asGateway);
  const { report, of } = await check({ domains: ["WWW.example.test"] });
  expect(report).toMatchObject({ ok: true, challenge: "http-01" });
  expect(of("address")).toMatchObject({ domain: "www.example.test", status: "ok" });
  expect(of("port_80")).toMatchObject({
    status: "ok",
    message: expect.stringContaining("reaches this gateway"),
  });
  expect(of("caa")?.status).toBe("ok");
  expect(proofs.size).toBe(0);
});

test.each([
  {
    why: "another server",
    answer: () => null,
    status: "failed",
    words: "from another server than this gateway",
  },
  {
    why: "a page for every path",
    answer: () => new Response("<html>"),
    status: "failed",
    words: "returns status 200",
  },
  {
    why: "a redirect",
    answer: () => Response.redirect("https://www.example.test/"),
    status: "warning",
    words: "redirects to https://www.example.test/",
  },
])("$why is distinguished", async ({ answer, status, words }) => {
  const { check } = await start(answer);
  const { of } = await check({ domains: ["www.example.test"] });
  expect(of("port_80")).toMatchObject({ status, message: expect.stringContaining(words) });
});

test("a closed port, no address, a foreign address: each is reported", async () => {
  const { check } = await start(asGateway);
  const dead = await check({ domains: ["www.example.test"] }, quietPort());
  expect(dead.of("port_80")).toMatchObject({
    status: "warning",
    message: expect.stringContaining("refused the connection"),
  });
  const none = await check({ domains: ["none.example.test"] });
  expect(none.report.ok).toBe(false);
  expect(none.of("address")?.message).toContain("has no address");
  const far = await check({ domains: ["far.example.test"], challenge: "dns-01" });
  expect(far.of("address")).toMatchObject({ status: "warning" });
  expect(far.of("zone")).toMatchObject({
    status: "failed",
    message: "no DNS provider is enabled",
  });
});

test("a public name with a private address allows only DNS validation", async () => {
  const { check } = await start(asGateway);
  const domains = ["home.example.com"];
  const { of } = await check({ domains });
  expect(of("address")).toMatchObject({
    status: "warning",
    message: expect.stringContaining("A CA on the Internet cannot connect to 127.0.0.1"),
  });
  const byDns = await check({ domains, challenge: "dns-01" });
  expect(byDns.of("address")).toMatchObject({ status: "ok" });
});

test("an open TLS port is detected, and a wildcard needs DNS", async () => {
  const { check } = await start(asGateway);
  const tls = await check({ domains: ["www.example.test"], challenge: "tls-alpn-01" });
  expect(tls.of("port_443")?.status).toBe("ok");
  const wildcard = await check({ domains: ["*.example.test"], challenge: "http-01" });
  expect(wildcard.of("challenge")).toMatchObject({ status: "failed" });
  expect((await check({ domains: ["*.example.test"] })).report.challenge).toBe("dns-01");
});

test.each([
  { why: "no name", body: { domains: [] }, error: "domains: must have at least 1" },
  { why: "an address", body: { domains: ["a b"] }, error: "domains[0]: must be a host name" },
  {
    why: "a number",
    body: { domains: ["a.b", "192.0.2.1"] },
    error: "domains[1]: must be a name, not an address",
  },
  {
    why: "an unknown provider",
    body: { domains: ["a.b"], dns_provider_id: "x" },
    error: 'DNS provider "x" does not exist',
  },
  {
    why: "a provider that is not used",
    body: { domains: ["a.b"], challenge: "http-01", dns_provider_id: "x" },
    error: "dns_provider_id:",
  },
])("$why is rejected", async ({ body, error }) => {
  const { check } = await start(asGateway);
  expect(check(body)).rejects.toThrow(error);
});
