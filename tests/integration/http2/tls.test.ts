// TLS of listeners whose clients speak HTTP/2: certificates by name, client certificates, versions, challenges, in real workers.
import { beforeAll, describe, expect, test } from "bun:test";
import http2 from "node:http2";
import { connect as connectTls, type SecureVersion } from "node:tls";
import { Authority } from "../../support/authority.ts";
import { freePort } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { usePeople } from "../listeners/people.ts";
import { ask, talk, useListeners } from "../listeners/world.ts";

const { api, listener } = useListeners();
const people = usePeople(api);
const full = { protocol: "https", engine: "sluice" };

interface Served {
  /** Common name of the certificate that was presented; null without a handshake. */
  readonly certificate: string | null;
  readonly status: number | null;
  /** The fields that the target got. */
  readonly fields: Record<string, string>;
  /** For a later handshake. */
  readonly ticket: Buffer | null;
  readonly isResumed: boolean;
}

/** One request over HTTP/2. */
async function get(
  port: number,
  options: http2.SecureClientSessionOptions = {},
  host = options.servername ?? "a.test",
): Promise<Served> {
  const session = http2.connect(`https://127.0.0.1:${port}`, {
    rejectUnauthorized: false,
    servername: "a.test",
    ...options,
  });
  let certificate: string | null = null;
  let ticket: Buffer | null = null;
  let isResumed = false;
  session.on("error", () => {});
  session.on("connect", (_session, socket) => {
    const tls = socket as import("node:tls").TLSSocket;
    certificate = String(tls.getPeerCertificate().subject?.CN ?? "");
    isResumed = tls.isSessionReused();
    tls.on("session", (given: Buffer) => {
      ticket = given;
    });
  });
  const stream = session.request({ ":path": "/", ":authority": host });
  let status: number | null = null;
  stream.on("response", (headers) => {
    status = Number(headers[":status"]);
  });
  let text = "";
  try {
    for await (const piece of stream) text += String(piece);
  } catch {
    // Refused: the test looks at the status.
  }
  session.close();
  const fields = status === 200 ? (JSON.parse(text) as Record<string, string>) : {};
  return { certificate, status, fields, ticket, isResumed };
}

beforeAll(async () => {
  await api.create("/certificates", {
    name: "shop",
    source: "self_signed",
    domains: ["shop.test", "*.shop.test"],
  });
});

describe("a listener", () => {
  test.each([
    ["a.test", "a.test", "its name is on it"],
    ["A2.test", "a.test", "names have no case"],
    ["x.shop.test", "shop.test", "a wildcard covers one label"],
    ["x.y.shop.test", "localhost", "a wildcard covers no more"],
    ["none.test", "localhost", "the default stands in for unknown names"],
  ])("presents for %s the certificate %s, because %s", async (servername, certificate) => {
    const port = await listener(`names ${servername}`, full);
    for (let round = 0; round < 4; round++) {
      const served = await get(port, { servername });
      expect([served.certificate, served.status]).toEqual([certificate, 200]);
    }
  });

  test("presents a new certificate on the connection after, and keeps open ones", async () => {
    const port = await listener("live", full);
    expect((await get(port, { servername: "late.test" })).certificate).toBe("localhost");
    const session = http2.connect(`https://127.0.0.1:${port}`, {
      rejectUnauthorized: false,
      servername: "late.test",
    });
    let goAways = 0;
    session.on("goaway", () => goAways++);
    await new Promise((resolve) => session.once("connect", resolve));
    const made = await api.create("/certificates", {
      name: "late",
      source: "self_signed",
      domains: ["late.test"],
    });
    await eventually(async () => {
      const { certificate } = await get(port, { servername: "late.test" });
      return certificate === "late.test";
    });
    const stream = session.request({ ":path": "/", ":authority": "none.test" });
    const headers = await new Promise<http2.IncomingHttpHeaders>((resolve) => {
      stream.on("response", resolve);
    });
    stream.resume();
    expect(Number(headers[":status"])).toBe(200);
    expect(goAways).toBe(0);
    session.close();
    await api.call(`DELETE /certificates/${made.id}`);
    await eventually(async () => {
      const { certificate } = await get(port, { servername: "late.test" });
      return certificate === "localhost";
    });
  });

  test("responds with 421 to a host of another certificate (RFC 9110 section 15.5.20)", async () => {
    const port = await listener("misdirected", full);
    expect((await get(port, { servername: "a.test" }, "b.test")).status).toBe(421);
    expect((await get(port, { servername: "a.test" }, "a2.test")).status).toBe(200);
  });

  test("refuses unknown names when it is strict", async () => {
    const port = await listener("strict", { ...full, strict_sni: true });
    expect((await get(port, { servername: "a.test" })).certificate).toBe("a.test");
    expect((await get(port, { servername: "none.test" })).certificate).toBe(null);
    const socket = connectTls({ host: "127.0.0.1", port, servername: "none.test" });
    const error = await new Promise<Error>((resolve) => socket.on("error", resolve));
    expect(String(error)).toMatch(/unrecognized.name/i);
  });

  test.each<[SecureVersion, string, boolean]>([
    ["TLSv1.2", "1.2", true],
    ["TLSv1.3", "1.2", true],
    ["TLSv1.2", "1.3", false],
    ["TLSv1.3", "1.3", true],
  ])("with clients of %s and tls_min_version %s: served %p", async (version, min, isServed) => {
    const port = await listener(`min ${version} ${min}`, { ...full, tls_min_version: min });
    const served = await get(port, { minVersion: version, maxVersion: version });
    expect(served.status).toBe(isServed ? 200 : null);
  });

  test("refuses a client that does not speak TLS", async () => {
    const port = await listener("plain bytes", full);
    expect(await talk(port, ["GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"])).toBe("");
  });

  test("closes a connection whose TLS handshake does not end", async () => {
    await api.call("PATCH /settings", { body: { limits: { preread_timeout: 1000 } } });
    const port = await listener("half a handshake", full);
    const answer = await new Promise<string>((resolve) => {
      // A whole ClientHello, after which the client is silent.
      const server = Bun.listen({
        hostname: "127.0.0.1",
        port: 0,
        socket: {
          data(_socket, hello) {
            void talk(port, [Buffer.from(hello)]).then(() => resolve("closed"));
            server.stop(true);
          },
        },
      });
      void ask(server.port, { servername: "a.test", ALPNProtocols: ["h2"] });
    });
    expect(answer).toBe("closed");
  });
});

describe("session tickets", () => {
  test("of one name do not open a connection of another", async () => {
    const port = await listener("tickets", full);
    const options = { minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;
    let ticket: Buffer | null = null;
    // Each worker has keys of its own: the right one may need some attempts.
    await eventually(async () => {
      ticket = (await get(port, { ...options, servername: "a.test" })).ticket;
      return ticket !== null;
    });
    const session = ticket as unknown as Buffer;
    await eventually(async () => {
      const again = await get(port, { ...options, servername: "a.test", session });
      return again.isResumed;
    });
    for (let round = 0; round < 8; round++) {
      const served = await get(port, { ...options, servername: "b.test", session }, "b.test");
      expect([served.isResumed, served.status]).toEqual([false, 200]);
    }
  });
});

describe.each([["TLSv1.2"], ["TLSv1.3"]] as const)("client certificates over %s", (version) => {
  const over = { minVersion: version, maxVersion: version } as const;

  test("are required, verified and forwarded over HTTP/2", async () => {
    const port = await listener(`required ${version}`, people.required({ ...full, http2: true }));
    for (let round = 0; round < 4; round++) {
      const served = await get(port, { ...over, ...people.shown(people.good) });
      expect([served.certificate, served.status]).toEqual(["a.test", 200]);
      expect(served.fields["client-cert"]).toBe(people.asField(people.good));
    }
    for (const leaf of [undefined, people.foreign, people.expired])
      for (const servername of ["a.test", "b.test", "none.test"]) {
        const served = await get(port, { ...over, ...people.shown(leaf), servername });
        expect(served.status).toBe(null);
      }
  });

  test("are optional when only requested, but never invalid", async () => {
    const port = await listener(
      `requested ${version}`,
      people.required({ ...full, http2: true, client_auth: "request" }),
    );
    const without = await get(port, { ...over, servername: "a.test" });
    expect([without.status, without.fields["client-cert"]]).toEqual([200, undefined]);
    const shown = await get(port, { ...over, ...people.shown(people.good) });
    expect(shown.fields["client-cert"]).toBe(people.asField(people.good));
    for (const leaf of [people.foreign, people.expired])
      expect((await get(port, { ...over, ...people.shown(leaf) })).status).toBe(null);
  });

  test("are not replaced by a session of before", async () => {
    const port = await listener(`resumed ${version}`, people.required({ ...full, http2: true }));
    const { ticket } = await get(port, { ...over, ...people.shown(people.good) });
    const session = ticket === null ? {} : { session: ticket };
    for (let round = 0; round < 4; round++)
      expect((await get(port, { ...over, servername: "a.test", ...session })).status).toBe(null);
  });
});

test("client certificates of a new CA are asked for on the connection after a change", async () => {
  const port = freePort();
  const { id } = await api.create("/listeners", {
    name: "changing",
    address: "127.0.0.1",
    port,
    ...people.required({ ...full, http2: true }),
  });
  expect((await get(port, people.shown(people.good))).status).toBe(200);
  const others = await Authority.create("New clients");
  const fresh = await others.sign({ names: ["carol"] });
  const { status } = await api.call(`PATCH /listeners/${id}`, { body: { client_ca: others.cert } });
  expect(status).toBe(200);
  await eventually(async () => (await get(port, people.shown(fresh))).status === 200);
  expect((await get(port, people.shown(people.good))).status).toBe(null);
});
