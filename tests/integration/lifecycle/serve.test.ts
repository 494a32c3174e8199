// The whole product as a process: it starts, serves, is restarted and stopped.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, type GatewayOptions, program, startGateway } from "../../support/gateway.ts";
import { listeningAddresses } from "../../support/listening.ts";
import { needs } from "../../support/needs.ts";
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

test("a restart serves the same configuration on the same ports with the same certificate", async () => {
  const gateway = await gatewayFor();
  await publish(gateway, originFor());
  const { httpPort, httpsPort } = gateway;
  const certificate = () => Bun.file(join(gateway.dataDir, "sluice.pem")).text();
  const before = await certificate();
  await gateway.restart();
  expect([gateway.httpPort, gateway.httpsPort]).toEqual([httpPort, httpsPort]);
  expect(await certificate()).toBe(before);
  expect(parseResponse(await sendRaw(get, { port: httpPort })).status).toBe(200);
  expect(parseResponse(await sendRaw(get, { port: httpsPort, tls: true })).status).toBe(200);
});

test("only the owner can read the data directory, now and after a restart", async () => {
  const gateway = await gatewayFor();
  const { dataDir } = gateway;
  await gateway.ok("POST", "/api/v1/services", { name: "any" });
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  const check = () => {
    expect(modeOf(dataDir)).toBe("700");
    // Bun itself caches below HOME when it runs sources, and tests set HOME to that directory.
    const files = readdirSync(dataDir).filter((name) => name !== ".bun");
    expect(files).toContain("sluice.db");
    expect(files).toContain("sluice.pem");
    const modes = files.map((name) => [name, modeOf(join(dataDir, name))]);
    expect(modes).toEqual(files.map((name) => [name, "600"]));
  };
  check();
  await gateway.restart();
  check();
});

needs("private network").test(
  "without a flag the management API listens on 127.0.0.1:9080 alone and sites on all addresses",
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "sluice-test-"));
    cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
    // In its own network namespace, so that the fixed ports are free and no other process is reachable.
    const child = Bun.spawn(
      [
        ...["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"'],
        ...["sh", ...program(), "serve"],
      ],
      {
        cwd: dataDir,
        env: { PATH: process.env["PATH"] ?? "", HOME: dataDir },
        stdio: ["ignore", "ignore", "ignore"],
      },
    );
    cleanups.push(() => {
      child.kill();
      return child.exited;
    });
    const wanted = ["0.0.0.0:8080", "0.0.0.0:8443", "127.0.0.1:9080"];
    // The self-test of TLS has sockets on 127.0.0.1 of its own for a moment.
    await eventually(() => listeningAddresses(child.pid).join() === wanted.join());
    expect(readdirSync(dataDir)).toContain("data");
  },
);

test("the sources serve as the executable does", async () => {
  const gateway = await gatewayFor({ binary: "" });
  await publish(gateway, originFor());
  const source = 'export const onRequest = ({ reply }) => reply(200, { body: "scripted" });';
  await gateway.ok("POST", "/api/v1/plugins", { name: "script", config: { source } });
  expect(parseResponse(await sendRaw(get, { port: gateway.httpPort })).body).toBe("scripted");
  expect((await gateway.api("GET", "/docs/scalar.js")).status).toBe(200);
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

test("SIGINT ends it with code 0, too", async () => {
  const gateway = await gatewayFor();
  gateway.signal("SIGINT");
  expect(await gateway.exited()).toBe(0);
  expect(gateway.log.at(-1)?.message).toBe("stopped");
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
