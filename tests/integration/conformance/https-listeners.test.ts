// HTTPS listeners that share a port: the tests of the Gateway API's conformance suite by their names.
import { beforeAll, describe, expect, test } from "bun:test";
import { ask } from "../listeners/world.ts";
import { useWorld, v1, v2, v3 } from "./world.ts";

const world = useWorld();

beforeAll(async () => {
  await world.api.create("/certificates", {
    name: "tls-validity-checks-certificate",
    source: "self_signed",
    domains: ["example.org", "second-example.org", "unknown-example.org", "*.wildcard.org"],
  });
});

async function request(port: number, servername: string, host: string) {
  const { text } = await ask(
    port,
    { servername },
    `GET /detect-misdirected-requests HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
  );
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]),
    backend: /"backend":"([^"]*)"/.exec(text)?.[1] ?? null,
  };
}

test("HTTPRouteHTTPSListener", async () => {
  const port = await world.start({
    listeners: [{ name: "https", protocol: "https" }],
    rules: [{ route: { hosts: ["example.org"] }, to: v1 }],
  });
  expect(await request(port, "example.org", "example.org")).toEqual({ status: 200, backend: v1 });
  expect((await request(port, "example.org", "unknown-example.org")).status).toBe(404);
});

describe("HTTPRouteHTTPSListenerDetectMisdirectedRequests", () => {
  let port = 0;
  beforeAll(async () => {
    // The gateway knows the TLS name where it counts connections.
    const https = { protocol: "https", max_connections: 1000 };
    port = await world.start({
      listeners: [
        { name: "https", ...https },
        { name: "with-hostname", hosts: ["second-example.org"], ...https },
        { name: "with-wildcard", hosts: ["*.wildcard.org"], ...https },
        { name: "matching-wildcard", hosts: ["fourth-example.wildcard.org"], ...https },
      ],
      rules: [
        { route: { hosts: ["example.org"] }, to: v1 },
        { listeners: ["with-hostname"], to: v2 },
        { listeners: ["with-wildcard"], to: v3 },
        { listeners: ["matching-wildcard"], to: v1 },
      ],
    });
  });

  test.each([
    ["example.org", "example.org", 200, v1],
    ["example.org", "second-example.org", 421, null],
    ["example.org", "unknown-example.org", 404, null],
    ["second-example.org", "second-example.org", 200, v2],
    ["second-example.org", "example.org", 421, null],
    ["second-example.org", "unknown-example.org", 421, null],
    ["third-example.wildcard.org", "third-example.wildcard.org", 200, v3],
    ["third-example.wildcard.org", "fith-example.wildcard.org", 200, v3],
    ["third-example.wildcard.org", "fourth-example.wildcard.org", 421, null],
    ["third-example.wildcard.org", "second-example.org", 421, null],
    ["third-example.wildcard.org", "unknown-example.org", 421, null],
    ["fourth-example.wildcard.org", "fourth-example.wildcard.org", 200, v1],
    ["fourth-example.wildcard.org", "fith-example.wildcard.org", 421, null],
    ["unknown-example.org", "example.org", 200, v1],
    ["unknown-example.org", "unknown-example.org", 404, null],
  ])("name %s, host %s is %d", async (name, host, status, backend) => {
    expect(await request(port, name, host)).toEqual({ status, backend });
  });
});
