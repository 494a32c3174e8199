// mtls-auth on a real gateway: allowed certificates, their consumers, headers for the target.
import "reflect-metadata";
import { beforeAll, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { compileNames, readIdentity, readNames } from "../../../src/plugins/mtls-auth/identity.ts";
import type { Leaf } from "../../support/authority.ts";
import { usePeople } from "../listeners/people.ts";
import { ask, GET, mirrored, useListeners } from "../listeners/world.ts";
import { pluginScene } from "../../support/plugin-scene.ts";

const { api, listener } = useListeners();
const people = usePeople(api);

interface Result {
  readonly status: number;
  readonly text: string;
  /** What reached the target; null: nothing. */
  readonly fields: Record<string, string> | null;
}

const made: { port?: number; plugin?: string; alice?: Leaf; service?: Leaf } = {};

async function visit(leaf: Leaf | undefined, request = GET): Promise<Result> {
  const { text } = await ask(made.port ?? 0, people.shown(leaf), request);
  const status = Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]);
  return {
    status,
    text,
    fields: text.includes("\r\n\r\n{") && status === 200 ? mirrored(text) : null,
  };
}

const fingerprintOf = ({ cert }: Leaf) => new X509Certificate(cert).fingerprint256;

/** The plugin with this configuration, in the place of the one before. */
async function use(own: object): Promise<void> {
  if (made.plugin !== undefined) await api.call(`DELETE /plugins/${made.plugin}`);
  made.plugin = (await api.create("/plugins", { name: "mtls-auth", config: own })).id as string;
}

beforeAll(async () => {
  made.alice = await people.root.sign({ names: ["alice"], commonName: "Alice A" });
  made.service = await people.root.sign({
    names: ["other.test", "One.Svc.Test"],
    addresses: ["192.0.2.7"],
    commonName: "service",
  });
  await api.create("/consumers", { username: "alice", groups: ["staff"] });
  await api.create("/consumers", { username: "Alice", custom_id: "Alice A" });
  await api.create("/consumers", { username: "robot", custom_id: "one.svc.test" });
  await api.create("/consumers", { username: "guest" });
  const certificate = people.good;
  const hex = fingerprintOf(certificate).replaceAll(":", "").toLowerCase();
  await api.create("/consumers", { username: "good", custom_id: hex });
  made.port = await listener("mtls", people.required({ client_auth: "request" }));
});

describe("a certificate", () => {
  test("that the listener accepts is sufficient, and required", async () => {
    await use({});
    const known = await visit(people.good);
    expect(known.status).toBe(200);
    expect(known.fields).toMatchObject({
      "client-cert": people.asField(people.good),
      "x-credential-identifier": fingerprintOf(people.good).replaceAll(":", "").toLowerCase(),
    });
    expect(known.fields).not.toHaveProperty("x-consumer-id");
    const none = await visit(undefined);
    expect(none.status).toBe(401);
    expect(none.text).toMatch(/\r\nWWW-Authenticate: Certificate realm="sluice"\r\n/i);
    expect(none.fields).toBeNull();
  });

  test("cannot come from a header field of the client", async () => {
    const lie = GET.replace("\r\n\r\n", `\r\nClient-Cert: ${people.asField(people.good)}\r\n\r\n`);
    expect((await visit(undefined, lie)).status).toBe(401);
  });

  test("may be one of a list", async () => {
    for (const written of [
      fingerprintOf(people.good),
      fingerprintOf(people.good).replaceAll(":", "").toLowerCase(),
    ]) {
      await use({ allowed_fingerprints: ["00".repeat(32), written] });
      expect((await visit(people.good)).status).toBe(200);
      const other = await visit(made.alice);
      expect(other.status).toBe(403);
      expect(other.text).not.toContain("Alice");
    }
  });

  test("may require a name, and both when both are configured", async () => {
    await use({ allowed_san: ["*.svc.test", "nobody"] });
    expect((await visit(made.service)).status).toBe(200);
    expect((await visit(made.alice)).status).toBe(403);
    await use({ allowed_san: ["192.0.2.7"] });
    expect((await visit(made.service)).status).toBe(200);
    await use({
      allowed_san: ["alice"],
      allowed_fingerprints: [fingerprintOf(people.good)],
    });
    // The good one is called alice as well.
    expect((await visit(people.good)).status).toBe(200);
    expect((await visit(made.alice)).status).toBe(403);
    expect((await visit(made.service)).status).toBe(403);
  });
});

describe("the consumer is found by", () => {
  const whoIs = async (leaf: Leaf | undefined) =>
    (await visit(leaf)).fields?.["x-consumer-username"] ?? null;

  test("alternative names, the first known one", async () => {
    await use({ consumer_by: "san" });
    expect(await whoIs(made.alice)).toBe("alice");
    expect(await whoIs(made.service)).toBe("robot");
  });

  test("the common name", async () => {
    await use({ consumer_by: "cn" });
    expect(await whoIs(made.alice)).toBe("Alice");
    expect((await visit(made.service)).status).toBe(403);
  });

  test("the fingerprint", async () => {
    await use({ consumer_by: "fingerprint" });
    expect(await whoIs(people.good)).toBe("good");
    expect((await visit(made.alice)).status).toBe(403);
  });

  test("nothing for rejected clients, which may be anonymous", async () => {
    await use({ consumer_by: "san", anonymous_consumer: "guest" });
    for (const leaf of [undefined, await people.root.sign({ names: ["nobody"] })]) {
      const { fields } = await visit(leaf);
      expect(fields).toMatchObject({
        "x-consumer-username": "guest",
        "x-anonymous-consumer": "true",
      });
    }
    expect(await whoIs(made.alice)).toBe("alice");
  });
});

test("the target receives the certificate only when configured", async () => {
  await use({ forward_headers: false });
  const lie = GET.replace("\r\n\r\n", "\r\nClient-Cert: :bGll:\r\n\r\n");
  const { status, fields } = await visit(people.good, lie);
  expect(status).toBe(200);
  expect(fields).not.toHaveProperty("client-cert");
});

test("preflight requests pass unless configured otherwise", async () => {
  const preflight = GET.replace("GET", "OPTIONS").replace(
    "\r\n\r\n",
    "\r\nOrigin: https://a.test\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
  );
  await use({});
  expect((await visit(undefined, preflight)).status).toBe(200);
  await use({ run_on_preflight: true });
  expect((await visit(undefined, preflight)).status).toBe(401);
});

test("on a listener without TLS there is no certificate", async () => {
  const scene = await pluginScene({ plugins: [{ name: "mtls-auth" }] });
  expect((await scene.get("/", { "Client-Cert": ":bGll:" })).status).toBe(401);
  await scene.stop();
});

test.each([["abc", "must be a SHA-256 in hexadecimal, with or without colons"]])(
  "%s is no fingerprint",
  async (text, message) => {
    const body = { name: "mtls-auth", label: "wrong", config: { allowed_fingerprints: [text] } };
    const answer = await api.call("POST /plugins", { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(message);
  },
);

test("names other than DNS names are compared exactly", () => {
  const identity = (value: string) => ({
    fingerprint: "",
    commonName: null,
    notAfter: 0,
    names: [{ kind: "uri" as const, value }],
  });
  const isAllowed = compileNames(["spiffe://A/b", "*.a.test"]);
  expect(isAllowed(identity("spiffe://A/b"))).toBe(true);
  expect(isAllowed(identity("spiffe://a/b"))).toBe(false);
  expect(isAllowed(identity("x.a.test"))).toBe(false);
});

describe("the certificate parser", () => {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
  async function identityOf(
    name: string,
    names: { type: "dns" | "url" | "email" | "ip" | "upn"; value: string }[],
  ) {
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name,
      keys,
      signingAlgorithm: algorithm,
      extensions: names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)],
    });
    return readIdentity(new Uint8Array(certificate.rawData));
  }

  test("reads names unchanged, in every form", async () => {
    const identity = await identityOf("CN=one", [
      { type: "dns", value: "evil, DNS:good" },
      { type: "dns", value: 'quo"te' },
      { type: "dns", value: "nul\u0000.good" },
      { type: "dns", value: "Plain.Test" },
      { type: "url", value: "spiffe://a/b, DNS:x" },
      { type: "email", value: "a@b.c" },
      { type: "ip", value: "2001:db8::1" },
      { type: "upn", value: "DNS:user" },
    ]);
    expect(identity?.commonName).toBe("one");
    expect(identity?.names).toEqual([
      { kind: "dns", value: "evil, dns:good" },
      { kind: "dns", value: 'quo"te' },
      { kind: "dns", value: "nul\u0000.good" },
      { kind: "dns", value: "plain.test" },
      { kind: "uri", value: "spiffe://a/b, DNS:x" },
      { kind: "email", value: "a@b.c" },
      { kind: "address", value: "2001:db8::1" },
    ]);
  });

  test("returns no common name when there are several or none", async () => {
    expect((await identityOf("CN=one, O=x, CN=two", []))?.commonName).toBeNull();
    expect((await identityOf("O=x", []))?.commonName).toBeNull();
    expect((await identityOf("CN=a\\, CN\\=b", []))?.commonName).toBe("a, CN=b");
  });

  test("rejects an invalid one", () => {
    for (const bytes of [[], [0x30, 0x80], [0x30, 0x03, 1, 2, 3]])
      expect(readIdentity(Uint8Array.from(bytes))).toBeNull();
    for (const odd of ["x", "DNS:a,DNS:b", 'DNS:"a', "::", "DNS:a, "])
      expect(readNames(odd).map(({ value }) => value)).not.toContain("b");
  });

  test.each([
    ["*.a.test", "x.a.test", true],
    ["*.A.test", "x.a.test", true],
    ["*.a.test", "x.y.a.test", false],
    ["*.a.test", "a.test", false],
    ["*.a.test", ".a.test", false],
    ["a.test", "x.a.test", false],
    ["A.test", "a.test", true],
    ["2001:DB8:0::1", "2001:db8::1", true],
  ])("%s allows %s: %p", (wanted, value, isAllowed) => {
    const identity = {
      fingerprint: "",
      commonName: null,
      notAfter: 0,
      names: [{ kind: value.includes(":") ? ("address" as const) : ("dns" as const), value }],
    };
    expect(compileNames([wanted])(identity)).toBe(isAllowed);
  });
});
