// Write-only fields survive a PUT that omits them, in every collection that has one.
import { beforeAll, describe, expect, test } from "bun:test";
import { decryptUnder } from "../../../src/crypto/passphrase-box.ts";
import { selfSigned } from "../../support/certificate.ts";
import { useGateway } from "./client.ts";

const api = useGateway();
const PASSPHRASE = "a passphrase of tests";
const CANARY = "canary-of-a-value-that-is-write-only";
let certificate: Awaited<ReturnType<typeof selfSigned>>;

beforeAll(async () => {
  certificate = await selfSigned("write-only.test");
  await api.create("/consumers", { username: "ada" });
});

/** The object as it is stored, with its secrets. */
async function stored(collection: string, id: string): Promise<string> {
  const { body } = await api.call("GET /export?secrets=1", {
    headers: { "x-passphrase": PASSPHRASE },
  });
  const document = JSON.parse(await decryptUnder(PASSPHRASE, body.encrypted));
  const object = document[collection].find((each: { id: string }) => each.id === id);
  const { updated_at: _, description: __, name: ___, ...rest } = object;
  return JSON.stringify(rest);
}

interface Holder {
  readonly path: string;
  readonly collection: string;
  /** All but the description. */
  readonly body: () => object;
}

const holders: readonly Holder[] = [
  {
    path: "/secrets",
    collection: "secrets",
    body: () => ({ name: "kept", value: CANARY }),
  },
  {
    path: "/certificates",
    collection: "certificates",
    body: () => ({ name: "own", certificate: certificate.cert, private_key: certificate.key }),
  },
  {
    path: "/credentials",
    collection: "credentials",
    body: () => ({ consumer_id: "ada", type: "hmac", identifier: "ada", secret: CANARY }),
  },
  {
    path: "/acme/accounts",
    collection: "acme_accounts",
    body: () => ({
      name: "authority",
      directory_url: "https://127.0.0.1:9/dir",
      terms_agreed: true,
      eab_key_id: "id",
      eab_hmac_key: "Y2FuYXJ5",
      enabled: false,
    }),
  },
  {
    path: "/dns-providers",
    collection: "dns_providers",
    body: () => ({
      name: "zone",
      type: "cloudflare",
      enabled: false,
      config: { api_token: CANARY },
    }),
  },
  {
    path: "/alerts",
    collection: "alerts",
    body: () => ({
      name: "ops",
      type: "webhook",
      events: ["target_down"],
      enabled: false,
      config: { url: `http://127.0.0.1:9/${CANARY}`, secret: CANARY },
    }),
  },
  {
    path: "/plugins",
    collection: "plugins",
    body: () => ({
      name: "ldap-auth",
      label: "directory",
      enabled: false,
      config: {
        url: "ldaps://127.0.0.1:9",
        base_dn: "dc=example",
        bind_dn: "cn=reader",
        bind_password: CANARY,
      },
    }),
  },
];

describe("a PUT of what was read, with another description, keeps the secret", () => {
  test.each(holders.map((holder) => [holder.path, holder] as const))("%s", async (path, holder) => {
    const { id } = await api.create(path, holder.body());
    const before = await stored(holder.collection, id);
    const read = await api.call(`GET ${path}/${id}`);
    expect(read.status).toBe(200);
    expect(JSON.stringify(read.body)).not.toContain(CANARY);
    const written = { ...read.body, description: "another one" };
    const { status, body } = await api.call(`PUT ${path}/${id}`, { body: written });
    expect([status, body.error, body.description]).toEqual([200, undefined, "another one"]);
    expect(await stored(holder.collection, id)).toBe(before);
  });

  test("/sso", async () => {
    const sso = { issuer: "https://127.0.0.1:9", client_id: "c", client_secret: CANARY };
    expect((await api.call("PUT /sso", { body: sso })).body.error).toBeUndefined();
    const { client_secret: _, ...rest } = sso;
    const { status, body } = await api.call("PUT /sso", { body: rest });
    expect([status, body.client_secret_set]).toEqual([200, true]);
  });

  // Last, because the first user makes credentials mandatory.
  test("/users", async () => {
    const person = { email: "root@example.org", name: "Root", role: "admin" };
    const password = "a password of tests";
    const { id } = await api.create("/users", { ...person, password });
    const login = () => api.call("POST /auth/login", { body: { email: person.email, password } });
    const cookie = (await login()).headers.get("set-cookie")?.split(";")[0] ?? "";
    const { status, body } = await api.call(`PUT /users/${id}`, {
      headers: { cookie },
      body: { ...person, name: "Another" },
    });
    expect([status, body.name, body.has_password]).toEqual([200, "Another", true]);
    expect((await login()).status).toBe(200);
  });
});
