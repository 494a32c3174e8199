// Client certificates: which clients are allowed, what targets get, and that no unverified client is served.
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { curl } from "../../support/curl.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { usePeople } from "./people.ts";
import { ask, echoed, GET, mirrored, useListeners } from "./world.ts";

const { api, listener } = useListeners();
const people = usePeople(api);
const { required, shown, asField } = people;

const versions = [["TLSv1.2"], ["TLSv1.3"]] as const;

describe.each(versions)("over %s, a listener that requires certificates", (version) => {
  const over = { minVersion: version, maxVersion: version, servername: "a.test" } as const;

  test("allows valid ones, and forwards them to targets", async () => {
    const port = await listener(`good ${version}`, required());
    for (let round = 0; round < 4; round++) {
      const { text, certificate } = await ask(port, { ...over, ...shown(people.good) });
      expect(certificate).toBe("a.test");
      expect(mirrored(text)).toMatchObject({
        "client-cert": asField(people.good),
        "x-real-ip": "127.0.0.1",
        "x-forwarded-proto": "https",
      });
    }
  });

  test.each([
    ["none", () => undefined],
    ["one of another authority", () => people.foreign],
    ["one that has expired", () => people.expired],
  ])("does not respond to a client with %s", async (name, leaf) => {
    const port = await listener(`bad ${name} ${version}`, required());
    const answer = await ask(port, { ...over, ...shown(leaf()) });
    expect(answer.text).toBe("");
    await eventually(() => api.gateway.stderr.includes(`bad ${name} ${version}`));
  });

  test("presents a certificate by name, without confusing handshakes", async () => {
    const port = await listener(`names ${version}`, required());
    expect(
      (await ask(port, { ...over, ...shown(people.good), servername: "b.test" })).certificate,
    ).toBe("b.test");
    expect(
      (await ask(port, { ...over, ...shown(people.good), servername: "none.test" })).certificate,
    ).toBe("localhost");
    // A session of an earlier handshake is not taken up: each connection shows its certificate.
    const first = await sessionOf(port, { ...over, ...shown(people.good) });
    for (const servername of ["a.test", "b.test"])
      for (const leaf of [undefined, people.foreign]) {
        const again = await ask(port, {
          ...over,
          ...shown(leaf),
          servername,
          ...(first === null ? {} : { session: first }),
        });
        expect(again.text).toBe("");
      }
  });
});

/** What the server gave the client to come back with; null when it gave nothing. */
function sessionOf(port: number, options: ConnectionOptions): Promise<Buffer | null> {
  return new Promise((resolve) => {
    let session: Buffer | null = null;
    const socket = connectTls(
      { host: "127.0.0.1", port, rejectUnauthorized: false, ...options },
      () => socket.write(GET),
    );
    socket.on("session", (given: Buffer) => (session = given));
    socket.on("data", () => {});
    socket.on("error", () => {});
    socket.on("close", () => resolve(session));
  });
}

test("a listener that requests them allows clients without one, and denies those with an invalid one", async () => {
  const port = await listener("requested", required({ client_auth: "request" }));
  expect(mirrored((await ask(port, shown(undefined))).text)["client-cert"]).toBeUndefined();
  expect(mirrored((await ask(port, shown(people.good))).text)["client-cert"]).toBe(
    asField(people.good),
  );
  expect((await ask(port, shown(people.foreign))).text).toBe("");
  expect((await ask(port, shown(people.expired))).text).toBe("");
});

test("no client can forge the certificate that it presented", async () => {
  const lie = GET.replace(
    "\r\n\r\n",
    "\r\nClient-Cert: :bGll:\r\nClient_Cert: :bGll:\r\nClient-Cert-Chain: :bGll:\r\n\r\n",
  );
  const requested = await listener("lied to", required({ client_auth: "request" }));
  const direct = await listener("lied to directly", { protocol: "https" });
  for (const port of [requested, direct])
    expect(
      Object.keys(mirrored((await ask(port, shown(undefined), lie)).text)).filter((name) =>
        /^client/.test(name),
      ),
    ).toEqual([]);
  const fields = mirrored((await ask(requested, shown(people.good), lie)).text);
  expect(fields["client-cert"]).toBe(asField(people.good));
  // Nor have it dropped.
  const drop = GET.replace("close", "close, client-cert");
  expect(mirrored((await ask(requested, shown(people.good), drop)).text)["client-cert"]).toBe(
    asField(people.good),
  );
});

describe("D a host of another certificate than that of the handshake", () => {
  const to = (host: string) => GET.replace("a.test", host);
  test.each([
    ["a.test", "a.test", 200],
    ["a.test", "A.Test", 200],
    ["a.test", "a2.test", 200],
    ["a.test", "a.test:8443", 200],
    ["a.test", "a.test.", 200],
    ["A.test", "a.test", 200],
    ["a.test", "b.test", 421],
    ["a.test", "b.test.", 421],
    ["a.test", "unknown.test", 421],
    ["unknown.test", "a.test", 421],
    ["unknown.test", "other.test", 200],
    [undefined, "b.test", 421],
  ])("name %s, host %s: %i", async (servername, host, status) => {
    const port = await listener(`hosts ${Bun.hash(`${servername} ${host}`)}`, required());
    const options = { ...shown(people.good), servername: servername ?? "" };
    const { text } = await ask(port, options, to(host));
    expect(text.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  });

  test("a trailing dot in the handshake changes nothing", async () => {
    const port = await listener("dotted", required());
    const [without, dotted] = [
      await ask(port, { ...shown(people.good), servername: "a.test." }, to("b.test")),
      await ask(port, { servername: "a.test." }, to("a.test")),
    ];
    expect(without.text).not.toContain("200 OK");
    expect(dotted.text).toBe("");
  });
});

test("HTTP/2 is not offered", async () => {
  const port = await listener("one", required({ client_auth: "request" }));
  expect((await ask(port, { ALPNProtocols: ["h2", "http/1.1"] })).protocol).toBe("http/1.1");
});

needs("curl").test("clients that can do HTTP/2 fall back", async () => {
  const port = await listener("one for curl", required({ client_auth: "request" }));
  const { version, status } = await curl(`https://127.0.0.1:${port}/`, ["--http2"]);
  expect([version, status]).toEqual(["1.1", 200]);
});

test("WebSockets and large bodies pass", async () => {
  const port = await listener("large", required());
  const echo = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request, server) =>
      server.upgrade(request, { data: undefined })
        ? undefined
        : new Response(await request.bytes()),
    websocket: { message: (socket, message) => void socket.send(message) },
  });
  await api.create("/services", {
    name: "echo",
    targets: [{ host: "127.0.0.1", port: echo.port }],
  });
  await api.create("/routes", { name: "echo", service_id: "echo", paths: ["/echo"] });
  const bytes = Buffer.alloc(5_000_000, "sluice");
  const tls = { ...shown(people.good), servername: "", rejectUnauthorized: false } as object;
  const response = await fetch(`https://127.0.0.1:${port}/echo`, {
    method: "POST",
    body: bytes,
    tls,
  });
  expect(
    createHash("sha256")
      .update(await response.bytes())
      .digest("hex"),
  ).toBe(createHash("sha256").update(bytes).digest("hex"));
  const socket = new WebSocket(`wss://127.0.0.1:${port}/echo`, { tls } as unknown as string[]);
  expect(await echoed(socket, "hello")).toBe("hello");
  echo.stop(true);
});

test("behind a PROXY header, strict and with limits: all of it together", async () => {
  const port = await listener(
    "everything",
    required({
      strict_sni: true,
      proxy_protocol: true,
      trusted_proxies: ["127.0.0.1"],
      max_connections: 50,
      max_connections_per_address: 20,
      tls_min_version: "1.3",
    }),
  );
  const through = (options: ConnectionOptions) =>
    new Promise<string>((resolve) => {
      const raw = connect({ port, host: "127.0.0.1" }, () => {
        raw.write("PROXY TCP4 203.0.113.5 203.0.113.9 4000 443\r\n");
        const socket = connectTls(
          { socket: raw, rejectUnauthorized: false, ...options },
          () => void socket.write(GET),
        );
        let text = "";
        socket.on("data", (data: Buffer) => (text += String(data)));
        socket.on("error", () => {});
        socket.on("close", () => resolve(text));
      });
      raw.on("error", () => {});
    });
  const fields = mirrored(await through({ servername: "a.test", ...shown(people.good) }));
  expect(fields).toMatchObject({
    "x-real-ip": "203.0.113.5",
    "client-cert": asField(people.good),
  });
  expect(await through({ servername: "a.test" })).toBe("");
  expect(await through({ ...shown(people.good), servername: "none.test" })).toBe("");
  expect(
    await through({ servername: "a.test", maxVersion: "TLSv1.2", ...shown(people.good) }),
  ).toBe("");
});
