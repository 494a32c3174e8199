// Metrics and the request list of listeners, with what TLS tells of their clients.
import { describe, expect, test } from "bun:test";
import { curl } from "../../support/curl.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { usePeople } from "./people.ts";
import { ask, useListeners } from "./world.ts";

const { api, listener } = useListeners();
const people = usePeople(api);
const { required, shown } = people;

test("handshakes are counted, and requests show the TLS version", async () => {
  const port = await listener("shaken", required());
  for (let round = 0; round < 3; round++)
    await ask(port, { servername: "a.test", minVersion: "TLSv1.3", ...shown(people.good) });
  const handshakes = (result: string) => async () => {
    const text = await (await api.gateway.api("GET", "/metrics")).text();
    const { sum } = readMetrics(text, "prometheus");
    return sum("sluice_tls_handshakes_total", { listener: "shaken", result });
  };
  await eventually(async () => (await handshakes("ok")()) === 3);
  const [request] = await api.gateway.ok("GET", "/api/v1/requests?limit=1");
  expect(request).toMatchObject({ scheme: "https", tls_version: "TLSv1.3" });
  expect(await handshakes("failed")()).toBe(0);
});

describe("versions of TLS and HTTP", () => {
  const { test } = needs("curl");

  /** What the list says of a request that curl makes; a path of its own tells it from all others. */
  async function told(port: number, scheme: string, args: readonly string[]) {
    const path = `/told-${Bun.randomUUIDv7()}`;
    const { status } = await curl(`${scheme}://127.0.0.1:${port}${path}`, ["--insecure", ...args]);
    expect(status).toBe(200);
    const [found] = await eventually(async () => {
      const all = await api.gateway.ok("GET", `/api/v1/requests?q=${path}`);
      return all.length === 1 ? all : null;
    });
    return [found.tls_version, found.http_version];
  }
  const https = { protocol: "https" };
  const bun = { engine: "bun" };

  test("are known of listeners with the engine sluice", async () => {
    const port = await listener("looking", { ...https, max_connections: 100 });
    expect(await told(port, "https", ["--http2"])).toEqual(["TLSv1.3", "2"]);
    expect(await told(port, "https", ["--http1.1"])).toEqual(["TLSv1.3", "1.1"]);
    expect(await told(port, "https", ["--http2", "--tls-max", "1.2"])).toEqual(["TLSv1.2", "2"]);
    expect(await told(port, "https", ["--no-alpn"])).toEqual(["TLSv1.3", "1.1"]);
  });

  test("are known on Bun's engine where only one is possible", async () => {
    const one = await listener("only-one", {
      ...https,
      ...bun,
      http2: false,
      tls_min_version: "1.3",
    });
    expect(await told(one, "https", [])).toEqual(["TLSv1.3", "1"]);
    const plain = await listener("only-1.1", { ...bun, http2: false });
    expect(await told(plain, "http", [])).toEqual([null, "1"]);
  });

  test("are not guessed on Bun's engine, except where only one of them is possible", async () => {
    const port = await listener("direct", { ...https, ...bun });
    expect(await told(port, "https", ["--http2"])).toEqual([null, null]);
    expect(await told(port, "https", ["--http1.1"])).toEqual([null, null]);
    const kept = ["--http1.1", "--header", "Connection: keep-alive"];
    expect(await told(port, "https", kept)).toEqual([null, "1"]);
    const plain = await listener("direct-plain", bun);
    expect(await told(plain, "http", ["--http2-prior-knowledge"])).toEqual([null, null]);
  });
});
