// A stopping gateway completes requests in flight: bodies in both directions; idle connections do not delay it.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";

const cleanups = cleanupsOf(afterEach);

async function scene(answer: Origin["answer"]): Promise<{ gateway: Gateway; origin: Origin }> {
  const origin = startOrigin({ answer });
  cleanups.push(() => origin.stop());
  const gateway = await startGateway();
  cleanups.push(() => gateway.stop());
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  return { gateway, origin };
}

const open = ({ httpPort }: Gateway) => connectRaw({ port: httpPort });

async function stopBegins(gateway: Gateway): Promise<void> {
  gateway.signal("SIGTERM");
  await eventually(() =>
    open(gateway).then(
      (connection) => connection.close(),
      () => true,
    ),
  );
}

test("a streaming response completes", async () => {
  const { gateway, origin } = await scene(null);
  const client = await open(gateway);
  client.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  const [request] = await origin.untilRequests(1);
  const target = origin.connections[request!.connection]!;
  target.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
  await client.until("first");
  await stopBegins(gateway);
  target.write("6\r\nsecond\r\n");
  await client.until("second");
  target.write("5\r\nthird\r\n0\r\n\r\n");
  expect(await client.untilClosed()).toEndWith("5\r\nthird\r\n0\r\n\r\n");
  expect(await gateway.exited()).toBe(0);
});

test("an upload in flight completes with a response", async () => {
  const { gateway, origin } = await scene((request) => {
    const body = `${request.body.length} bytes`;
    return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  });
  const client = await open(gateway);
  client.write("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n");
  client.write("x".repeat(50_000));
  await eventually(() => origin.connections.some(({ received }) => received.length > 50_000));
  await stopBegins(gateway);
  client.write("x".repeat(50_000));
  expect(await client.untilClosed()).toEndWith("\r\n\r\n100000 bytes");
  expect(await gateway.exited()).toBe(0);
});

test("idle connections do not delay the stop", async () => {
  const { gateway } = await scene("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  const clients = await Promise.all(Array.from({ length: 20 }, () => open(gateway)));
  for (const client of clients) client.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  for (const client of clients) await client.until("\r\n\r\nok");
  // The settings allow half a minute; the test would time out long before.
  expect(await gateway.stop()).toBe(0);
  for (const client of clients) await client.untilClosed();
});
