// Applications: one request publishes a domain over HTTP and HTTPS, and every field has an effect.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:tls";
import { useGateway } from "./client.ts";

const api = useGateway();

let origin: ReturnType<typeof Bun.serve>;
let other: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  const serve = (name: string) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => new Response(`${name} ${new URL(request.url).pathname}`),
    });
  origin = serve("origin");
  other = serve("other");
});
afterAll(async () => {
  await origin.stop(true);
  await other.stop(true);
});
const upstream = () => `http://127.0.0.1:${origin.port}`;

async function visit(host: string, path = "/", scheme: "http" | "https" = "http") {
  const { httpPort, httpsPort } = api.gateway;
  const port = scheme === "http" ? httpPort : httpsPort;
  const response = await fetch(`${scheme}://127.0.0.1:${port}${path}`, {
    headers: { host },
    redirect: "manual",
    tls: { rejectUnauthorized: false },
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** Names in the certificate that the gateway presents. */
function presented(servername: string) {
  return new Promise<string>((resolve, reject) => {
    const socket = connect(
      { host: "127.0.0.1", port: api.gateway.httpsPort, rejectUnauthorized: false, servername },
      () => {
        resolve(socket.getPeerCertificate().subjectaltname ?? "");
        socket.destroy();
      },
    );
    socket.on("error", reject);
  });
}

describe("one request", () => {
  test("routes a domain to its upstream, over HTTP and HTTPS", async () => {
    const made = await api.create("/applications", {
      name: "shop",
      domains: ["shop.test"],
      upstream: `${upstream()}/base`,
    });
    expect(made).toMatchObject({
      name: "shop",
      service: { name: "shop", protocol: "http", path: "/base" },
      targets: [{ host: "127.0.0.1", port: origin.port }],
      routes: [{ name: "shop", hosts: ["shop.test"], https_redirect: false }],
      certificate: { source: "local_ca", status: "valid", domains: ["shop.test"] },
      interim_certificate: null,
      drift: [],
      warnings: [],
    });
    expect((await visit("shop.test", "/x")).text).toBe("origin /base/x");
    expect((await visit("shop.test", "/x", "https")).text).toBe("origin /base/x");
    expect(await presented("shop.test")).toBe("DNS:shop.test");
    const { updated_at, routes, certificate } = made;
    const same = { id: made.id, updated_at, routes, certificate, drift: [] };
    expect((await api.call("GET /applications/shop")).body).toMatchObject(same);
    expect((await api.call("GET /applications?q=SHOP.test")).body).toMatchObject([same]);
  });

  test("is one revision, and its history names every part", async () => {
    const before = (await api.callRoot("GET /api/v1/admin/status")).body.revision;
    const answer = await api.call("POST /applications", {
      body: { name: "whole", domains: ["whole.test"], upstream: upstream(), access: "private" },
    });
    expect(answer.headers.get("x-config-revision")).toBe(String(before + 1));
    const { body: entries } = await api.call("GET /audit");
    const own = entries.filter((entry: { revision: number }) => entry.revision === before + 1);
    expect(own.map((entry: { kind: string }) => entry.kind).toSorted()).toEqual([
      "application",
      "certificate",
      "plugin",
      "route",
      "service",
      "target",
    ]);
    expect(JSON.stringify(own)).not.toContain("sealed:1");
    const { body: revision } = await api.call(`GET /revisions/${before + 1}`);
    expect(revision.summary).toBe('create application "whole"');
  });

  test("that fails in one part leaves nothing behind", async () => {
    const before = (await api.callRoot("GET /api/v1/admin/status")).body.revision;
    const answer = await api.call("POST /applications", {
      body: {
        name: "broken",
        domains: ["broken.test"],
        upstream: `http://127.0.0.1:${api.port}`,
      },
    });
    expect(answer).toMatchObject({
      status: 400,
      body: {
        error: "upstream.host: is the management API itself, which must not be proxied or called",
      },
    });
    for (const path of ["applications", "services", "routes"])
      expect((await api.call(`GET /${path}/broken`)).status).toBe(404);
    expect((await api.call("GET /certificates/broken%20local")).status).toBe(404);
    expect((await api.callRoot("GET /api/v1/admin/status")).body.revision).toBe(before);
  });

  test("with dry_run reports its changes and makes none", async () => {
    const answer = await api.call("POST /applications?dry_run=1", {
      body: { name: "trial", domains: ["trial.test"], upstream: upstream() },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-dry-run")).toBe("true");
    const kinds = answer.body.changes.map((one: { kind: string }) => one.kind);
    expect(kinds.toSorted()).toEqual(["application", "certificate", "route", "service", "target"]);
    expect((await api.call("GET /applications/trial")).status).toBe(404);
  });
});

describe("rejected", () => {
  const good = { name: "refused", domains: ["refused.test"], upstream: "http://127.0.0.1:1" };
  test.each([
    [{ upstream: undefined }, "upstream: is required, or targets"],
    [{ targets: [{ host: "a.test", port: 1 }] }, "targets: must be absent with upstream"],
    [{ upstream: "ftp://a.test" }, "upstream: must be an http:// or https:// address"],
    [{ upstream: "http://a.test/?x" }, "upstream: must be an http:// or https:// address"],
    [{ upstream: "http://a.test:99999" }, "upstream: must have a port from 1 to 65535"],
    [{ upstream: "http://a..b" }, "upstream.host: must be a name or an IP address"],
    [{ domains: [] }, "domains: must have at least 1 elements"],
    [{ domains: ["a.test", "b c"] }, "domains[1]: must be a host name, or one behind *."],
    [{ domains: ["a.test:80"] }, "domains[0]: must be a host name, or one behind *."],
    [{ https: { mode: "certificate" } }, "https.certificate_id: is required"],
    [
      { https: { mode: "certificate", certificate_id: "none" } },
      'https.certificate_id: certificate "none" does not exist',
    ],
    [{ https: { certificate_id: "x" } }, "https.certificate_id: is only valid with"],
    [{ https: { mode: "acme" } }, 'https.mode: "acme" requires an enabled ACME account'],
    [
      { https: { mode: "acme" }, domains: ["single"] },
      "domains[0]: cannot have an ACME certificate",
    ],
    [{ drift: [] }, "drift: is set by the gateway and cannot be chosen"],
    [{ parts: [] }, "parts: is not a known field"],
    [{ name: "x".repeat(113) }, "name: must have at most 112 characters"],
    [{ domains: ["shop.test"] }, 'route "shop" belongs to application "shop"'],
    [{ targets: [{ host: "unix:x" }], upstream: null }, "targets[0].host: must be unix: and"],
  ])("%j", async (fields, message) => {
    const answer = await api.call("POST /applications", { body: { ...good, ...fields } });
    expect(answer.body.error).toContain(message);
    expect(answer.status).toBe(message.includes("belongs") ? 409 : 400);
  });

  test.each(["adopted=1", "force=1", "dryrun=1"])("the parameter %s of POST", async (query) => {
    const answer = await api.call(`POST /applications?${query}`, { body: good });
    expect(answer.status).toBe(400);
  });
});

describe("every field has an effect", () => {
  beforeAll(() =>
    api.create("/applications", { name: "app", domains: ["app.test"], upstream: upstream() }),
  );
  const patch = async (body: object, query = "") => {
    const answer = await api.call(`PATCH /applications/app${query}`, { body });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    return answer.body;
  };

  test("domains", async () => {
    const { certificate } = await patch({ domains: ["App.test", "*.app.test"] });
    expect(certificate.domains).toEqual(["app.test", "*.app.test"]);
    expect((await visit("app.test")).text).toBe("origin /");
    expect((await visit("any.app.test", "/", "https")).text).toBe("origin /");
    expect(await presented("any.app.test")).toBe("DNS:app.test, DNS:*.app.test");
    await patch({ domains: ["app.test"] });
    expect((await visit("any.app.test")).status).toBe(404);
  });

  test("upstream", async () => {
    const before = (await api.call("GET /applications/app")).body;
    const same = await patch({ upstream: `${upstream()}/deep/` });
    expect(same.targets[0].id).toBe(before.targets[0].id);
    expect((await visit("app.test", "/x")).text).toBe("origin /deep/x");
    const moved = await patch({ upstream: `http://127.0.0.1:${other.port}` });
    expect(moved.targets).toHaveLength(1);
    expect(moved.targets[0].id).not.toBe(before.targets[0].id);
    expect(moved.service.id).toBe(before.service.id);
    expect((await visit("app.test", "/x")).text).toBe("other /x");
  });

  test("targets", async () => {
    const both = await patch({
      targets: [
        { host: "127.0.0.1", port: origin.port },
        { host: "127.0.0.1", port: other.port, tags: ["second"] },
      ],
    });
    expect(both.upstream).toBeNull();
    expect(both.targets).toHaveLength(2);
    const texts = await Promise.all(Array.from({ length: 12 }, () => visit("app.test")));
    expect(new Set(texts.map(({ text }) => text))).toEqual(new Set(["origin /", "other /"]));
    const one = await patch({ targets: [{ host: "127.0.0.1", port: other.port, weight: 7 }] });
    const old = both.targets.find((target: { port: number }) => target.port === other.port);
    expect(one.targets).toMatchObject([{ id: old.id, weight: 7, tags: [] }]);
    const back = await patch({ upstream: upstream() });
    expect(back.targets).toMatchObject([{ port: origin.port }]);
  });

  test("access", async () => {
    await api.call("PATCH /settings", { body: { trusted_proxies: ["127.0.0.0/8"] } });
    const from = async (address: string) => {
      const response = await fetch(`http://127.0.0.1:${api.gateway.httpPort}/`, {
        headers: { host: "app.test", "x-forwarded-for": address },
      });
      return response.status;
    };
    expect(await from("203.0.113.9")).toBe(200);
    const { plugins } = await patch({ access: "private" });
    expect(plugins).toMatchObject([{ name: "ip-restriction", label: "app access" }]);
    for (const inside of ["10.1.2.3", "172.31.0.1", "192.168.3.4", "127.0.0.1", "fd00::1"])
      expect(await from(inside)).toBe(200);
    for (const outside of ["203.0.113.9", "172.32.0.1", "2001:db8::1"])
      expect(await from(outside)).toBe(403);
    await patch({ access: "public" });
    expect(await from("203.0.113.9")).toBe(200);
    await api.call("PATCH /settings", { body: { trusted_proxies: [] } });
  });

  test("maintenance", async () => {
    await patch({ maintenance: true });
    expect((await visit("app.test")).status).toBe(503);
    await patch({ maintenance: false });
    expect((await visit("app.test")).status).toBe(200);
  });

  test("enabled, tags and description, on all parts", async () => {
    const off = await patch({ enabled: false, tags: ["t"], description: "d" });
    const parts = [off.service, ...off.routes, off.certificate];
    expect(parts).toHaveLength(3);
    for (const part of parts)
      expect(part).toMatchObject({ enabled: false, tags: ["t"], description: "d" });
    expect((await visit("app.test")).status).toBe(404);
    expect(await presented("app.test")).not.toContain("app.test");
    await patch({ enabled: true, tags: null, description: null });
    expect((await visit("app.test", "/", "https")).status).toBe(200);
  });

  test("name", async () => {
    const renamed = await patch({ name: "app2" });
    expect([renamed.service.name, renamed.routes[0].name, renamed.certificate.name]).toEqual([
      "app2",
      "app2",
      "app2 local",
    ]);
    await api.call("PATCH /applications/app2", { body: { name: "app" } });
  });

  test("https.mode off and back", async () => {
    const off = await patch({ https: { mode: "off" } });
    expect(off.certificate).toBeNull();
    expect(await presented("app.test")).not.toContain("app.test");
    const back = await patch({ https: { mode: "auto" } });
    expect(back.certificate.source).toBe("local_ca");
  });

  test("https.mode certificate is none for the certificate that goes with another mode", async () => {
    const { certificate } = await patch({ https: { mode: "auto" } });
    const { status, body } = await api.call("PATCH /applications/app", {
      body: { https: { mode: "certificate", certificate_id: certificate.id } },
    });
    expect([status, body.error]).toEqual([
      400,
      `https.certificate_id: certificate "${certificate.name}" belongs to the mode "auto" and is deleted with it; set another one, or leave the mode unchanged`,
    ]);
  });

  test("https.mode certificate, with redirect and hsts, for a certificate that covers the names", async () => {
    const body = { name: "own", source: "self_signed", domains: ["*.own.test"] };
    const { id } = await api.create("/certificates", body);
    const refused = await api.call("PATCH /applications/app", {
      body: { https: { mode: "certificate", certificate_id: "own" } },
    });
    expect(refused).toMatchObject({
      status: 400,
      body: { error: 'https.certificate_id: certificate "own" does not cover app.test' },
    });
    const { https, certificate, routes } = await patch({
      domains: ["a.own.test"],
      https: { mode: "certificate", certificate_id: "own", hsts: true },
    });
    expect(https.certificate_id).toBe(id);
    expect(certificate.id).toBe(id);
    expect(routes[0].https_redirect).toBe(308);
    expect(await presented("a.own.test")).toBe("DNS:*.own.test");
    const plain = await visit("a.own.test", "/x?y");
    expect(plain.status).toBe(308);
    const safe = await visit("a.own.test", "/", "https");
    expect(safe.headers.get("strict-transport-security")).toBe("max-age=31536000");
    const used = await api.call("DELETE /certificates/own");
    expect(used).toMatchObject({
      status: 409,
      body: { error: 'certificate "own" is used by application "app"' },
    });
    const without = await patch({ https: { redirect: false, hsts: false } });
    expect(without.plugins).toEqual([]);
    expect((await visit("a.own.test")).status).toBe(200);
    const auto = await patch({ domains: ["app.test"], https: { mode: "auto" } });
    expect(auto.https.certificate_id).toBeNull();
    expect((await api.call("GET /certificates/own")).status).toBe(200);
  });
});

describe("conditions and repetition", () => {
  const body = () => ({ name: "tagged", domains: ["tagged.test"], upstream: upstream() });
  test("sending back what was read changes nothing", async () => {
    await api.create("/applications", body());
    const read = await api.call("GET /applications/tagged");
    const before = (await api.callRoot("GET /api/v1/admin/status")).body.revision;
    for (const method of ["PUT", "PATCH"]) {
      const answer = await api.call(`${method} /applications/tagged`, { body: read.body });
      expect(answer.body).toEqual(read.body);
      expect(answer.headers.get("etag")).toBe(read.headers.get("etag"));
      expect(answer.headers.get("x-config-revision")).toBe(String(before));
    }
  });

  test("a stale version is refused, also after a change of a part by hand", async () => {
    const { headers } = await api.call("GET /applications/tagged");
    const etag = headers.get("etag") ?? "";
    await api.call("PATCH /routes/tagged", { body: { priority: 3 } });
    const options = { body: { maintenance: true }, headers: { "if-match": etag } };
    expect((await api.call("PATCH /applications/tagged", options)).status).toBe(412);
  });

  test("PUT creates under a free id, and restores defaults", async () => {
    const id = Bun.randomUUIDv7();
    const fields = { name: "put", domains: ["put.test"], upstream: upstream() };
    const made = await api.call(`PUT /applications/${id}`, {
      body: { ...fields, maintenance: true, access: "private" },
    });
    expect(made.body).toMatchObject({ id, maintenance: true });
    const again = await api.call("PUT /applications/put", { body: fields });
    expect(again.body).toMatchObject({ maintenance: false, access: "public", plugins: [] });
    const absent = { body: fields, headers: { "if-none-match": "*" } };
    expect((await api.call("PUT /applications/put", absent)).status).toBe(412);
  });
});
