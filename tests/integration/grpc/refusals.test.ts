// Responses of the gateway and of plugins to gRPC calls: statuses in the place of pages.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { freePort, type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { GrpcClient } from "../../support/grpc-calls.ts";

let plane: RunningDataPlane;
let client: GrpcClient;

beforeAll(async () => {
  plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice" },
    services: [
      { name: "closed", protocol: "grpc", targets: [{ port: freePort() }] },
      { name: "empty", protocol: "grpc" },
    ],
    routes: [
      { name: "closed", paths: ["/closed.S"], service_id: "closed" },
      { name: "empty", paths: ["/empty.S"], service_id: "empty" },
      { name: "maintained", paths: ["/maintained.S"], service_id: "empty", maintenance: {} },
      ...["key", "acl", "ip", "limited", "big", "page", "teapot", "elsewhere"].map((name) => ({
        name,
        paths: [`/${name}.S`],
        service_id: "closed",
      })),
    ],
    plugins: [
      { name: "key-auth", routeId: "key" },
      { name: "ip-restriction", routeId: "ip", config: { allow: ["192.0.2.1"] } },
      {
        name: "rate-limit",
        routeId: "limited",
        config: { limits: [{ requests: 1, window: 3600 }] },
      },
      { name: "request-size-limit", routeId: "big", config: { max_uri_bytes: 10 } },
      { name: "error-pages", routeId: "ip", label: "pages", config: {} },
      { name: "respond", routeId: "teapot", config: { status: 418, body: "short and stout" } },
    ],
  });
  client = GrpcClient.connect(plane.port);
});
afterAll(async () => {
  client.close();
  await plane.stop();
});

describe("a gRPC client gets a response of trailers alone", () => {
  test.each([
    ["/none.S/M", 12, "no route matches this request"],
    ["/empty.S/M", 14, "no target is available"],
    ["/maintained.S/M", 14, "Service Unavailable"],
    ["/key.S/M", 16, "an API key is required"],
    ["/ip.S/M", 7, ""],
    ["/big.S/VeryLongMethod", 2, "the URL is too long"],
    ["/teapot.S/M", 2, ""],
  ])("%s: status %d", async (path, status, message) => {
    const call = await client.unary(path);
    expect(call.headers[":status"]).toBe(200 as never);
    expect(call.headers["content-type"]).toBe("application/grpc");
    expect(call.headers["content-length"]).toBeUndefined();
    expect(call.status).toBe(status);
    expect(call.message).toContain(message);
    expect(call.messages).toEqual([]);
  });

  test("with the headers of a rate limit", async () => {
    const before = await client.unary("/limited.S/M");
    expect(before.status).toBe(14);
    const call = await client.unary("/limited.S/M");
    expect(call.status).toBe(8);
    expect(call.headers["retry-after"]).toBeDefined();
    expect(Object.keys(call.headers).some((name) => name.startsWith("ratelimit"))).toBeTrue();
  });

  test("for a deadline that is not valid", async () => {
    const call = await client.unary("/closed.S/M", "", { "grpc-timeout": "soon" });
    expect(call.status).toBe(13);
    expect(call.message).toBe("the field grpc-timeout is not valid");
  });
});

test("other requests get pages as before", async () => {
  for (const type of ["application/grpc-web+proto", "application/json"]) {
    const call = await client.unary("/none.S/M", "", { "content-type": type });
    expect(call.headers[":status"]).toBe(404 as never);
    expect(call.headers["grpc-status"]).toBeUndefined();
  }
});

test("an engine without trailers refuses gRPC, and says what to change", async () => {
  const standard = await startDataPlane({
    services: [{ name: "any", protocol: "h2c", targets: [{ port: freePort() }] }],
    routes: [{ name: "any", service_id: "any" }],
  });
  const ask = (type: string) =>
    fetch(standard.url, { method: "POST", headers: { "content-type": type }, body: "x" });
  const refused = await ask("application/grpc+proto");
  expect(refused.status).toBe(421);
  expect(await refused.text()).toContain('it needs engine "sluice"');
  expect((await ask("application/grpc-web")).status).not.toBe(421);
  await standard.stop();
});
