// Documents over every collection that there is: what is exported can be imported, here and under another key; masks keep secrets.
import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { canonical } from "../../../../src/import/transfer/canonical.ts";
import { Draft } from "../../../../src/control/draft.ts";
import { documentOf } from "../../../../src/import/transfer/document.ts";
import { applyDocument } from "../../../../src/import/transfer/plan.ts";
import { maskSecrets, openSecrets } from "../../../../src/import/transfer/secret-material.ts";
import { createImportNormalizers } from "../../../../src/import/transfer/import-normalizers.ts";
import { config as fields, listOf, secret } from "../../../../src/pdk/fields.ts";
import { definePlugin } from "../../../../src/pdk/definition.ts";
import { Type as t } from "@sinclair/typebox";
import { SecretBox } from "../../../../src/crypto/secret-box.ts";
import {
  type CollectionName,
  collectionNames,
  type GatewayConfig,
  singletonNames,
} from "../../../../src/model/gateway-config.ts";
import { emptyConfiguration } from "../../../../src/store/first-configuration.ts";

const CANARY = "Canary-7f3a";
/** Looks like an encrypted value and is not. */
const CLIENT_ID = "01A00000-0000-7000-8000-00000000000A";
const at = "2026-01-01T00:00:00.000Z";

/** One of each; a new collection is missing here until it has one. References are by name. */
const samples: { readonly [K in CollectionName]: object } = {
  services: { name: "web", tls: { client_certificate_id: "shop" } },
  targets: { service_id: "web", host: "10.0.0.1", port: 80 },
  routes: { name: "shop", service_id: "web", paths: ["/a", "=/b"], listener_ids: ["main"] },
  listeners: { name: "main", address: "0.0.0.0", port: 8080, protocol: "http" },
  certificates: {
    name: "shop",
    domains: ["shop.test"],
    certificate: "PEM",
    issuer: "x",
    sealed_key: { plain: `${CANARY} key` },
    not_before: at,
    not_after: at,
    fingerprint: "f",
  },
  stream_routes: { name: "db", listen_port: 5432, service_id: "web" },
  consumers: { username: "ada" },
  credentials: {
    consumer_id: "ada",
    type: "jwt",
    identifier: "ada",
    algorithm: "HS256",
    sealed_secret: { plain: `${CANARY} secret` },
    secret_hash: `${CANARY} hash`,
  },
  plugins: {
    name: "oidc",
    label: "login",
    route_id: "shop",
    consumer_id: "ada",
    config: { providers: [{ name: "a", secret: { sealed: { plain: `${CANARY} config` } } }] },
  },
  alerts: {
    name: "ops",
    type: "webhook",
    events: ["target_down"],
    service_ids: ["web"],
    config: { secret: { sealed: { plain: `${CANARY} alert` } } },
  },
  acme_accounts: { name: "le", sealed_key: { plain: `${CANARY} account` } },
  dns_providers: {
    name: "zone",
    type: "webhook",
    config: { secret: { sealed: { plain: `${CANARY} zone` } } },
  },
  applications: {
    name: "shop",
    domains: ["shop.test"],
    parts: [{ role: "route", route_id: "shop", fields: { service_id: "web" } }],
  },
  users: {
    email: "a@a.example",
    name: "A",
    role: "admin",
    password_hash: `${CANARY} password`,
    sso: null,
  },
  tokens: { name: "deploy", role: "editor", token_hash: `${CANARY} token` },
  secrets: { name: "kept", sealed_value: { plain: `${CANARY} value` } },
};

const singletons = {
  settings: { debug_headers: true },
  sso: { client_id: CLIENT_ID, client_secret: { sealed: { plain: `${CANARY} client` } } },
};

const [here, there] = [new SecretBox(randomBytes(32)), new SecretBox(randomBytes(32))];

function imported(
  document: object,
  { box, base = emptyConfiguration(at) }: { box: SecretBox; base?: GatewayConfig },
  mode: "merge" | "replace" = "replace",
): Draft {
  let now = Date.parse(at);
  const draft = new Draft(base, () => {
    now += 1000;
    return new Date(now).toISOString();
  });
  applyDocument(document, draft, { mode, box });
  return draft;
}

const lists = Object.fromEntries(Object.entries(samples).map(([name, one]) => [name, [one]]));
const config = imported({ format: 1, ...lists, ...singletons }, { box: here }).config;

const whole = (of: GatewayConfig, box: SecretBox) =>
  documentOf(of, {
    program: "sluice",
    isShown: () => true,
    convert: (value) => openSecrets(value, box),
  });
const plain = documentOf(config, { program: "sluice", isShown: () => true, convert: maskSecrets });

describe("every collection", () => {
  test.each([...collectionNames])("%s is carried over as it is, under another key", (name) => {
    const other = imported(whole(config, here), { box: there }).config;
    expect(other[name].size).toBe(1);
    expect(JSON.stringify(whole(other, there)[name])).toBe(
      JSON.stringify(whole(config, here)[name]),
    );
    const sealed = JSON.stringify([...other[name].values()]);
    expect(sealed).not.toContain(`sealed:1:${here.keyId}`);
  });

  test("and singletons are carried over byte for byte", () => {
    const other = imported(whole(config, here), { box: there }).config;
    expect(Object.keys(whole(other, there)).toSorted()).toEqual(
      ["format", "program", ...collectionNames, ...singletonNames].toSorted(),
    );
    expect(JSON.stringify(whole(other, there))).toBe(JSON.stringify(whole(config, here)));
    expect(JSON.stringify(whole(config, here)).split(CANARY)).toHaveLength(12);
  });

  test("refers to others by name or id", () => {
    const [route, plugin, service] = (
      [config.routes, config.plugins, config.services] as const
    ).map((objects) => [...(objects as ReadonlyMap<string, object>).values()][0]) as [
      Record<string, unknown>,
      Record<string, unknown>,
      { tls: object },
    ];
    const id = (name: CollectionName) => [...config[name].keys()][0];
    expect(route).toMatchObject({ service_id: id("services"), listener_ids: [id("listeners")] });
    expect(plugin).toMatchObject({ route_id: id("routes"), consumer_id: id("consumers") });
    const part = { route_id: id("routes"), fields: { service_id: id("services") } };
    expect([...config.applications.values()][0]).toMatchObject({ parts: [part] });
    expect(config.sso.client_id).toBe(CLIENT_ID);
    expect(service.tls).toMatchObject({ client_certificate_id: id("certificates") });
  });
});

describe("a plain document", () => {
  test("holds no secret in any form", () => {
    const text = JSON.stringify(plain);
    expect(text).not.toContain(CANARY);
    expect(text).not.toContain("sealed:1:");
    expect(text.split('"***"')).toHaveLength(12);
  });

  test.each(["merge", "replace"] as const)(
    "changes nothing in its own gateway, with %s",
    (mode) => {
      expect(imported(plain, { box: here, base: config }, mode).isUnchanged()).toBe(true);
    },
  );

  test("is rejected by a gateway without the secrets", () => {
    expect(() => imported(plain, { box: here })).toThrow(
      /^\w+\[0\]\.sealed_key: is masked, and the gateway has no value for it/,
    );
  });

  test("is the same whatever the field order of its objects", () => {
    const backwards = (value: unknown): unknown =>
      typeof value !== "object" || value === null || Array.isArray(value)
        ? value
        : Object.fromEntries(
            Object.entries(value)
              .toReversed()
              .map(([k, v]) => [k, backwards(v)]),
          );
    for (const name of collectionNames) {
      const [object] = plain[name] as object[];
      expect(JSON.stringify(canonical(backwards(object)))).toBe(JSON.stringify(object));
      expect(Object.keys(object!)[0]).toBe("id");
    }
  });
});

describe("the secret of an item of a list", () => {
  const withUsers = (users: object[]) => ({
    format: 1,
    plugins: [{ name: "basic", label: "x", config: { users } }],
  });
  const base = imported(
    withUsers([
      { username: "ada", password_hash: "hash of ada" },
      { username: "bob", password_hash: "hash of bob" },
    ]),
    { box: here },
  ).config;
  const usersOf = (of: GatewayConfig) =>
    [...of.plugins.values()].flatMap(({ config: { users } }) => users as object[]);

  test("follows the item to any position", () => {
    const masked = [
      { username: "bob", password_hash: "***" },
      { username: "ada", password_hash: "***", email: "new" },
    ];
    expect(usersOf(imported(withUsers(masked), { box: here, base }).config)).toEqual([
      { username: "bob", password_hash: "hash of bob" },
      { username: "ada", password_hash: "hash of ada", email: "new" },
    ]);
  });

  test("is not passed to another item", () => {
    const masked = [{ username: "eve", password_hash: "***" }];
    expect(() => imported(withUsers(masked), { box: here, base })).toThrow(
      "plugins[0].config.users[0].password_hash: is masked",
    );
  });
});

describe("an object that the document omits", () => {
  const base = imported(
    { format: 1, services: [{ name: "a" }, { name: "b" }] },
    { box: here },
  ).config;
  const names = (of: GatewayConfig) => [...of.services.values()].map(({ name }) => name);

  test.each([
    { mode: "merge", document: { services: [{ name: "b", path: "/x" }] }, left: ["a", "b"] },
    { mode: "replace", document: { services: [{ name: "b", path: "/x" }] }, left: ["b"] },
    { mode: "replace", document: { routes: [] }, left: ["a", "b"] },
  ] as const)("stays with $mode of $document: $left", ({ mode, document, left }) => {
    expect(names(imported({ format: 1, ...document }, { box: here, base }, mode).config)).toEqual([
      ...left,
    ]);
  });

  test("keeps its id, and references to another id are mapped to it", () => {
    const id = "01a00000-0000-7000-8000-000000000001";
    const document = {
      format: 1,
      services: [{ id, name: "b" }],
      targets: [{ service_id: id, host: "10.0.0.1", port: 80 }],
    };
    const b = [...base.services.values()][1]?.id;
    const merged = imported(document, { box: here, base }, "merge").config;
    expect([...merged.targets.values()].map(({ service_id }) => service_id)).toEqual([b!]);
    const replaced = imported(document, { box: here, base }).config;
    expect([...replaced.services.keys()]).toEqual([id]);
  });
});

describe("a secret of a plugin", () => {
  const definition = definePlugin({
    name: "guarded",
    summary: "Holds secrets",
    order: 1,
    scopes: ["global"],
    config: fields({
      users: listOf(
        t.Object({ username: t.String(), password_hash: secret({ description: "x" }) }),
        { description: "x" },
      ),
    }),
    create: () => ({}),
  } as never);
  const normalizersOf = (box: SecretBox) =>
    createImportNormalizers(box, new Map([["guarded", definition]]));
  const apply = (document: object, box: SecretBox, base = emptyConfiguration(at)) => {
    const draft = new Draft(base, () => at);
    applyDocument(document, draft, { mode: "replace", box, normalizers: normalizersOf(box) });
    return draft;
  };
  const written = {
    format: 1,
    plugins: [
      {
        name: "guarded",
        label: "x",
        config: {
          users: [
            { username: "ada", password_hash: CANARY },
            { username: "bob", password_hash: { $secret: "of bob" } },
          ],
        },
      },
    ],
  };
  const stored = apply(written, here).config;

  test("that is written as plain text is encrypted, once", () => {
    expect(JSON.stringify([...stored.plugins.values()])).not.toContain(CANARY);
    expect(apply(written, here, stored).isUnchanged()).toBe(true);
  });

  test("is masked in place, and its name is not", () => {
    const [plugin] = documentOf(stored, { program: "", isShown: () => true, convert: maskSecrets })[
      "plugins"
    ] as { config: object }[];
    expect(plugin?.config).toEqual({
      users: [
        { username: "ada", password_hash: { sealed: "***" } },
        { username: "bob", password_hash: { $secret: "of bob" } },
      ],
    });
  });

  test("is encrypted with another key", () => {
    const other = apply(whole(stored, here), there).config;
    expect(JSON.stringify(whole(other, there))).toBe(JSON.stringify(whole(stored, here)));
    expect(JSON.stringify(whole(stored, here))).toContain(CANARY);
    expect(JSON.stringify([...other.plugins.values()])).not.toContain(here.keyId);
  });
});

test.each([
  { why: "no format", document: {}, says: "format: must be 1" },
  {
    why: "a newer format",
    document: { format: 2 },
    says: "format: 2 was written by a newer program",
  },
  {
    why: "an unknown member",
    document: { format: 1, servces: [] },
    says: 'servces: is not a known field; did you mean "services"?',
  },
  { why: "no list", document: { format: 1, routes: {} }, says: "routes: must be a list" },
  {
    why: "no object",
    document: { format: 1, routes: ["a"] },
    says: "routes[0]: must be an object",
  },
  {
    why: "a wrong id",
    document: { format: 1, routes: [{ id: "a" }] },
    says: "routes[0].id: must be an id",
  },
  {
    why: "an id twice",
    document: { format: 1, routes: Array(2).fill({ id: "01a00000-0000-7000-8000-000000000001" }) },
    says: "routes[1].id: is that of routes[0] too",
  },
  {
    why: "a wrong field",
    document: { format: 1, routes: [{ hosts: "x" }] },
    says: "routes[0].hosts: must be a list",
  },
  {
    why: "the second factors of a whole document",
    document: { format: 1, totp: [] },
    says: "totp: is not a known field",
  },
])("a document with $why is rejected", ({ document, says }) => {
  expect(() => imported(document, { box: here })).toThrow(says);
});
