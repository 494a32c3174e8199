// Sessions to targets with names: one for each address under load, and none to an address that is gone.
import { afterAll, expect, test } from "bun:test";
import type { ServerHttp2Stream } from "node:http2";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { type DnsRecord, startDnsServer } from "../../support/dns-server.ts";
import { eventually } from "../../support/poll.ts";
import { type Http2Target, startHttp2Target } from "./target.ts";

const stops = cleanupsOf(afterAll);

const a = (...values: string[]): DnsRecord[] => values.map((value) => ({ type: "A", value }));

/** Targets on one port of several addresses; requests are held until the test responds. */
async function scene(hosts: readonly string[], known: readonly string[]) {
  const held: ServerHttp2Stream[] = [];
  let port = 0;
  const targets: Http2Target[] = [];
  for (const host of hosts) {
    const target = await startHttp2Target((stream) => held.push(stream), {}, { host, port });
    stops.push(() => target.stop());
    port = target.port;
    targets.push(target);
  }
  const dns = await startDnsServer({ "app.test": a(...known) });
  stops.push(dns.stop);
  const gateway = await startDataPlane({
    services: [{ name: "app", protocol: "h2c", targets: [{ host: "app.test", port }] }],
    routes: [{ name: "all", service_id: "app" }],
    dnsServers: [dns.address],
  });
  stops.push(() => gateway.stop());
  const respond = () => {
    for (const stream of held.splice(0)) {
      stream.respond({ ":status": 200 });
      stream.end("x");
    }
  };
  return { targets, dns, gateway, held, respond };
}

test("requests at the same time use all addresses", async () => {
  const { targets, gateway, held, respond } = await scene(
    ["127.0.0.2", "127.0.0.3"],
    ["127.0.0.2", "127.0.0.3"],
  );
  const all: Promise<Response>[] = [];
  for (let index = 0; index < 20; index++) {
    all.push(fetch(gateway.url));
    await eventually(() => held.length === all.length);
  }
  expect(targets.map(({ sessions, requests }) => [sessions.length, requests.length])).toEqual([
    [1, 10],
    [1, 10],
  ]);
  respond();
  for (const response of await Promise.all(all)) expect(response.status).toBe(200);
});

test("a stream to an address that is gone ends in its own time; new ones go elsewhere", async () => {
  const { targets, dns, gateway, held, respond } = await scene(
    ["127.0.0.2", "127.0.0.3"],
    ["127.0.0.2"],
  );
  const old = fetch(gateway.url);
  await eventually(() => held.length === 1);
  dns.zone.set("app.test", a("127.0.0.3"));
  const others: Promise<Response>[] = [];
  await eventually(
    async () => {
      others.push(fetch(gateway.url));
      await eventually(() => held.length === 1 + others.length);
      return targets[1]!.requests.length > 0;
    },
    { intervalMs: 200 },
  );
  expect(targets[0]!.sessions[0]!.destroyed).toBe(false);
  respond();
  for (const response of await Promise.all([old, ...others])) expect(response.status).toBe(200);
  await eventually(() => targets[0]!.sessions[0]!.destroyed);
});
