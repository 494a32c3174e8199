// Certificates in the API and in handshakes: selected by name, replaced under traffic, keys never shown.
import { beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:tls";
import { Authority, type Leaf } from "../../support/authority.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

let authority: Authority;
let wildcard: Leaf;
let exact: Leaf;
beforeAll(async () => {
  const root = await Authority.create("Root");
  authority = await Authority.create("Issuing", root);
  wildcard = await authority.sign({ names: ["*.shop.test"] });
  exact = await authority.sign({ names: ["www.shop.test", "shop.test"] });
});

const bodyOf = (name: string, leaf: Leaf, fields: object = {}) => ({
  name,
  certificate: authority.cert + leaf.cert,
  private_key: leaf.key,
  ...fields,
});

/** The certificate that a client gets for a server name. */
function presented(servername: string | null, port = api.gateway.httpsPort) {
  return new Promise<{ name: string; fingerprint: string }>((resolve, reject) => {
    const name = servername === null ? {} : { servername };
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...name }, () => {
      const { subject, fingerprint256 } = socket.getPeerCertificate();
      resolve({
        name: String(subject.CN),
        fingerprint: fingerprint256.replaceAll(":", "").toLowerCase(),
      });
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

describe("an uploaded certificate", () => {
  beforeAll(async () => {
    await api.create("/certificates", bodyOf("wild", wildcard));
    await api.create("/certificates", bodyOf("exact", exact));
  });

  test.each([
    ["www.shop.test", "www.shop.test"],
    ["WWW.Shop.Test", "www.shop.test"],
    ["shop.test", "www.shop.test"],
    ["other.shop.test", "*.shop.test"],
    ["a.other.shop.test", "localhost"],
    ["elsewhere.test", "localhost"],
    [null, "localhost"],
  ])("for %s is %s, on every worker", async (asked, name) => {
    for (let ask = 0; ask < 10; ask++) expect((await presented(asked)).name).toBe(name);
  });

  test("shows names, dates, issuer, fingerprint and status, but never the key", async () => {
    const { body } = await api.call("GET /certificates/exact");
    expect(body).toMatchObject({
      domains: ["www.shop.test", "shop.test"],
      issuer: "CN=Issuing",
      status: "valid",
      source: "upload",
    });
    expect(body.fingerprint).toBe((await presented("shop.test")).fingerprint);
    const key = exact.key.split("\n")[1] ?? "";
    for (const path of [
      "/certificates",
      "/certificates/exact",
      "/certificates/exact/pem",
      "/audit",
    ])
      expect(JSON.stringify((await api.call(`GET ${path}`)).body)).not.toContain(key);
    expect(Object.keys(body)).not.toContain("private_key");
    expect(Object.keys(body)).not.toContain("sealed_key");
    expect(api.gateway.stderr).not.toContain(key);
  });

  test("can be downloaded with its chain, in order", async () => {
    const response = await fetch(`${api.url}/api/v1/certificates/exact/pem`);
    expect(response.headers.get("content-type")).toBe("application/x-pem-file");
    expect((await response.text()).startsWith(exact.cert.trim())).toBe(true);
  });

  test("is replaced at once for new connections; requests on old ones continue", async () => {
    const kept = connect({
      host: "127.0.0.1",
      port: api.gateway.httpsPort,
      servername: "shop.test",
      rejectUnauthorized: false,
    });
    await new Promise((ready) => kept.once("secureConnect", ready));
    const renewed = await authority.sign({ names: ["www.shop.test", "shop.test"] });
    const { certificate, private_key } = bodyOf("", renewed);
    const answer = await api.call("PATCH /certificates/exact", {
      body: { certificate, private_key },
    });
    expect(answer.status).toBe(200);
    for (let ask = 0; ask < 20; ask++)
      expect((await presented("shop.test")).fingerprint).toBe(answer.body.fingerprint);
    const reply = new Promise<string>((resolve) =>
      kept.once("data", (data: Buffer) => resolve(String(data))),
    );
    kept.write("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n");
    expect(await reply).toStartWith("HTTP/1.1 404");
    kept.destroy();
  });

  test("sent back as read changes nothing", async () => {
    const { body, headers } = await api.call("GET /certificates/wild");
    const again = await api.call("PUT /certificates/wild", { body });
    expect(again.status).toBe(200);
    expect(again.headers.get("etag")).toBe(headers.get("etag"));
  });

  test("used for some of its names leaves the others to another one", async () => {
    const both = await authority.sign({ names: ["a.test", "b.test"], until: 10 });
    await api.create("/certificates", bodyOf("some", both, { domains: ["b.test"] }));
    expect((await presented("a.test")).name).toBe("localhost");
    expect((await presented("b.test")).name).toBe("a.test");
  });

  test("that lasts longer is used for a name that two have", async () => {
    const long = await authority.sign({ names: ["b.test"], until: 60, commonName: "longer" });
    await api.create("/certificates", bodyOf("longer", long));
    expect((await presented("b.test")).name).toBe("longer");
    await api.call("PATCH /certificates/longer", { body: { enabled: false } });
    expect((await presented("b.test")).name).toBe("a.test");
  });

  test("that is deleted is no longer presented", async () => {
    expect((await api.call("DELETE /certificates/wild")).body).toEqual({ deleted: true });
    expect((await presented("other.shop.test")).name).toBe("localhost");
  });
});

describe("is rejected, and nothing is stored:", () => {
  const send = async (body: unknown) => {
    const before = (await api.call("GET /certificates")).body;
    const answer = await api.call("POST /certificates", { body });
    expect((await api.call("GET /certificates")).body).toEqual(before);
    return answer;
  };

  test("one that has expired", async () => {
    const old = await authority.sign({ names: ["old.test"], from: -30, until: -1 });
    const { status, body } = await send(bodyOf("old", old));
    expect([status, body.error]).toEqual([400, expect.stringContaining("certificate: expired on")]);
  });

  test("one without its key, and one with another key", async () => {
    const { private_key: _, ...without } = bodyOf("keyless", exact);
    expect((await send(without)).body.error).toBe("private_key: is required");
    const { status, body } = await send({ ...bodyOf("x", exact), private_key: wildcard.key });
    expect([status, body.error]).toEqual([400, "private_key: does not belong to the certificate"]);
  });

  test("a name that the certificate does not have", async () => {
    const { body } = await send(bodyOf("x", exact, { domains: ["shop.test", "evil.test"] }));
    expect(body.error).toBe("domains[1]: is not a name of the certificate");
  });

  test("a name in use", async () => {
    const { status } = await send(bodyOf("exact", exact));
    expect(status).toBe(409);
  });
});

describe("a self-signed certificate", () => {
  test("is created and presented for the requested names", async () => {
    const made = await api.create("/certificates", {
      name: "lan",
      source: "self_signed",
      domains: ["nas.lan", "*.nas.lan"],
    });
    expect(made.domains).toEqual(["nas.lan", "*.nas.lan"]);
    expect((await presented("nas.lan")).fingerprint).toBe(made.fingerprint);
    expect((await presented("tv.nas.lan")).fingerprint).toBe(made.fingerprint);
  });

  test("stays as it is until its names change", async () => {
    const before = (await api.call("GET /certificates/lan")).body;
    const same = await api.call("PATCH /certificates/lan", { body: { description: "home" } });
    expect(same.body.fingerprint).toBe(before.fingerprint);
    const other = await api.call("PATCH /certificates/lan", { body: { domains: ["tv.lan"] } });
    expect(other.body.fingerprint).not.toBe(before.fingerprint);
    expect((await presented("tv.lan")).fingerprint).toBe(other.body.fingerprint);
  });

  test("needs names, and rejects an uploaded certificate", async () => {
    const nameless = await api.call("POST /certificates", {
      body: { name: "x", source: "self_signed" },
    });
    expect(nameless.body.error).toBe("domains: is required");
    const own = await api.call("POST /certificates", {
      body: bodyOf("x", exact, { source: "self_signed", domains: ["shop.test"] }),
    });
    expect(own.body.error).toContain("certificate: is generated by the gateway");
  });
});

test("certificates survive a restart", async () => {
  const before = (await presented("tv.lan")).fingerprint;
  await api.gateway.restart();
  expect((await presented("tv.lan")).fingerprint).toBe(before);
});
