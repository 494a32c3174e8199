// How many connections clients have, and streams of HTTP/2 on them: in the metrics and in the statistics.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { freePort } from "../../support/data-plane.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { H2Client } from "../../support/h2-client.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";

let gateway: Gateway;
let origin: Origin;
const ports = { http: freePort(), https: freePort() };

beforeAll(async () => {
  // Never responds.
  origin = startOrigin({ answer: null });
  gateway = await startGateway({ workers: 2 });
  for (const protocol of ["http", "https"] as const)
    await gateway.ok("POST", "/api/v1/listeners", {
      name: `own-${protocol}`,
      address: "127.0.0.1",
      port: ports[protocol],
      protocol,
      engine: "sluice",
    });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "app", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "app" });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

async function counts() {
  const text = await (await fetch(`${gateway.admin}/metrics`)).text();
  const metrics = readMetrics(text, "prometheus");
  const connections = (http_version: string) =>
    metrics.sum("sluice_client_connections_open", { http_version });
  const { now } = await gateway.ok("GET", "/api/v1/stats");
  return {
    metrics: [connections("1"), connections("2"), metrics.sum("sluice_http2_streams_open")],
    stats: [now.open_connections, now.open_http2_streams],
  };
}

test("connections and streams are counted while they are open", async () => {
  const settled = async (expected: Awaited<ReturnType<typeof counts>>) => {
    await eventually(async () => Bun.deepEquals(await counts(), expected)).catch(() => null);
    expect(await counts()).toEqual(expected);
  };
  await settled({ metrics: [0, 0, 0], stats: [0, 0] });
  const idle = await connectRaw({ port: ports.http });
  idle.write("G");
  const busy = await connectRaw({ port: ports.https, tls: true });
  busy.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const multiplexed = [
    await H2Client.connect({ port: ports.http }),
    await H2Client.connect({ port: ports.https, tls: true }),
  ];
  for (const client of multiplexed)
    for (let count = 0; count < 3; count++)
      client.headers([
        [":method", "GET"],
        [":scheme", "http"],
        [":authority", "h"],
        [":path", "/"],
      ]);
  await settled({ metrics: [2, 2, 6], stats: [4, 6] });
  multiplexed[0]?.resetStream(1);
  idle.close();
  await settled({ metrics: [1, 2, 5], stats: [3, 5] });
  busy.close();
  for (const client of multiplexed) client.close();
  await settled({ metrics: [0, 0, 0], stats: [0, 0] });
});
