// Targets with names: which addresses get requests, what a dead address costs, and what happens while a name does not resolve.
import { afterAll, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type DnsRecord, type DnsServer, startDnsServer } from "../../support/dns-server.ts";
import { needs } from "../../support/needs.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";

/** Tests run at the same time, because they mostly wait: each has a gateway, name servers and origins of its own. */
const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

const a = (...values: string[]): DnsRecord[] => values.map((value) => ({ type: "A", value }));

/** Origins on one port of several addresses of this machine; each says which one it is. */
function origins(...hosts: string[]): Origin[] {
  const list: Origin[] = [];
  for (const hostname of hosts) {
    const port = list[0]?.port ?? 0;
    const origin = startOrigin({ hostname, port, answer: reply(hostname) });
    stops.push(() => origin.stop());
    list.push(origin);
  }
  return list;
}

interface Scene {
  readonly dns: DnsServer;
  readonly plane: RunningDataPlane;
  get(): Promise<{ status: number; body: string; proxyStatus: string | null }>;
}

async function scene(
  zone: Parameters<typeof startDnsServer>[0],
  target: { host: string; port: number | null },
  { mode = "zone" as DnsServer["mode"], ...service }: Record<string, unknown> = {},
): Promise<Scene> {
  const dns = await startDnsServer(zone);
  stops.push(dns.stop);
  dns.mode = mode as DnsServer["mode"];
  const plane = await startDataPlane({
    services: [{ name: "app", targets: [target], ...service }],
    routes: [{ name: "all", service_id: "app" }],
    dnsServers: [dns.address],
  });
  stops.push(plane.stop);
  return {
    dns,
    plane,
    async get() {
      const response = await fetch(plane.url, { headers: { accept: "text/plain" } });
      const proxyStatus = response.headers.get("proxy-status");
      return { status: response.status, body: await response.text(), proxyStatus };
    },
  };
}

/** Every request on a connection of its own. */
const fresh = { keepalive: { size: 0 } };

needs("ipv6").test.concurrent(
  "connections are spread over all addresses of a name, IPv4 and IPv6",
  async () => {
    const [first] = origins("127.0.0.2", "127.0.0.3", "::1");
    const { get } = await scene(
      { "app.test": [...a("127.0.0.2", "127.0.0.3"), { type: "AAAA", value: "::1" }] },
      { host: "App.Test.", port: first!.port },
      fresh,
    );
    const bodies: string[] = [];
    for (let i = 0; i < 9; i++) bodies.push((await get()).body);
    const count = (host: string) => bodies.filter((body) => body === host).length;
    expect([count("127.0.0.2"), count("127.0.0.3"), count("::1")]).toEqual([3, 3, 3]);
  },
);

test.concurrent(
  "an address that refuses costs no attempt: the next one is tried before the client gets a response",
  async () => {
    const [origin] = origins("127.0.0.3");
    const { get, plane } = await scene(
      { "app.test": a("127.0.0.2", "127.0.0.3", "127.0.0.4") },
      { host: "app.test", port: origin!.port },
      { ...fresh, retries: { count: 0 } },
    );
    for (let i = 0; i < 8; i++)
      expect(await get()).toMatchObject({ status: 200, body: "127.0.0.3" });
    expect(plane.log.filter(({ level }) => level === "warn")).toEqual([]);
  },
);

test.concurrent(
  "link-local addresses, where clouds serve credentials, are omitted from results",
  async () => {
    const [origin] = origins("127.0.0.2");
    const metadata = a("169.254.169.254", "127.0.0.2", "169.254.170.2");
    const app = { host: "app.test", port: origin!.port };
    const both = await scene({ "app.test": metadata }, app, { ...fresh, retries: { count: 0 } });
    for (let i = 0; i < 6; i++)
      expect(await both.get()).toMatchObject({ status: 200, body: "127.0.0.2" });
    const only = await scene({ "app.test": [...a("169.254.169.254"), META_IPV6] }, app, fresh);
    const answer = await only.get();
    expect(answer.status).toBe(502);
    expect(answer.proxyStatus).toContain("dns_error");
  },
);

const META_IPV6: DnsRecord = { type: "AAAA", value: "fd00:ec2::254" };

test.concurrent("when all refuse, the client gets one error, without an address", async () => {
  const [origin] = origins("127.0.0.9");
  const { get, plane } = await scene(
    { "app.test": a("127.0.0.2", "127.0.0.3") },
    { host: "app.test", port: origin!.port },
    { ...fresh, retries: { count: 0 } },
  );
  const { status, proxyStatus, body } = await get();
  expect([status, proxyStatus]).toEqual([
    502,
    'sluice; error=connection_refused; details="the target refused the connection"',
  ]);
  expect(body).not.toContain("127.0.0");
  expect(plane.log.filter(({ message }) => message === "request failed")).toHaveLength(1);
});

test.concurrent(
  "requests wait for the first lookup, and no longer than connect_timeout",
  async () => {
    const [origin] = origins("127.0.0.2");
    const { get, dns } = await scene(
      { "app.test": a("127.0.0.2") },
      { host: "app.test", port: origin!.port },
      { mode: "silence", connect_timeout: 200, retries: { count: 0 } },
    );
    expect(await get()).toMatchObject({
      status: 504,
      proxyStatus: expect.stringContaining("error=connection_timeout"),
    });
    dns.mode = "zone";
    await eventually(async () => (await get()).status === 200);
  },
);

test.concurrent(
  "a name that does not exist is 502 dns_error, and works once it exists",
  async () => {
    const [origin] = origins("127.0.0.2");
    const { get, dns, plane } = await scene({}, { host: "app.test", port: origin!.port });
    const { status, proxyStatus, body } = await get();
    expect([status, proxyStatus]).toEqual([
      502,
      'sluice; error=dns_error; details="the target\'s name could not be resolved"',
    ]);
    expect(body).not.toContain("app.test");
    expect(plane.log).toContainEqual({
      level: "warn",
      message: "the name of a target could not be resolved",
      fields: expect.objectContaining({ name: "app.test", known_addresses: 0 }),
    });
    dns.zone.set("app.test", a("127.0.0.2"));
    await eventually(async () => (await get()).status === 200);
  },
);

test.concurrent(
  "a removed address loses its idle connections and gets no more requests",
  async () => {
    const [before, after] = origins("127.0.0.2", "127.0.0.3");
    const { get, dns } = await scene(
      { "app.test": a("127.0.0.2") },
      { host: "app.test", port: before!.port },
    );
    expect((await get()).body).toBe("127.0.0.2");
    expect(before!.connections.map(({ isClosed }) => isClosed)).toEqual([false]);
    dns.zone.set("app.test", a("127.0.0.3"));
    await eventually(() => before!.connections.every(({ isClosed }) => isClosed));
    const { length } = before!.requests;
    for (let i = 0; i < 3; i++) expect((await get()).body).toBe("127.0.0.3");
    expect([before!.requests.length, after!.requests.length]).toEqual([length, 3]);
  },
);

test.concurrent("an outage of the name servers changes nothing for known names", async () => {
  const [origin] = origins("127.0.0.2");
  const { get, dns, plane } = await scene(
    { "app.test": a("127.0.0.2") },
    { host: "app.test", port: origin!.port },
    fresh,
  );
  expect((await get()).status).toBe(200);
  dns.mode = "failure";
  await eventually(() => plane.log.some(({ message }) => message.includes("not be resolved")));
  for (let i = 0; i < 3; i++) expect((await get()).body).toBe("127.0.0.2");
});

test.concurrent("a known name is never looked up for a request", async () => {
  const [origin] = origins("127.0.0.2");
  const { get, dns } = await scene(
    { "app.test": [{ type: "A", value: "127.0.0.2", ttl: 300 }] },
    { host: "app.test", port: origin!.port },
    fresh,
  );
  for (let i = 0; i < 20; i++) await get();
  expect(dns.questions.sort()).toEqual(["A app.test", "AAAA app.test"]);
});

test.concurrent(
  "SRV records provide host and port, and a Host of the target has no port",
  async () => {
    const origin = startOrigin({
      hostname: "127.0.0.2",
      answer: (request) => reply(request.header("host")!),
    });
    stops.push(() => origin.stop());
    const { get } = await scene(
      {
        "_http._tcp.app.test": [{ type: "SRV", value: `0 5 ${origin.port} one.test` }],
        "one.test": a("127.0.0.2"),
      },
      { host: "_http._tcp.app.test", port: null },
      { resolve: "srv", host_header: "target" },
    );
    expect(await get()).toMatchObject({ status: 200, body: "app.test" });
  },
);

test.concurrent("a static name is looked up once for each version of its service", async () => {
  const [before] = origins("127.0.0.2", "127.0.0.3");
  const target = { host: "app.test", port: before!.port };
  const service = { name: "app", targets: [target], resolve: "static", ...fresh } as const;
  const { get, dns, plane } = await scene({ "app.test": a("127.0.0.2") }, target, service);
  expect((await get()).body).toBe("127.0.0.2");
  dns.zone.set("app.test", a("127.0.0.3"));
  expect((await get()).body).toBe("127.0.0.2");
  await plane.apply({ services: [{ ...service, connect_timeout: 4000 }] });
  await eventually(async () => (await get()).body === "127.0.0.3");
});
