// oidc, ldap-auth and forward-auth on a real gateway with two workers: sessions hold in both, secrets are never shown.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestDirectory } from "../../support/directory.ts";
import { talk, useListeners } from "../listeners/world.ts";
import { clientId, clientSecret, LyingProvider } from "../sso/lying-provider.ts";
import { CALLBACK, Jar, LOGOUT } from "./oidc-world.ts";

const { api, listener } = useListeners();
const made: { port: number; plugin?: string } = { port: 0 };
let provider: LyingProvider;
let directory: TestDirectory;

/** The plugin alone, in the place of the one before. */
async function use(name: string, config: object): Promise<string> {
  if (made.plugin !== undefined) await api.call(`DELETE /plugins/${made.plugin}`);
  made.plugin = (await api.create("/plugins", { name, config })).id as string;
  return made.plugin;
}

/** On a connection of its own, so that either worker may get it. */
async function visit(path: string, fields: Readonly<Record<string, string>> = {}) {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = await talk(made.port, [
    `GET ${path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n${lines.join("")}\r\n`,
  ]);
  const [head = ""] = text.split("\r\n\r\n");
  const headers = new Headers();
  for (const line of head.split("\r\n").slice(1)) {
    const [, name = "", value = ""] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
    headers.append(name, value);
  }
  return { status: Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]), headers, text };
}

const often = async (path: string, fields: Record<string, string>) => {
  const all = await Promise.all(Array.from({ length: 16 }, () => visit(path, fields)));
  return [...new Set(all.map(({ status }) => status))];
};

beforeAll(async () => {
  provider = await LyingProvider.start();
  directory = await TestDirectory.start();
  made.port = await listener("workers");
});
afterAll(async () => {
  directory.stop();
  await provider.stop();
});

test("a session of oidc is valid in both workers, and so is its end", async () => {
  const { issuer } = provider;
  const id = await use("oidc", { issuer, client_id: clientId, client_secret: clientSecret });
  expect(JSON.stringify((await api.call(`GET /plugins/${id}`)).body)).not.toContain(clientSecret);
  const jar = new Jar();
  const begun = await visit("/page");
  jar.keep(begun);
  const back = provider.agree(begun.headers.get("location") ?? "");
  const done = await visit(`${CALLBACK}?${back}`, jar.header);
  jar.keep(done);
  expect([done.status, done.headers.get("location")]).toEqual([302, "/page"]);
  expect(await often("/page", jar.header)).toEqual([200]);
  // A change of the instance leaves sessions alone.
  await api.call(`PATCH /plugins/${id}`, { body: { config: { realm: "other" } } });
  expect(await often("/page", jar.header)).toEqual([200]);
  await visit(LOGOUT, jar.header);
  expect(await often("/page", jar.header)).toEqual([302]);
});

test("a login of oidc can be completed once in both workers together", async () => {
  const { issuer } = provider;
  await use("oidc", { issuer, client_id: clientId, client_secret: clientSecret });
  const jar = new Jar();
  const begun = await visit("/page");
  jar.keep(begun);
  const path = `${CALLBACK}?${provider.agree(begun.headers.get("location") ?? "")}`;
  const all = await Promise.all(Array.from({ length: 16 }, () => visit(path, jar.header)));
  expect(all.filter(({ status }) => status === 302)).toHaveLength(1);
  expect(all.filter(({ status }) => status === 400)).toHaveLength(15);
});

test("ldap-auth counts guesses in both workers together and caches its password", async () => {
  directory.entries = [
    { dn: "cn=reader,dc=x", password: "canary-reads" },
    { dn: "uid=ann,dc=x", password: "right", attributes: { uid: ["ann"] } },
  ];
  const url = `ldap://127.0.0.1:${directory.port}`;
  const id = await use("ldap-auth", {
    url,
    bind_dn: "cn=reader,dc=x",
    bind_password: "canary-reads",
    base_dn: "dc=x",
  });
  expect(JSON.stringify((await api.call(`GET /plugins/${id}`)).body)).not.toContain("canary");
  const login = (password: string) => ({ Authorization: `Basic ${btoa(`ann:${password}`)}` });
  await api.call(`PATCH /plugins/${id}`, { body: { config: { realm: "other" } } });
  expect((await visit("/", login("right"))).status).toBe(200);
  const guesses = await Promise.all(
    Array.from({ length: 30 }, (_, at) => visit("/", login(`guess ${at}`))),
  );
  expect(guesses.filter(({ status }) => status === 401)).toHaveLength(10);
  expect(guesses.filter(({ status }) => status === 429)).toHaveLength(20);
});

test.each([
  ["oidc", { client_id: "x" }, "config.issuer"],
  ["oidc", { issuer: "http://id.example", client_id: "x" }, "config.issuer: must be https"],
  ["forward-auth", { url: "ftp://a" }, "config.url: must be an http:// or https:// address"],
  ["forward-auth", { url: "http://a", cache_ttl: 1 }, "config.cache_key: must contain"],
  ["forward-auth", { url: "http://a", request_headers: ["a b"] }, "config.request_headers[0]"],
  ["ldap-auth", { url: "http://a", bind_dn: "x=${username}" }, "config.url: must be ldap://"],
  ["ldap-auth", { url: "ldap://a", bind_dn: "cn=x" }, "config.base_dn: is required"],
])("%s with %o is refused when it is written", async (name, config, error) => {
  const body = { name, label: "wrong", config };
  const answer = await api.call("POST /plugins", { body });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toStartWith(error);
});
