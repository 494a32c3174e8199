// The whole product as a process: it starts, serves, is restarted and stopped.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, type GatewayOptions, startGateway } from "../../support/gateway.ts";
import { type Origin, type OriginOptions, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, parseResponse, sendRaw } from "../../support/raw-http.ts";

const cleanups = cleanupsOf(afterEach);

async function gatewayFor(options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await startGateway(options);
  cleanups.push(() => gateway.stop());
  return gateway;
}

function originFor(options: OriginOptions = {}): Origin {
  const origin = startOrigin(options);
  cleanups.push(() => origin.stop());
  return origin;
}

async function publish(gateway: Gateway, origin: Origin): Promise<void> {
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
}

const get = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

test("a route serves over HTTP and HTTPS as soon as its creation is confirmed", async () => {
  const gateway = await gatewayFor();
  await publish(gateway, originFor());
  const plain = parseResponse(await sendRaw(get, { port: gateway.httpPort }));
  const encrypted = parseResponse(await sendRaw(get, { port: gateway.httpsPort, tls: true }));
  expect([plain.status, plain.body, encrypted.status]).toEqual([200, "ok", 200]);
});

test("a restart serves the same configuration on the same ports", async () => {
  const gateway = await gatewayFor();
  await publish(gateway, originFor());
  const { httpPort } = gateway;
  await gateway.restart();
  expect(gateway.httpPort).toBe(httpPort);
  expect(parseResponse(await sendRaw(get, { port: httpPort })).status).toBe(200);
});

test("changes confirmed with 200 survive a kill -9", async () => {
  const gateway = await gatewayFor();
  await publish(gateway, originFor());
  await gateway.kill9();
  await gateway.start();
  expect(parseResponse(await sendRaw(get, { port: gateway.httpPort })).status).toBe(200);
});

test("SIGTERM completes a request in flight, refuses new connections, and ends with code 0", async () => {
  const gateway = await gatewayFor();
  const held = Promise.withResolvers<string>();
  const origin = originFor({ answer: () => held.promise });
  await publish(gateway, origin);
  const client = await connectRaw({ port: gateway.httpPort });
  client.write(get);
  await origin.untilRequests(1);
  gateway.signal("SIGTERM");
  await eventually(() => refuses(gateway.httpPort));
  held.resolve(reply("late"));
  expect(parseResponse(await client.untilClosed()).body).toBe("late");
  expect(await gateway.exited()).toBe(0);
});

test("a request that exceeds shutdown_timeout is aborted, and the code is still 0", async () => {
  const gateway = await gatewayFor();
  const origin = originFor({ answer: null });
  await publish(gateway, origin);
  await gateway.ok("PATCH", "/api/v1/settings", { limits: { shutdown_timeout: 100 } });
  const client = await connectRaw({ port: gateway.httpPort });
  client.write(get);
  await origin.untilRequests(1);
  gateway.signal("SIGTERM");
  expect(await gateway.exited()).toBe(0);
  expect(gateway.log.find(({ message }) => /aborted/.test(message))?.["requests"]).toBe(1);
});

test("a second signal ends the gateway at once", async () => {
  const gateway = await gatewayFor();
  const origin = originFor({ answer: null });
  await publish(gateway, origin);
  const client = await connectRaw({ port: gateway.httpPort });
  client.write(get);
  await origin.untilRequests(1);
  gateway.signal("SIGTERM");
  await eventually(() => gateway.log.some(({ message }) => message === "stopping"));
  gateway.signal("SIGINT");
  expect(await gateway.exited()).toBe(1);
});

async function refuses(port: number): Promise<boolean> {
  try {
    (await connectRaw({ port })).close();
    return false;
  } catch {
    return true;
  }
}
