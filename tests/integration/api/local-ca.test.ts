// The local CA in the management API and in handshakes: who may do what, and what every worker presents.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { connect } from "node:tls";
import { eventually } from "../../support/poll.ts";
import { type Call, expectOk, usePeople } from "./people.ts";

const people = usePeople();
let editor: Call;
let viewer: Call;
let origin: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("at home") });
  await people.create("ed", "editor");
  await people.create("vi");
  [editor, viewer] = await Promise.all([
    people.signIn("ed@a.example"),
    people.signIn("vi@a.example"),
  ]);
});
afterAll(() => origin.stop(true));

const upstream = () => `http://127.0.0.1:${origin.port}`;
const download = (end: string) => fetch(`${people.gateway.admin}/api/v1/local-ca/root.${end}`);

/** Names of the certificate that a client gets that trusts nothing but the root; null: it does not accept it. */
async function presented(servername: string | null): Promise<string | null> {
  const ca = await (await download("pem")).text();
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const socket = connect(
    {
      host: "127.0.0.1",
      port: people.gateway.httpsPort,
      ca,
      ...(servername === null ? {} : { servername }),
    },
    () => {
      resolve(socket.getPeerCertificate().subjectaltname ?? "");
      socket.destroy();
    },
  );
  socket.on("error", () => resolve(null));
  return await promise;
}

describe("the root", () => {
  test("is created with the first certificate, and anyone may download it", async () => {
    expect((await download("pem")).status).toBe(404);
    expect((await viewer("GET /local-ca")).body).toEqual({ root: null });
    expect((await people.nobody("GET /local-ca")).status).toBe(401);
    const body = { name: "nas", source: "local_ca", domains: ["nas.lan", "127.0.0.1"] };
    await expectOk(editor("POST /certificates", body));
    const { root } = await expectOk(viewer("GET /local-ca"));
    const pem = await download("pem");
    expect(await pem.text()).toBe(root.certificate);
    const der = await download("crt");
    expect(der.headers.get("content-type")).toBe("application/x-x509-ca-cert");
    const { fingerprint256 } = new X509Certificate(await der.bytes());
    expect(fingerprint256.replaceAll(":", "").toLowerCase()).toBe(root.fingerprint);
    expect((await fetch(`${people.gateway.admin}/api/v1/local-ca/root.pem?x=1`)).status).toBe(400);
  });

  test("has a key that no role reads, not even in an export with secrets", async () => {
    for (const call of [people.root, editor, viewer])
      for (const path of ["/local-ca", "/certificates", "/settings", "/export"])
        expect(JSON.stringify((await call(`GET ${path}`)).body)).not.toMatch(
          /PRIVATE KEY|sealed:1/,
        );
    expect((await editor("GET /export?secrets=1")).status).toBe(403);
    const { body } = await people.root("GET /audit");
    expect(JSON.stringify(body)).not.toMatch(/PRIVATE KEY|sealed:1/);
  });

  test("only an admin replaces it, or extends what it signs", async () => {
    const settings = { local_ca: { permitted_names: ["bank.example.com"] } };
    for (const call of [editor, viewer]) {
      expect((await call("POST /local-ca/rotate")).status).toBe(403);
      expect((await call("PATCH /settings", settings)).status).toBe(403);
    }
    expect((await people.nobody("POST /local-ca/rotate")).status).toBe(401);
    expect(
      (await viewer("POST /certificates", { name: "x", source: "local_ca", domains: ["x.lan"] }))
        .status,
    ).toBe(403);
    const bank = ["bank.example.com"];
    const tries = [
      await editor("POST /certificates", { name: "b", source: "local_ca", domains: bank }),
      await editor("PATCH /certificates/nas", { domains: bank }),
      await editor("POST /applications", {
        name: "b",
        domains: bank,
        https: { mode: "local_ca" },
        upstream: upstream(),
      }),
    ];
    for (const { status, body } of tries)
      expect([status, body.error]).toEqual([
        400,
        "domains[0]: is not permitted for the local CA: an admin can add it to settings.local_ca.permitted_names",
      ]);
    const wrong = { local_ca: { permitted_networks: ["10.0.0.0/8", "10.0.0.0/40"] } };
    const refusal = await people.root("PATCH /settings", wrong);
    expect([refusal.status, refusal.body.error]).toEqual([
      400,
      "local_ca.permitted_networks[1]: must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32",
    ]);
    await expectOk(people.root("PATCH /settings", settings));
    await expectOk(editor("POST /certificates", { name: "b", source: "local_ca", domains: bank }));
    expect(await presented("bank.example.com")).toBe("DNS:bank.example.com");
    await expectOk(people.root("PATCH /settings", { local_ca: null }));
    const before = await expectOk(viewer("GET /local-ca"));
    const after = await expectOk(people.root("POST /local-ca/rotate"));
    expect(after.root.fingerprint).not.toBe(before.root.fingerprint);
    await eventually(async () => (await presented("nas.lan")) !== null);
    const { body: entries } = await people.root("GET /audit");
    expect(entries.find(({ kind }: { kind: string }) => kind === "local_ca")).toMatchObject({
      actor: "root@a.example",
      action: "rotate",
      result: "ok",
    });
  });
});

describe("clients that trust the root", () => {
  test("accept names, and an address for which they send no name", async () => {
    for (let ask = 0; ask < 5; ask++) {
      expect(await presented("nas.lan")).toBe("DNS:nas.lan, IP Address:127.0.0.1");
      expect(await presented(null)).toBe("DNS:nas.lan, IP Address:127.0.0.1");
      expect(await presented("elsewhere.lan")).toBeNull();
    }
    await expectOk(editor("PATCH /certificates/nas", { domains: ["nas.lan"] }));
    expect(await presented(null)).toBeNull();
    expect(await presented("nas.lan")).toBe("DNS:nas.lan");
  });

  test("accept an application with a private name at once, which redirects in the mode local_ca only", async () => {
    const made = await expectOk(
      editor("POST /applications", { name: "tv", domains: ["tv.lan", "tv"], upstream: upstream() }),
    );
    expect(made.certificate).toMatchObject({
      name: "tv local",
      source: "local_ca",
      status: "valid",
      domains: ["tv.lan", "tv"],
    });
    expect(made.interim_certificate).toBeNull();
    expect(made.routes[0].https_redirect).toBe(false);
    expect(await presented("tv.lan")).toBe("DNS:tv.lan, DNS:tv");
    const { routes } = await expectOk(
      editor("PATCH /applications/tv", { https: { mode: "local_ca" } }),
    );
    expect(routes[0].https_redirect).toBe(308);
    const { certificate } = await expectOk(
      editor("PATCH /applications/tv?dry_run=1", { domains: ["radio.lan"] }),
    );
    expect(certificate.domains).toEqual(["radio.lan"]);
    expect(await presented("tv")).toBe("DNS:tv.lan, DNS:tv");
    const off = await expectOk(editor("PATCH /applications/tv", { https: { mode: "off" } }));
    expect(off.certificate).toBeNull();
    expect(await presented("tv.lan")).toBeNull();
  });

  test("a name that the settings no longer permit gets a self-signed certificate instead", async () => {
    await expectOk(
      people.root("PATCH /settings", { local_ca: { permitted_names: ["home.arpa"] } }),
    );
    const body = { name: "radio", domains: ["radio.lan", "radio.home.arpa"], upstream: upstream() };
    const made = await expectOk(editor("POST /applications", body));
    expect(made.certificate).toMatchObject({ source: "self_signed", domains: ["radio.lan"] });
    expect(made.warnings).toEqual([
      'application "radio" has a self-signed certificate for radio.lan, which settings.local_ca does not permit',
    ]);
    expect(made.interim_certificate).toMatchObject({
      source: "local_ca",
      domains: ["radio.home.arpa"],
    });
    await expectOk(people.root("PATCH /settings", { local_ca: null }));
    await eventually(async () => {
      const { certificate } = await expectOk(viewer("GET /applications/radio"));
      return certificate.source === "local_ca" && certificate.domains.length === 2;
    });
    expect(await presented("radio.lan")).toBe("DNS:radio.lan, DNS:radio.home.arpa");
  });
});

describe("a configuration file", () => {
  test("with a certificate of the local CA needs no material: the gateway signs it", async () => {
    const certificates = [{ name: "filed", source: "local_ca", domains: ["filed.lan", "FD00::9"] }];
    await expectOk(people.root("POST /import", { format: 1, certificates }));
    await eventually(async () => (await presented("filed.lan")) !== null);
    // The workers present it before the engine ends its attempt, which is "renewing" until then.
    const filed = () => viewer("GET /certificates/filed").then(({ body }) => body);
    await eventually(async () => (await filed()).status !== "renewing");
    expect(await filed()).toMatchObject({ status: "valid", last_error: null, attempts: 0 });
  });

  test("without secrets brings a deleted one back, signed again", async () => {
    const { fingerprint } = (await viewer("GET /certificates/filed")).body;
    const exported = await expectOk(viewer("GET /export"));
    await expectOk(people.root("POST /import", exported));
    expect((await viewer("GET /certificates/filed")).body.fingerprint).toBe(fingerprint);
    await expectOk(editor("DELETE /certificates/filed"));
    await expectOk(people.root("POST /import", exported));
    await eventually(async () => (await presented("filed.lan")) !== null);
    expect((await viewer("GET /certificates/filed")).body.fingerprint).not.toBe(fingerprint);
  });

  test("cannot make it sign a name that is not permitted", async () => {
    const certificates = [{ name: "bad", source: "local_ca", domains: ["bank.example.com"] }];
    await expectOk(people.root("POST /import", { format: 1, certificates }));
    await eventually(async () => (await viewer("GET /certificates/bad")).body.status === "failed");
    const { last_error: error } = (await viewer("GET /certificates/bad")).body;
    expect(error).toContain("domains[0]: is not permitted for the local CA");
    await expectOk(editor("DELETE /certificates/bad"));
  });
});
