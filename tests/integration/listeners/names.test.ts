// TLS server names: strict listeners, and stream routes that match names at the port of an https listener.
import { beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { connect as connectTls, createServer, type TLSSocket } from "node:tls";
import { Authority } from "../../support/authority.ts";
import { selfSigned } from "../../support/certificate.ts";
import { chosenCipher } from "../../support/cipher.ts";
import { curl } from "../../support/curl.ts";
import { freePort } from "../../support/data-plane.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { ask, GET, mirrored, talk, useListeners } from "./world.ts";

const { api, listener } = useListeners();

beforeAll(async () => {
  await api.create("/certificates", {
    name: "shop",
    source: "self_signed",
    domains: ["shop.test", "*.shop.test"],
  });
});

/** The first bytes of a client that asks for the name. */
async function helloOf(servername: string): Promise<Buffer> {
  return await new Promise((resolve) => {
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket, bytes) {
          resolve(Buffer.from(bytes));
          socket.terminate();
          server.stop(true);
        },
      },
    });
    void ask(server.port, { servername });
  });
}

describe("a strict listener", () => {
  test.each([
    ["shop.test", "shop.test"],
    ["SHOP.test", "shop.test"],
    ["a.shop.test", "shop.test"],
    ["a.b.shop.test", null],
    ["other.test", null],
    [undefined, null],
  ])("for server name %s presents %p", async (servername, certificate) => {
    const port = await listener(`strict ${servername}`, { protocol: "https", strict_sni: true });
    const options = servername === undefined ? {} : { servername };
    for (let round = 0; round < 4; round++) {
      const answer = await ask(port, options);
      expect(answer.certificate).toBe(certificate);
      if (certificate === null) expect(answer.text).toBe("");
      else expect(answer.text).toStartWith("HTTP/1.1 200");
    }
  });

  test("refuses with the alert unrecognized_name", async () => {
    const port = await listener("alert", { protocol: "https", strict_sni: true });
    expect(await talk(port, [await helloOf("nobody.test")])).toBe("\x15\x03\x03\x00\x02\x02\x70");
  });

  needs("openssl").test("sends an alert that openssl understands", async () => {
    const port = await listener("alert for openssl", { protocol: "https", strict_sni: true });
    const child = Bun.spawn(
      ["openssl", "s_client", "-connect", `127.0.0.1:${port}`, "-servername", "nobody.test"],
      { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
    );
    expect(await new Response(child.stderr).text()).toContain("unrecognized name");
  });

  needs("openssl").test.each([
    ["direct", {}],
    ["with a rule for names", { strict_sni: true }],
    ["with client certificates", { http2: false, client_auth: "request" }],
  ])("%s chooses the cipher: a client that offers CBC first gets GCM", async (kind, fields) => {
    const { cert: client_ca } = await Authority.create("ciphers");
    const ca = "client_auth" in fields ? { client_ca } : {};
    const port = await listener(`ciphers ${kind}`, { protocol: "https", ...fields, ...ca });
    expect(await chosenCipher(port, "shop.test")).toMatch(/^ECDHE-\w+-AES128-GCM-SHA256$/);
  });

  test("uses a new certificate at once, and a deleted one no more", async () => {
    const port = await listener("fresh", { protocol: "https", strict_sni: true });
    const made = { name: "fresh", source: "self_signed", domains: ["fresh.test"] };
    expect((await ask(port, { servername: "fresh.test" })).certificate).toBeNull();
    await api.create("/certificates", made);
    expect((await ask(port, { servername: "fresh.test" })).certificate).toBe("fresh.test");
    await api.call("DELETE /certificates/fresh");
    expect((await ask(port, { servername: "fresh.test" })).certificate).toBeNull();
  });

  test("accepts a ClientHello in pieces, and closes on anything else", async () => {
    const port = await listener("pieces", { protocol: "https", strict_sni: true });
    const hello = await helloOf("shop.test");
    const third = Math.ceil(hello.length / 3);
    const pieces = [0, 1, 2].map((n) => hello.subarray(n * third, (n + 1) * third));
    // A ServerHello comes back; then the client that is none goes away.
    const answer = await new Promise<string>((resolve) => {
      void Bun.connect({
        hostname: "127.0.0.1",
        port,
        socket: {
          async open(socket) {
            for (const piece of pieces) {
              socket.write(piece);
              await Bun.sleep(5);
            }
          },
          data(socket, bytes) {
            resolve(bytes.toString("latin1"));
            socket.terminate();
          },
        },
      });
    });
    expect(answer.charCodeAt(0)).toBe(22);
    for (const garbage of [GET, "\0".repeat(9)]) expect(await talk(port, [garbage])).toBe("");
    const decodeError = "\x15\x03\x03\x00\x02\x02\x32";
    for (const garbage of ["\x16\x03\x01\x00\x00", "\x16\x02\x00\x00\x05"])
      expect(await talk(port, [garbage])).toBe(decodeError);
    // What was not read may reset the connection, and the alert with it.
    expect(["", decodeError]).toContain(
      await talk(port, [Buffer.concat([Buffer.from([22, 3, 1, 0x40, 0]), Buffer.alloc(40_000)])]),
    );
    await eventually(() => api.gateway.stderr.includes("does not begin with a TLS ClientHello"));
  });

  test("closes a connection that is silent for longer than preread_timeout, 10 s by default", async () => {
    const { limits } = (await api.call("GET /settings")).body;
    expect(limits.preread_timeout).toBe(10_000);
    const set = (preread_timeout: number) =>
      api.call("PATCH /settings", { body: { limits: { preread_timeout } } });
    const port = await listener("silence", { protocol: "https", strict_sni: true });
    expect((await set(99)).status).toBe(400);
    expect((await set(100)).status).toBe(200);
    const began = performance.now();
    expect(await talk(port)).toBe("");
    expect(performance.now() - began).toBeGreaterThanOrEqual(100);
    await eventually(() =>
      api.gateway.stderr.includes("no complete PROXY header or TLS ClientHello arrived in time"),
    );
    await set(limits.preread_timeout);
  });
});

describe("a stream route beside an https listener", () => {
  async function tlsTarget(name: string): Promise<number> {
    const server = createServer(await selfSigned(name), (socket: TLSSocket) => {
      socket.on("error", () => {});
      socket.end(`from ${name}`);
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    return (server.address() as { port: number }).port;
  }

  const streamTo = async (name: string, port: number, fields: object) => {
    const targets = [{ host: "127.0.0.1", port: await tlsTarget(name) }];
    await api.create("/services", { name, protocol: "tcp", targets });
    return await api.create("/stream-routes", {
      name,
      listen_address: "127.0.0.1",
      listen_port: port,
      service_id: name,
      tls_mode: "passthrough",
      ...fields,
    });
  };

  test("matches its names, exact before wildcard, and the listener all others", async () => {
    const port = await listener("shared", { protocol: "https" });
    await streamTo("exact", port, { sni: ["app.nas.test"] });
    await streamTo("wild", port, { sni: ["*.nas.test"] });
    for (let round = 0; round < 6; round++) {
      expect(await ask(port, { servername: "app.nas.test" }, null)).toMatchObject({
        certificate: "exact",
        text: "from exact",
      });
      expect((await ask(port, { servername: "b.nas.test" }, null)).text).toBe("from wild");
      const own = await ask(port, { servername: "shop.test" });
      expect(own.certificate).toBe("shop.test");
      expect(mirrored(own.text)["x-real-ip"]).toBe("127.0.0.1");
      expect((await ask(port, {})).text).toStartWith("HTTP/1.1 200");
    }
  });

  needs("curl").test("leaves HTTP/2 to the listener for all other names", async () => {
    const port = await listener("shared with h2", { protocol: "https" });
    await streamTo("beside h2", port, { sni: ["app.nas.test"] });
    const { version, status } = await curl(`https://127.0.0.1:${port}/`, ["--http2"]);
    expect([version, status]).toEqual(["2", 200]);
  });

  test("can be closed and listed like any other", async () => {
    const port = await listener("listed", { protocol: "https" });
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    await api.create("/services", {
      name: "silent",
      protocol: "tcp",
      targets: [{ host: "127.0.0.1", port: silent.port }],
    });
    const { id } = await api.create("/stream-routes", {
      name: "silent",
      listen_address: "127.0.0.1",
      listen_port: port,
      service_id: "silent",
      tls_mode: "passthrough",
      sni: ["silent.test"],
    });
    const over = ask(port, { servername: "silent.test" });
    const list = async () => (await api.call(`GET /stream-routes/${id}/connections`)).body;
    const [connection] = await eventually(async () => {
      const all = await list();
      return all.length > 0 ? all : null;
    });
    expect(connection.client).toStartWith("127.0.0.1:");
    await api.call(`DELETE /connections/${connection.id}`);
    expect((await over).certificate).toBeNull();
    silent.stop(true);
  });

  test("is created and deleted without a failed request of the listener, in either order", async () => {
    const port = await listener("busy", { protocol: "https" });
    const failed: string[] = [];
    let [asked, isOver] = [0, false];
    const client = async () => {
      while (!isOver) {
        try {
          const url = `https://127.0.0.1:${port}/`;
          const get = () => fetch(url, { tls: { rejectUnauthorized: false } });
          // As browsers do it: once more when the connection that was kept is closed at that moment.
          const response = await get().catch(get);
          await response.arrayBuffer();
          if (response.status !== 200) failed.push(String(response.status));
          asked++;
        } catch (error) {
          failed.push((error as { code?: string }).code ?? String(error));
        }
      }
    };
    const clients = Array.from({ length: 6 }, client);
    for (let round = 0; round < 3; round++) {
      const { id } = await streamTo(`busy ${round}`, port, { sni: ["busy.test"] });
      const enough = asked + 50;
      await eventually(() => asked >= enough);
      expect((await ask(port, { servername: "busy.test" }, null)).text).toBe(`from busy ${round}`);
      await api.call(`DELETE /stream-routes/${id}`);
      const more = asked + 50;
      await eventually(() => asked >= more);
      expect((await ask(port, { servername: "busy.test" })).text).toStartWith("HTTP/1.1 200");
    }
    isOver = true;
    await Promise.all(clients);
    expect(failed).toEqual([]);
    // The listener goes, the stream route keeps the port; it comes back.
    const made = await streamTo("busy last", port, { sni: ["busy.test"] });
    const { body } = await api.call("GET /listeners/busy");
    await api.call("PATCH /listeners/busy", { body: { enabled: false } });
    expect((await ask(port, { servername: "busy.test" }, null)).text).toBe("from busy last");
    expect((await ask(port, { servername: "shop.test" })).text).toBe("");
    await api.call(`PATCH /listeners/${body.id}`, { body: { enabled: true } });
    expect((await ask(port, { servername: "busy.test" }, null)).text).toBe("from busy last");
    expect((await ask(port, { servername: "shop.test" })).text).toStartWith("HTTP/1.1 200");
    await api.call(`DELETE /stream-routes/${made.id}`);
  });

  test("must agree with it on the PROXY protocol and on HTTP/3", async () => {
    const port = await listener("agreed", { protocol: "https" });
    await streamTo("agreed", port, { sni: ["agreed.test"] });
    const proxied = { engine: "sluice", proxy_protocol: true, trusted_proxies: ["10.0.0.1"] };
    for (const body of [{ http3: true }, proxied]) {
      const answer = await api.call("PATCH /listeners/agreed", { body });
      expect([answer.status, answer.body.error]).toEqual([
        409,
        expect.stringContaining('is shared with stream route "agreed"'),
      ]);
    }
    const answer = await api.call("PATCH /stream-routes/agreed", {
      body: { proxy_protocol_in: true, proxy_protocol_trusted: ["127.0.0.1"] },
    });
    expect(answer.status).toBe(409);
    expect(answer.body.error).toContain("proxy_protocol_in must be false");
  });
});

describe("a stream route that terminates TLS", () => {
  const route = async (name: string, fields: object = {}) => {
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (socket) => void socket.end("hello"),
        data() {},
      },
    });
    const targets = [{ host: "127.0.0.1", port: server.port }];
    await api.create("/services", { name, protocol: "tcp", targets });
    const made = await api.create("/stream-routes", {
      name,
      listen_address: "127.0.0.1",
      listen_port: freePort(),
      service_id: name,
      tls_mode: "terminate",
      ...fields,
    });
    return made.listen_port as number;
  };

  test("presents the certificate of the requested name, new ones at once", async () => {
    const port = await route("ends");
    const shown = async (servername: string) => {
      const { certificate, text } = await ask(port, { servername }, null);
      expect(text).toBe("hello");
      return certificate;
    };
    expect(await shown("shop.test")).toBe("shop.test");
    expect(await shown("x.shop.test")).toBe("shop.test");
    expect(await shown("db.test")).toBe("localhost");
    await api.create("/certificates", { name: "db", source: "self_signed", domains: ["db.test"] });
    expect(await shown("db.test")).toBe("db.test");
    await api.call("DELETE /certificates/db");
    expect(await shown("db.test")).toBe("localhost");
  });

  test("matches only its names, and identifies the client", async () => {
    const port = await route("own", { sni: ["shop.test"], deny: ["127.0.0.5"] });
    expect((await ask(port, { servername: "shop.test" }, null)).text).toBe("hello");
    expect((await ask(port, { servername: "other.test" }, null)).certificate).toBeNull();
    const denied = await ask(
      port,
      { servername: "shop.test", localAddress: "127.0.0.5" } as object,
      null,
    );
    expect(denied.text).toBe("");
  });

  test("reads the PROXY header that comes before TLS", async () => {
    const port = await route("proxied", {
      proxy_protocol_in: true,
      proxy_protocol_trusted: ["127.0.0.1"],
      deny: ["203.0.113.66"],
    });
    const through = (source: string) =>
      new Promise<string>((resolve) => {
        const raw = connect({ port, host: "127.0.0.1" }, () => {
          raw.write(`PROXY TCP4 ${source} 1.1.1.1 1 2\r\n`);
          const options = { socket: raw, servername: "shop.test", rejectUnauthorized: false };
          const socket = connectTls(options);
          let text = "";
          socket.on("data", (data: Buffer) => (text += String(data)));
          socket.on("error", () => {});
          socket.on("close", () => resolve(text));
        });
      });
    expect(await through("203.0.113.5")).toBe("hello");
    expect(await through("203.0.113.66")).toBe("");
    expect((await ask(port, { servername: "shop.test" }, null)).certificate).toBeNull();
  });
});
