// PROXY headers on listeners: trusted from configured networks only, required there, split or malformed.
import { describe, expect, test } from "bun:test";
import { writeProxyHeader } from "../../../src/net/proxy-protocol.ts";
import { eventually } from "../../support/poll.ts";
import { GET, mirrored, talk, useListeners } from "./world.ts";

const { api, listener } = useListeners();

const ends = {
  source: { address: "203.0.113.5", port: 4000 },
  destination: { address: "203.0.113.9", port: 443 },
};
const proxied = { proxy_protocol: true, trusted_proxies: ["127.0.0.1"] };
const v1 = writeProxyHeader("v1", ends);
const v2 = writeProxyHeader("v2", ends);

test.each([
  ["version 1", v1, "203.0.113.5"],
  ["version 2", v2, "203.0.113.5"],
  ["version 1 over IPv6", Buffer.from("PROXY TCP6 2001:DB8::5 ::1 9 80\r\n"), "2001:db8::5"],
  ["version 1, unknown", Buffer.from("PROXY UNKNOWN\r\n"), "127.0.0.1"],
  ["version 2, local", writeProxyHeader("v2", null), "127.0.0.1"],
])("%s names the client", async (_, header, client) => {
  const port = await listener(`good ${Bun.hash(header)}`, proxied);
  const request = Buffer.concat([header, Buffer.from(GET)]);
  expect(mirrored(await talk(port, [request]))["x-real-ip"]).toBe(client);
  expect(mirrored(await talk(port, [header, GET]))["x-real-ip"]).toBe(client);
  const bytes = [...request].map((byte) => Buffer.from([byte]));
  expect(mirrored(await talk(port, bytes))["x-real-ip"]).toBe(client);
});

test("the named client is the one for rules, and is no trusted proxy itself", async () => {
  const port = await listener("named", proxied);
  await api.create("/routes", {
    name: "barred",
    client_cidrs: ["203.0.113.0/24"],
    priority: 5,
    maintenance: { retry_after: 1, html: "barred" },
  });
  const get = GET.replace("\r\n\r\n", "\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n");
  expect(await talk(port, [v1, get])).toContain("barred");
  await api.call("DELETE /routes/barred");
  const fields = mirrored(await talk(port, [v1, get]));
  expect(fields["x-forwarded-for"]).toBe("203.0.113.5");
});

test("cloudflare is a trusted proxy by its name, on a listener and for all", async () => {
  const port = await listener("by name", {
    ...proxied,
    trusted_proxies: ["127.0.0.1", "cloudflare"],
  });
  const get = GET.replace("\r\n\r\n", "\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n");
  const clientOf = async (address: string, at = port) => {
    const source = { address, port: 4000 };
    const destination = {
      address: address.includes(":") ? "2001:db8::9" : "203.0.113.9",
      port: 80,
    };
    const header = writeProxyHeader("v2", { source, destination });
    return mirrored(await talk(at, [header, get]))["x-real-ip"];
  };
  expect(await clientOf("104.16.1.2")).toBe("192.0.2.1");
  expect(await clientOf("2606:4700::1")).toBe("192.0.2.1");
  expect(await clientOf("203.0.113.5")).toBe("203.0.113.5");
  const other = await listener("of the settings", proxied);
  expect(await clientOf("104.16.1.2", other)).toBe("104.16.1.2");
  await api.call("PATCH /settings", { body: { trusted_proxies: ["cloudflare"] } });
  expect(await clientOf("104.16.1.2", other)).toBe("192.0.2.1");
  const { status, body } = await api.call("PATCH /settings", {
    body: { trusted_proxies: ["cloudfare"] },
  });
  expect([status, body.error]).toEqual([400, expect.stringContaining("trusted_proxies[0]")]);
  // A newer list than the one that comes with the program.
  const networks = ["127.0.0.0/8", "198.51.100.0/24"];
  const own = { networks, published_on: "2026-11-30" };
  await api.call("PATCH /settings", { body: { cloudflare: own } });
  expect(await clientOf("198.51.100.7")).toBe("192.0.2.1");
  expect(await clientOf("198.51.100.7", other)).toBe("192.0.2.1");
  expect(await clientOf("104.16.1.2")).toBe("104.16.1.2");
  expect(await clientOf("104.16.1.2", other)).toBe("104.16.1.2");
  // It is also the list of those who may send the header itself.
  const byName = await listener("header by name", { ...proxied, trusted_proxies: ["cloudflare"] });
  expect(await clientOf("203.0.113.5", byName)).toBe("203.0.113.5");
  await api.call("PATCH /settings", { body: { cloudflare: null, trusted_proxies: [] } });
  expect(await clientOf("198.51.100.7")).toBe("198.51.100.7");
  expect(await clientOf("104.16.1.2")).toBe("192.0.2.1");
  expect(await talk(byName, [v1, GET])).toBe("");
});

test.each([
  [{ networks: ["192.0.2.0/24", "192.0.2.0/33"] }, "cloudflare.networks[1]"],
  [{ networks: ["cloudflare"] }, "cloudflare.networks[0]"],
  [{ networks: Array.from({ length: 1001 }, (_, at) => `10.0.${at >> 8}.${at & 255}`) }, "1000"],
  [{ published_on: "yesterday" }, "cloudflare.published_on"],
])(
  "a list of Cloudflare's networks with an error is refused whole: %#",
  async (cloudflare, place) => {
    const { status, body } = await api.call("PATCH /settings", { body: { cloudflare } });
    expect([status, body.error]).toEqual([400, expect.stringContaining(place)]);
    const stored = await api.call("GET /settings");
    expect(stored.body.cloudflare).toEqual({ networks: [], published_on: null });
  },
);

test("a list of Cloudflare's networks has at most a thousand", async () => {
  const networks = Array.from({ length: 1000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  const { status } = await api.call("PATCH /settings", { body: { cloudflare: { networks } } });
  expect(status).toBe(200);
  await api.call("PATCH /settings", { body: { cloudflare: null } });
});

describe("is closed without a response:", () => {
  test.each([
    ["no header", [GET]],
    ["a header that is wrong", ["PROXY TCP4 203.0.113.5 nonsense 1 2\r\n", GET]],
    ["a header without end", [`PROXY TCP4 ${"1".repeat(200)}`]],
    [
      "a line of version 3",
      [Buffer.concat([v2.subarray(0, 12), Buffer.from([0x31]), v2.subarray(13)])],
    ],
    ["an oversized header", [Buffer.concat([v2.subarray(0, 14), Buffer.from([0xff, 0xff])])]],
    ["TLS at once", [Buffer.from([22, 3, 1, 0, 4, 1, 0, 0, 0])]],
  ])("%s", async (name, parts) => {
    const port = await listener(`bad ${name}`, proxied);
    expect(await talk(port, parts)).toBe("");
    await eventually(() =>
      api.gateway.stderr
        .split("\n")
        .some((line) => line.includes(`bad ${name}`) && line.includes("PROXY")),
    );
  });

  test("a client outside trusted_proxies, before it has sent anything", async () => {
    const port = await listener("untrusted", proxied);
    expect(await talk(port, [], "127.0.0.2")).toBe("");
    expect(await talk(port, [v1, GET], "127.0.0.2")).toBe("");
    await eventually(() => api.gateway.stderr.includes("are not trusted"));
  });

  test("the networks of the settings do not count", async () => {
    await api.call("PATCH /settings", { body: { trusted_proxies: ["127.0.0.0/8"] } });
    const port = await listener("settings", { ...proxied, trusted_proxies: ["127.0.0.9"] });
    expect(await talk(port, [v1, GET])).toBe("");
    await api.call("PATCH /settings", { body: { trusted_proxies: [] } });
  });
});

test("limits for each address count the named client", async () => {
  const port = await listener("limited", { ...proxied, max_connections_per_address: 1 });
  const other = writeProxyHeader("v1", { ...ends, source: { address: "203.0.113.6", port: 1 } });
  const first = await new Promise<{ end(): void }>((resolve) => {
    void Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open: (socket) =>
          void socket.write(Buffer.concat([v1, Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n")])),
        data: (socket) => resolve(socket),
      },
    });
  });
  expect(await talk(port, [v1, GET])).toBe("");
  expect(await talk(port, [other, GET])).toStartWith("HTTP/1.1 200");
  first.end();
  await eventually(async () => (await talk(port, [v1, GET])).startsWith("HTTP/1.1 200"));
});

test("it is refused without trusted networks, and can be turned off again", async () => {
  const answer = await api.call("POST /listeners", {
    body: { name: "nobody", address: "127.0.0.1", port: 9, proxy_protocol: true },
  });
  expect([answer.status, answer.body.error]).toEqual([
    400,
    "trusted_proxies: is required with proxy_protocol: list the proxies whose PROXY header the gateway trusts",
  ]);
  const port = await listener("for a while", proxied);
  expect(await talk(port, [GET])).toBe("");
  await api.call("PATCH /listeners/for a while".replaceAll(" a ", "%20a%20"), {
    body: { proxy_protocol: false },
  });
  expect(await talk(port, [GET])).toStartWith("HTTP/1.1 200");
});
