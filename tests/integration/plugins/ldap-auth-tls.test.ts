// ldap-auth over TLS: only the verified directory receives passwords and is believed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { ber, type Entry, TestDirectory } from "../../support/directory.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

const PEOPLE = "ou=people,dc=x";
const entries: readonly Entry[] = [
  { dn: `uid=ann,${PEOPLE}`, password: "right", attributes: { uid: ["ann"] } },
  { dn: "cn=reader,dc=x", password: "reads" },
];
const searching = { bind_dn: "cn=reader,dc=x", bind_password: "reads", base_dn: PEOPLE };

let scene: PluginScene;

const configure = (config: Record<string, unknown>) =>
  scene.apply({
    plugins: [{ name: "ldap-auth", config: { bind_dn: `uid=\${username},${PEOPLE}`, ...config } }],
  });
const as = (username: string, password = "right") =>
  scene.get("/", { Authorization: `Basic ${btoa(`${username}:${password}`)}` });

beforeAll(async () => {
  scene = await pluginScene({});
});
afterAll(() => scene.stop());

describe("encrypted", () => {
  let tls: { readonly cert: string; readonly key: string };
  const servers: TestDirectory[] = [];
  const start = async (isImplicit: boolean, certificate: typeof tls | null = tls) => {
    const server = await TestDirectory.start(certificate, isImplicit);
    server.entries = entries;
    servers.push(server);
    return server;
  };
  const at = ({ port }: TestDirectory, scheme: string) => ({
    url: `${scheme}://localhost:${port}`,
    ca: tls.cert,
    start_tls: scheme === "ldap",
  });

  beforeAll(async () => {
    tls = await selfSigned();
  });
  afterAll(() => {
    for (const server of servers) server.stop();
  });

  test.each(["ldap", "ldaps"])("over %s, everything is", async (scheme) => {
    const server = await start(scheme === "ldaps");
    await configure({ ...searching, ...at(server, scheme) });
    expect((await as("ann")).status).toBe(200);
    const asked = server.asked.filter((each) => each !== "starttls");
    expect(asked).toHaveLength(3);
    for (const each of asked) expect(each).toStartWith("tls ");
    await configure({ ...at(server, scheme), ca: null });
    expect((await as("ann")).status).toBe(503);
    await configure({ ...at(server, scheme), ca: null, verify_certificate: false });
    expect((await as("ann")).status).toBe(200);
  });

  test.each(["ldap", "ldaps"])(
    "over %s, a certificate for another host is refused",
    async (scheme) => {
      const other = await selfSigned("other");
      const server = await start(scheme === "ldaps", other);
      await configure({ ...at(server, scheme), ca: other.cert });
      expect((await as("ann")).status).toBe(503);
      expect(server.asked.join()).not.toContain("bind");
    },
  );

  test("or not at all: without StartTLS no password is sent", async () => {
    const server = await start(false, null);
    await configure({ ...at(server, "ldap") });
    expect((await as("ann")).status).toBe(503);
    expect(server.asked).toEqual(["starttls"]);
  });

  test("or not at all: a broken connection does not fall back to plain text", async () => {
    const server = await start(false);
    const before = server.connections;
    await configure(at(server, "ldap"));
    server.bend = (operation, answer) => (operation === "bind" ? null : answer);
    await configure({ ...at(server, "ldap"), timeout: 200 });
    expect((await as("ann")).status).toBe(503);
    expect(server.connections).toBe(before + 1);
  });

  test("data injected before the encryption is rejected", async () => {
    const server = await start(false);
    await configure({ ...at(server, "ldap"), timeout: 500 });
    // A bind that succeeded, complete or lacking a byte that the encrypted part brings.
    const forged = ber(
      0x30,
      ber(0x02, "\x02"),
      ber(0x61, ber(0x0a, "\0"), ber(0x04), ber(0x04, "0")),
    );
    for (const extra of [forged, forged.subarray(0, -1)]) {
      server.bend = (operation, answer) =>
        operation === "starttls" ? Buffer.concat([answer, extra]) : answer;
      expect((await as("ann", "wrong")).status).toBe(503);
    }
  });
});
