// Redirects that name the target's own address get the client's: which ones, to where, and none besides.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { selfSigned } from "../../support/certificate.ts";
import {
  type RunningDataPlane,
  type ServiceSketch,
  startDataPlane,
} from "../../support/data-plane.ts";
import { engines } from "../../support/engines.ts";
import { startHttp2Target } from "../upstream-http2/target.ts";

/** Sends the request's `x-location` and `x-refresh` back as Location and Refresh, with its own host and port for TARGET. */
function startTarget(
  options: { readonly tls?: { cert: string; key: string }; readonly unix?: string } = {},
) {
  const server = Bun.serve({
    ...(options.unix === undefined ? { hostname: "127.0.0.1", port: 0 } : { unix: options.unix }),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    fetch(request) {
      const own = (text: string) => text.replaceAll("TARGET", `127.0.0.1:${server.port}`);
      const headers = new Headers();
      for (const name of ["location", "refresh"]) {
        const value = request.headers.get(`x-${name}`);
        if (value !== null) headers.set(name, own(value));
      }
      // Longer than a header of a request may be.
      if (new URL(request.url).pathname === "/long-refresh")
        headers.set("refresh", `0;url=${" ".repeat(30_000)}"x`);
      return new Response("moved", { status: 302, headers });
    },
  });
  return server;
}

const directory = mkdtempSync(join(tmpdir(), "sluice-redirect-"));
const socket = join(directory, "socket");
let targets: Bun.Server<undefined>[];
let http2: Awaited<ReturnType<typeof startHttp2Target>>;

beforeAll(async () => {
  targets = [
    startTarget(),
    startTarget(),
    startTarget({ tls: await selfSigned("localhost") }),
    startTarget({ unix: socket }),
  ];
  http2 = await startHttp2Target((stream, fields) => {
    const location = String(fields["x-location"]).replace("TARGET", `127.0.0.1:${http2.port}`);
    stream.respond({ ":status": 307, location });
    stream.end("moved");
  });
});
afterAll(async () => {
  http2.stop();
  for (const target of targets) await target.stop(true);
  rmSync(directory, { recursive: true });
});

const portOf = (index: number) => targets[index]?.port ?? 0;

describe.each(engines)("%s engine:", (engine) => {
  let plane: RunningDataPlane;
  let trusting: RunningDataPlane;
  beforeAll(async () => {
    const at = (...ports: number[]) => ports.map((port) => ({ port }));
    const services: ServiceSketch[] = [
      { name: "plain", targets: at(portOf(0)) },
      { name: "off", targets: at(portOf(0)), rewrite_redirects: false },
      { name: "named", targets: [{ host: "localhost", port: portOf(0) }] },
      { name: "based", path: "/base", targets: at(portOf(0)) },
      { name: "tls", protocol: "https", targets: at(portOf(2)), tls: { verify: false } },
      { name: "unix", targets: [{ host: `unix:${socket}`, port: null }] },
      { name: "h2c", protocol: "h2c", targets: at(http2.port) },
      {
        name: "two",
        algorithm: "first",
        targets: at(portOf(0), portOf(1)),
      },
    ];
    const sketch = {
      services,
      routes: [
        ...services.map(({ name }) => ({ name, service_id: name, hosts: [`${name}.test`] })),
        {
          name: "strip",
          service_id: "plain",
          hosts: ["strip.test"],
          paths: ["/app"],
          strip_path: true,
        },
        {
          name: "replace",
          service_id: "based",
          hosts: ["replace.test"],
          paths: ["/shop/", "/store"],
          prefix_rewrite: "/cart",
        },
        {
          name: "exact",
          service_id: "plain",
          hosts: ["exact.test"],
          paths: ["=/x", "/y"],
          strip_path: true,
        },
        { name: "own", service_id: "plain", hosts: ["127.0.0.1"] },
      ],
    };
    plane = await startDataPlane({ ...sketch, listener: { engine } });
    trusting = await startDataPlane({
      ...sketch,
      listener: { engine, trusted_proxies: ["127.0.0.1"] },
    });
  });
  afterAll(() => Promise.all([plane.stop(), trusting.stop()]));

  interface Asked {
    readonly host?: string;
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly from?: RunningDataPlane;
  }

  async function ask({ host = "plain.test", path = "/", headers = {}, from = plane }: Asked) {
    return await fetch(from.url + path, { redirect: "manual", headers: { host, ...headers } });
  }

  const locationOf = async (location: string, asked: Asked = {}) =>
    (await ask({ ...asked, headers: { ...asked.headers, "x-location": location } })).headers.get(
      "location",
    );

  test.each([
    ["http://TARGET/login?next=%2F#top", "http://plain.test/login?next=%2F#top"],
    ["HTTP://TARGET/a", "http://plain.test/a"],
    ["http://TARGET", "http://plain.test/"],
    ["http://TARGET?a=1", "http://plain.test/?a=1"],
    ["http://TARGET//evil.test/", "http://plain.test//evil.test/"],
  ])("%s leads to the client's address", async (sent, received) => {
    expect(await locationOf(sent)).toBe(received);
  });

  test.each([
    "/relative",
    "relative",
    "//TARGET/network",
    "https://TARGET/other-scheme",
    "http://127.0.0.1/other-port",
    "http://127.0.0.1:1/other-port",
    "http://localhost:1/other-host",
    "http://other.test/",
    "http://user@TARGET/user",
    "http://user:secret@TARGET/user",
    "http://TARGET.evil.test/suffix",
    "http://TARGET@evil.test/",
    "http://TARGET\\@evil.test/",
    "http://TARGET%2eevil.test/",
    "http://TARGET/a b",
    "http://TARGET/a, http://TARGET/b",
    "http:/TARGET/a",
    "http:TARGET/a",
    "ws://TARGET/a",
    "http://[::ffff:127.0.0.1]/",
    "http://0x7f000001/",
    "javascript:alert(1)",
  ])("%s stays as it is", async (sent) => {
    const received = await locationOf(sent);
    expect(received).toBe(sent.replaceAll("TARGET", `127.0.0.1:${portOf(0)}`));
  });

  test("the client's port stays in its address", async () => {
    expect(await locationOf("http://TARGET/a", { host: "plain.test:8443" })).toBe(
      "http://plain.test:8443/a",
    );
  });

  test("Refresh too, with its delay and quotes", async () => {
    const refreshOf = async (value: string) =>
      (await ask({ headers: { "x-refresh": value } })).headers.get("refresh");
    expect(await refreshOf("5; url=http://TARGET/a")).toBe("5; url=http://plain.test/a");
    expect(await refreshOf("0;URL='http://TARGET/a'")).toBe("0;URL='http://plain.test/a'");
    expect(await refreshOf("5")).toBe("5");
    expect(await refreshOf("5; url=http://other.test/")).toBe("5; url=http://other.test/");
  });

  test("a long Refresh takes linear time", async () => {
    const value = `0;url=${" ".repeat(30_000)}"x`;
    const { headers } = await ask({ path: "/long-refresh" });
    expect(headers.get("refresh")).toBe(value);
  });

  test("the switch of the service turns it off", async () => {
    expect(await locationOf("http://TARGET/a", { host: "off.test" })).toBe(
      `http://127.0.0.1:${portOf(0)}/a`,
    );
  });

  test("only the name of the target as configured counts, not its address", async () => {
    const host = "named.test";
    expect(await locationOf(`http://localhost:${portOf(0)}/a`, { host })).toBe(
      "http://named.test/a",
    );
    expect(await locationOf("http://TARGET/a", { host })).toBe(`http://127.0.0.1:${portOf(0)}/a`);
  });

  test("where the target's address is the client's own, nothing changes", async () => {
    const own = `127.0.0.1:${portOf(0)}`;
    expect(await locationOf("http://TARGET/a", { host: own })).toBe(`http://${own}/a`);
    // Another port is another address.
    expect(await locationOf("http://TARGET/a", { host: "127.0.0.1" })).toBe("http://127.0.0.1/a");
  });

  test("only the target of this attempt counts", async () => {
    const host = "two.test";
    expect(await locationOf(`http://127.0.0.1:${portOf(0)}/a`, { host })).toBe("http://two.test/a");
    const other = `http://127.0.0.1:${portOf(1)}/a`;
    expect(await locationOf(other, { host })).toBe(other);
  });

  test("targets with TLS have https URLs", async () => {
    const host = "tls.test";
    expect(await locationOf("https://TARGET/a", { host })).toBe("http://tls.test/a");
    expect(await locationOf("http://TARGET/a", { host })).toBe(`http://127.0.0.1:${portOf(2)}/a`);
  });

  test("unix sockets have the name localhost", async () => {
    expect(await locationOf("http://localhost/a", { host: "unix.test" })).toBe(
      "http://unix.test/a",
    );
  });

  test("targets over HTTP/2 too", async () => {
    expect(await locationOf("http://TARGET/a", { host: "h2c.test" })).toBe("http://h2c.test/a");
  });

  test.each([
    ["strip.test", "/app/x", "/login", "/app/login"],
    ["strip.test", "/app", "", "/app/"],
    ["strip.test", "/app/", "?a", "/app/?a"],
    ["replace.test", "/shop/x", "/base/cart/1", "/shop/1"],
    ["replace.test", "/store/x", "/base/cart", "/store"],
    ["replace.test", "/store/x", "/base/cart?a=/b", "/store?a=/b"],
    ["replace.test", "/store/x", "/base/carts", null],
    ["replace.test", "/store/x", "/base", null],
    ["replace.test", "/store/x", "/", null],
    ["based.test", "/x", "/base/y", "/y"],
    ["based.test", "/x", "/y", null],
    ["exact.test", "/x", "/z", "/z"],
    ["exact.test", "/y/1", "/z", "/y/z"],
  ])("%s%s: the target's %s", async (host, path, sent, received) => {
    const target = `http://127.0.0.1:${portOf(0)}`;
    const location = await locationOf(`http://TARGET${sent}`, { host, path });
    expect(location).toBe(received === null ? target + sent : `http://${host}${received}`);
  });

  const forwarded = { "x-forwarded-host": "public.test", "x-forwarded-proto": "https" };

  test("the address is that which a trusted proxy names", async () => {
    expect(await locationOf("http://TARGET/a", { headers: forwarded, from: trusting })).toBe(
      "https://public.test/a",
    );
  });

  test.each(["evil.test/x", "a@evil.test", "evil.test\\x", ""])(
    "an invalid X-Forwarded-Host %p counts for nothing",
    async (host) => {
      const headers = { ...forwarded, "x-forwarded-host": host };
      expect(await locationOf("http://TARGET/a", { headers, from: trusting })).toBe(
        "https://plain.test/a",
      );
    },
  );

  test("clients cannot name an address in X-Forwarded-Host", async () => {
    expect(await locationOf("http://TARGET/a", { headers: forwarded })).toBe("http://plain.test/a");
  });

  test("equal responses to clients of other hosts differ", async () => {
    const hosts = ["plain.test", "PLAIN.test:1", "plain.test", "plain.test:2"];
    for (const host of hosts)
      expect(await locationOf("http://TARGET/a", { host })).toBe(`http://${host}/a`);
  });

  test("a refused WebSocket handshake too", async () => {
    const headers = {
      ...{ upgrade: "websocket", connection: "Upgrade", "sec-websocket-version": "13" },
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    expect(await locationOf("http://TARGET/login", { headers })).toBe("http://plain.test/login");
  });
});
