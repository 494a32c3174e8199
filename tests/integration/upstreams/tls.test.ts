// TLS to targets: each certificate check, passing and failing, with the texts for clients and the log.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import tls from "node:tls";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Authority, type Leaf } from "../../support/authority.ts";
import { selfSigned } from "../../support/certificate.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { freePort, type ServiceSketch, startDataPlane } from "../../support/data-plane.ts";
import { reply } from "../../support/origin.ts";
import { startDnsServer } from "../../support/dns-server.ts";

let root: Authority;
let other: Authority;
let between: Authority;
const stops = cleanupsOf(afterAll);
beforeAll(async () => {
  root = await Authority.create("root");
  other = await Authority.create("other");
  between = await Authority.create("between", root);
});

interface SecureOrigin {
  readonly port: number;
  /** What the gateway asked for with SNI, for each connection. */
  readonly names: (string | false | undefined)[];
  /** Subjects of the certificates that it showed. */
  readonly clients: (string | undefined)[];
  connections: number;
  /** Another certificate for connections from now on. */
  present(pair: Leaf): void;
}

async function secureOrigin(pair: Leaf, options: tls.TlsOptions = {}): Promise<SecureOrigin> {
  const server = tls.createServer({ ...pair, ...options });
  server.on("secureConnection", (socket) => {
    origin.connections++;
    origin.names.push(socket.servername ?? undefined);
    const subject = options.requestCert === true ? socket.getPeerCertificate().subject : undefined;
    origin.clients.push(subject?.CN as string | undefined);
    socket.on("error", () => {});
    socket.on("data", () => socket.write(reply("secure")));
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(() => server.close());
  const origin: SecureOrigin = {
    port: (server.address() as AddressInfo).port,
    names: [],
    clients: [],
    connections: 0,
    present: (next) => server.setSecureContext(next),
  };
  return origin;
}

interface Outcome {
  readonly status: number;
  readonly proxyStatus: string | null;
  readonly everything: string;
}

interface Scene {
  get(): Promise<Outcome>;
  /** Reasons and causes of failed requests. */
  readonly log: () => string[];
  apply(service: Partial<ServiceSketch>): Promise<void>;
}

async function scene(origin: { port: number }, more: object = {}): Promise<Scene> {
  const { host = "app.test", ...service } = more as { host?: string };
  const dns = await startDnsServer({ "app.test": [{ type: "A", value: "127.0.0.1" }] });
  const sketch = {
    name: "app",
    protocol: "https",
    targets: [{ host, port: origin.port }],
    retries: { count: 0 },
    ...service,
  } as const;
  const plane = await startDataPlane({
    services: [sketch],
    routes: [{ name: "all", service_id: "app" }],
    dnsServers: [dns.address],
  });
  stops.push(dns.stop, plane.stop);
  return {
    async get() {
      const response = await fetch(plane.url, { headers: { accept: "text/plain" } });
      const everything = `${JSON.stringify([...response.headers])} ${await response.text()}`;
      return {
        status: response.status,
        proxyStatus: response.headers.get("proxy-status"),
        everything,
      };
    },
    log: () =>
      plane.log
        .filter(({ message }) => message === "request failed")
        .map(({ fields }) => String(fields["reason"])),
    apply: (changed) => plane.apply({ services: [{ ...sketch, ...changed }] }),
  };
}

const trusting = (authority: Authority, more: object = {}) => ({
  tls: { ca_certificates: authority.cert, ...more },
});

async function expectFailure(one: Scene, token: string, reason: string): Promise<void> {
  const { status, proxyStatus, everything } = await one.get();
  expect([status, proxyStatus]).toEqual([502, `sluice; error=${token}; details="${reason}"`]);
  expect(one.log()).toEqual([reason]);
  for (const secret of ["127.0.0.1", "app.test", "error:", "SSL"])
    expect(everything).not.toContain(secret);
}

describe("a certificate is accepted", () => {
  test("for the target's name, which SNI contains", async () => {
    const origin = await secureOrigin(await root.sign({ names: ["app.test"] }));
    expect(await (await scene(origin, trusting(root))).get()).toMatchObject({ status: 200 });
    expect(origin.names).toEqual(["app.test"]);
  });

  test("for server_name in its place", async () => {
    const origin = await secureOrigin(await root.sign({ names: ["inside.test"] }));
    const one = await scene(origin, trusting(root, { server_name: "inside.test" }));
    expect(await one.get()).toMatchObject({ status: 200 });
    expect(origin.names).toEqual(["inside.test"]);
  });

  test("with a wildcard for one label", async () => {
    const origin = await secureOrigin(await root.sign({ names: ["*.wild.test"] }));
    const one = await scene(origin, trusting(root, { server_name: "a.wild.test" }));
    expect((await one.get()).status).toBe(200);
    const deeper = await scene(origin, trusting(root, { server_name: "a.b.wild.test" }));
    expect((await deeper.get()).status).toBe(502);
  });

  test("for the address of a target without a name", async () => {
    const origin = await secureOrigin(await root.sign({ addresses: ["127.0.0.1"] }));
    expect(
      (await (await scene(origin, { host: "127.0.0.1", ...trusting(root) })).get()).status,
    ).toBe(200);
  });

  test("for server_name of a target without a name", async () => {
    const origin = await secureOrigin(await root.sign({ names: ["inside.test"] }));
    const service = { host: "127.0.0.1", ...trusting(root, { server_name: "inside.test" }) };
    expect((await (await scene(origin, service)).get()).status).toBe(200);
  });

  test("from an intermediate CA, which the target sends along", async () => {
    const { cert, key } = await between.sign({ names: ["app.test"] });
    const origin = await secureOrigin({ cert: cert + between.cert, key });
    expect((await (await scene(origin, trusting(root))).get()).status).toBe(200);
  });

  test("from any of several trusted CAs", async () => {
    const origin = await secureOrigin(await root.sign({ names: ["app.test"] }));
    const one = await scene(origin, { tls: { ca_certificates: other.cert + root.cert } });
    expect((await one.get()).status).toBe(200);
  });

  test("from no CA, when the certificate itself is trusted", async () => {
    const pair = await selfSigned("app.test");
    const one = await scene(await secureOrigin(pair), { tls: { ca_certificates: pair.cert } });
    expect((await one.get()).status).toBe(200);
  });

  test("of any kind, when verify is off", async () => {
    for (const pair of [
      await selfSigned("x.test"),
      await root.sign({ names: ["x.test"], from: -3, until: -2 }),
      await other.sign({ names: ["x.test"] }),
    ])
      expect(
        (await (await scene(await secureOrigin(pair), { tls: { verify: false } })).get()).status,
      ).toBe(200);
  });
});

describe("a certificate is refused", () => {
  const cases = [
    {
      why: "it has expired",
      make: () => root.sign({ names: ["app.test"], from: -3, until: -1 }),
      reason: "the target's certificate has expired",
    },
    {
      why: "it is not valid yet",
      make: () => root.sign({ names: ["app.test"], from: 1, until: 3 }),
      reason: "the target's certificate is not valid yet",
    },
    {
      why: "it is self-signed",
      make: () => selfSigned("app.test"),
      reason: "the target's certificate is self-signed",
    },
    {
      why: "its authority is not trusted",
      make: () => other.sign({ names: ["app.test"] }),
      reason: "the target's certificate comes from an unknown CA",
    },
    {
      why: "the authority between it and the root is missing",
      make: () => between.sign({ names: ["app.test"] }),
      reason: "the target's certificate comes from an unknown CA",
    },
    {
      why: "it is for another name",
      make: () => root.sign({ names: ["other.test"] }),
      reason: "the target's certificate is for another name",
    },
    {
      why: "it is for the address only",
      make: () => root.sign({ addresses: ["127.0.0.1"] }),
      reason: "the target's certificate is for another name",
    },
  ] as const;
  test.each(cases)("$why", async ({ make, reason }) => {
    const one = await scene(await secureOrigin(await make()), trusting(root));
    await expectFailure(one, "tls_certificate_error", reason);
  });

  test("it is for a name, and the target is an address", async () => {
    const origin = await secureOrigin(
      await root.sign({ names: ["app.test"], addresses: ["127.0.0.2"] }),
    );
    const one = await scene(origin, { host: "127.0.0.1", ...trusting(root) });
    await expectFailure(
      one,
      "tls_certificate_error",
      "the target's certificate is for another name",
    );
  });

  test("verify is on by default, and the system's CAs do not include ours", async () => {
    const one = await scene(await secureOrigin(await root.sign({ names: ["app.test"] })));
    const { status, proxyStatus } = await one.get();
    expect([status, proxyStatus]).toEqual([502, expect.stringContaining("tls_certificate_error")]);
  });
});

describe("there is no TLS connection", () => {
  test("when the target supports no recent version", async () => {
    const origin = await secureOrigin(await root.sign({ names: ["app.test"] }), {
      maxVersion: "TLSv1.2",
    });
    const one = await scene(origin, trusting(root, { min_version: "1.3" }));
    await expectFailure(one, "tls_protocol_error", "the target's TLS version is too low");
    const older = await scene(origin, trusting(root));
    expect((await older.get()).status).toBe(200);
  });

  test.each([
    ["TLSv1", "1.0", 200],
    ["TLSv1", "1.1", 502],
    ["TLSv1.1", "1.0", 200],
    ["TLSv1.1", "1.1", 200],
    ["TLSv1.1", "1.2", 502],
  ] as const)("with %s at most and min_version %s: %d", async (version, minimum, status) => {
    const origin = await secureOrigin(await root.sign({ names: ["app.test"] }), {
      minVersion: version,
      maxVersion: version,
    });
    const one = await scene(origin, trusting(root, { min_version: minimum }));
    if (status === 200) expect((await one.get()).status).toBe(200);
    else await expectFailure(one, "tls_protocol_error", "the target's TLS version is too low");
  });

  test.each([true, false])("when the target does not speak TLS (verify: %p)", async (verify) => {
    const plain = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n") },
    });
    stops.push(() => plain.stop(true));
    const one = await scene(plain, { tls: { verify } });
    await expectFailure(one, "tls_protocol_error", "the target does not speak TLS");
  });

  test("when the target disconnects", async () => {
    const rude = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.end() },
    });
    stops.push(() => rude.stop(true));
    const { status, proxyStatus } = await (await scene(rude)).get();
    expect([status, proxyStatus]).toEqual([
      502,
      expect.stringMatching(/error=(tls_protocol_error|connection_refused)/),
    ]);
  });

  test("when the port is closed", async () => {
    const { proxyStatus } = await (await scene({ port: freePort() })).get();
    expect(proxyStatus).toContain("error=connection_refused");
  });
});

describe("a verified connection does not vouch for the next one", () => {
  test.each(["TLSv1.2", "TLSv1.3"] as const)(
    "a target whose certificate became invalid is refused on the second connection (%s)",
    async (maxVersion) => {
      const origin = await secureOrigin(await root.sign({ names: ["app.test"] }), { maxVersion });
      const one = await scene(origin, { ...trusting(root), keepalive: { size: 0 } });
      for (let i = 0; i < 3; i++) expect((await one.get()).status).toBe(200);
      origin.present(await root.sign({ names: ["app.test"], from: -3, until: -1 }));
      await expectFailure(one, "tls_certificate_error", "the target's certificate has expired");
    },
  );

  test("an idle connection is not used after the rules became stricter", async () => {
    const origin = await secureOrigin(await other.sign({ names: ["app.test"] }));
    const one = await scene(origin, { tls: { verify: false } });
    expect([(await one.get()).status, (await one.get()).status]).toEqual([200, 200]);
    expect(origin.connections).toBe(1);
    await one.apply(trusting(root));
    await expectFailure(
      one,
      "tls_certificate_error",
      "the target's certificate comes from an unknown CA",
    );
  });
});

describe("a certificate of the gateway", () => {
  const wanting = async () =>
    secureOrigin(await root.sign({ names: ["app.test"] }), {
      requestCert: true,
      rejectUnauthorized: true,
      ca: root.cert,
    });

  test("is presented to a target that requests one", async () => {
    const origin = await wanting();
    const clientCertificate = await root.sign({ names: ["gateway.test"] });
    const one = await scene(origin, { ...trusting(root), clientCertificate });
    expect((await one.get()).status).toBe(200);
    expect(origin.clients).toEqual(["gateway.test"]);
  });

  test("that is missing is named as the reason", async () => {
    const one = await scene(await wanting(), trusting(root));
    const { status, proxyStatus } = await one.get();
    expect([status, proxyStatus]).toEqual([
      502,
      'sluice; error=tls_alert_received; details="the target requires a client certificate"',
    ]);
  });
});
