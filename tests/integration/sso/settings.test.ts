// Settings of single sign-on: what is shown, kept and refused, and the test of the connection.
import { afterEach, describe, expect, test } from "bun:test";
import type { TestReport } from "../../../src/auth/sso/connection-test.ts";
import { selfSigned } from "../../support/certificate.ts";
import { options } from "../../unit/control/fixture.ts";
import { clientId, clientSecret } from "./lying-provider.ts";
import { createWorld, type Scene, user, type World } from "./world.ts";

const worlds: World[] = [];
const scene = async (options: Scene = {}) => {
  const world = await createWorld({ users: [user("ann@example.com")], ...options });
  worlds.push(world);
  return world;
};
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop();
});

const stored = (world: World) => world.plane.control.changes.config.sso;
const refusalOf = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error) => error,
  );

describe("the client secret", () => {
  test("is stored encrypted and never shown", async () => {
    const world = await scene();
    expect(JSON.stringify([stored(world), world.sso.settings.get()])).not.toContain("canary");
    expect(stored(world).client_secret).toEqual({ sealed: expect.stringMatching(/^sealed:1:/) });
    const { view } = world.sso.settings.get();
    expect(view).toMatchObject({ client_secret_set: true, client_id: clientId });
    expect(view).not.toHaveProperty("client_secret");
    expect(JSON.stringify(world.plane.steps.commits)).not.toContain("canary");
  });

  test("stays when it is omitted, or sent again masked or not", async () => {
    const world = await scene();
    const { client_secret: before } = stored(world);
    const { issuer } = world.provider;
    const plain = { enabled: true, issuer, client_id: clientId };
    await world.sso.settings.replace({ ...plain, button_label: "Sign in" }, options);
    await world.sso.settings.replace({ ...plain, client_secret: clientSecret }, options);
    await world.sso.settings.replace(world.sso.settings.get().view, options);
    await world.sso.settings.patch({ button_label: "Other" }, options);
    expect(stored(world).client_secret).toEqual(before);
    expect(await world.outcome()).toBe("ok");
  });

  test("that is sent again with everything else is no change", async () => {
    const world = await scene();
    const { revision } = world.plane.control.changes;
    const { view } = world.sso.settings.get();
    await world.sso.settings.replace({ ...view, client_secret: clientSecret }, options);
    expect(world.plane.control.changes.revision).toBe(revision);
  });

  test.each(["replace", "patch"] as const)("is deleted with null by %s", async (verb) => {
    const world = await scene();
    const body = verb === "patch" ? {} : world.sso.settings.get().view;
    const { view } = await world.sso.settings[verb]({ ...body, client_secret: null }, options);
    expect(view.client_secret_set).toBe(false);
    expect(stored(world).client_secret).toBeNull();
  });

  test("may be a reference to a secret, which must exist", async () => {
    const world = await scene();
    const reference = { client_secret: { $secret: "idp" } };
    const error = await refusalOf(world.sso.settings.patch(reference, options));
    expect(error).toMatchObject({
      status: 400,
      message: expect.stringMatching(/^client_secret: there is no secret "idp"/),
    });
    const { secrets } = world.plane.control.resources;
    await secrets.create({ name: "idp", value: "canary-old-secret" }, options);
    await world.sso.settings.patch(reference, options);
    expect(world.sso.settings.get().view.client_secret_set).toBe(true);
    expect(await world.outcome()).toBe("provider_error");
    await secrets.patch("idp", { value: clientSecret }, options);
    expect(await world.outcome()).toBe("ok");
  });
});

describe("settings are refused", () => {
  const cases: { why: string; body: object; message: string }[] = [
    { why: "on without an issuer", body: { enabled: true }, message: "issuer: is required" },
    {
      why: "on without a client id",
      body: { enabled: true, issuer: "https://id.example" },
      message: "client_id: is required",
    },
    {
      why: "with an issuer that is not encrypted",
      body: { issuer: "http://id.example" },
      message: "issuer: must be an https:// URL",
    },
    {
      why: "with a password in the issuer",
      body: { issuer: "https://user:pw@id.example" },
      message: "issuer: must be an https:// URL",
    },
    {
      why: "with an empty secret",
      body: { client_secret: "" },
      message: "client_secret: must not",
    },
    {
      why: "with an address for a domain",
      body: { allowed_domains: ["a.example", "ann@b.example"] },
      message: "allowed_domains[1]: must be a domain",
    },
    {
      why: "with a role that does not exist",
      body: { default_role: "root" },
      message: "default_role",
    },
    {
      why: "with a map to a role that does not exist",
      body: { role_map: { ops: "root" } },
      message: "role_map.ops",
    },
    {
      why: "with an unknown field",
      body: { client: "x" },
      message: "client: is not a known field",
    },
    { why: "as a list", body: [], message: "body must be a JSON object" },
  ];
  test.each(cases)("$why", async ({ body, message }) => {
    const world = await scene();
    const error = await refusalOf(world.sso.settings.replace(body, options));
    expect(error).toMatchObject({ status: 400 });
    expect((error as Error).message).toStartWith(message);
  });

  test("after a concurrent change", async () => {
    const world = await scene();
    const { tag } = world.sso.settings.get();
    const conditions = { match: [tag], onlyIfAbsent: false };
    const only = { ...options, conditions };
    await world.sso.settings.patch({ button_label: "One" }, only);
    const error = await refusalOf(world.sso.settings.patch({ button_label: "Two" }, only));
    expect(error).toMatchObject({ status: 412 });
  });
});

test("disabled settings need neither issuer nor client id, and a trial changes nothing", async () => {
  const world = await scene();
  const trial = await world.sso.settings.replace({}, { ...options, dryRun: true });
  expect(trial.view).toMatchObject({ enabled: false, issuer: "", client_secret_set: true });
  expect(stored(world).enabled).toBe(true);
  await world.sso.settings.replace({}, options);
  expect(stored(world).enabled).toBe(false);
});

describe("the test of the connection", () => {
  const origin = "http://127.0.0.1:9080";
  const names = (report: TestReport) => report.checks.map(({ name, ok }) => `${name} ${ok}`);
  const failures = (report: TestReport) =>
    report.checks.filter(({ ok }) => !ok).map(({ name, message }) => `${name}: ${message}`);

  test("finds a valid provider", async () => {
    const world = await scene();
    const report = await world.sso.test(origin);
    expect(names(report)).toEqual([
      "settings true",
      "discovery true",
      "issuer true",
      "endpoints true",
      "keys true",
      "pkce true",
      "client true",
      "token_auth true",
      "public_url true",
    ]);
    expect(report.ok).toBe(true);
    expect(report.checks.find(({ name }) => name === "client")?.message).toContain("accepts");
    expect(report.checks.at(-1)?.message).toContain(`${origin}/api/v1/auth/sso/callback`);
  });

  interface Wrong {
    why: string;
    sso?: object;
    document?: Record<string, unknown>;
    keys?: Response;
    origin?: string;
    found: RegExp;
  }
  const wrong: Wrong[] = [
    {
      why: "the issuer is another one",
      document: { issuer: "https://other.example" },
      found: /^issuer: The provider calls itself "https:\/\/other\.example"/,
    },
    {
      why: "an endpoint is missing",
      document: { token_endpoint: undefined },
      found: /^endpoints: token_endpoint is missing/,
    },
    { why: "there are no keys", keys: Response.json({ keys: [] }), found: /^keys: .*no keys/ },
    { why: "the keys are none", keys: Response.json({ keys: [1] }), found: /^keys: .*not a set/ },
    {
      why: "the provider knows no S256",
      document: { code_challenge_methods_supported: ["plain"] },
      found: /^pkce: .*does not support/,
    },
    {
      why: "the secret is wrong",
      sso: { client_secret: "canary-wrong" },
      found: /^client: The provider rejects .*invalid_client/,
    },
    { why: "the client id is wrong", sso: { client_id: "other" }, found: /^client: .*rejects/ },
    {
      why: "the secret is sent in a way that the provider does not know",
      document: { token_endpoint_auth_methods_supported: ["private_key_jwt"] },
      found: /^token_auth: client_secret_basic is used, but the provider offers private_key_jwt/,
    },
    {
      why: "public_url is missing and needed",
      origin: "http://gateway.example",
      found: /^public_url: public_url is not set/,
    },
    {
      why: "nothing is set",
      sso: { enabled: false, issuer: "", client_id: "" },
      found: /^settings: issuer and client_id must be set/,
    },
  ];
  test.each(wrong)("reports that $why", async (one) => {
    const world = await scene({ ...(one.sso === undefined ? {} : { sso: one.sso }) });
    world.provider.document = one.document ?? {};
    const { keys } = one;
    if (keys !== undefined)
      world.provider.intercept = (path) => (path === "/keys" ? keys.clone() : null);
    const report = await world.sso.test(one.origin ?? origin);
    expect(report.ok).toBe(false);
    expect(failures(report)).toEqual([expect.stringMatching(one.found)]);
    expect(JSON.stringify(report)).not.toContain("canary-wrong");
  });

  test("reports that the provider is silent or down", async () => {
    const world = await scene({ timeoutMs: 100 });
    world.provider.intercept = () => new Promise(() => {});
    expect(failures(await world.sso.test(origin))).toEqual([
      expect.stringMatching(/^discovery: 127\.0\.0\.1:\d+ did not respond within 0\.1 s$/),
    ]);
    await world.provider.stop();
    expect(failures(await world.sso.test(origin))).toEqual([
      expect.stringMatching(/^discovery: 127\.0\.0\.1:\d+ refused the connection$/),
    ]);
  });

  test("reports that the certificate is not trusted", async () => {
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: await selfSigned(),
      fetch: () => Response.json({}),
    });
    const world = await scene({ sso: { issuer: `https://localhost:${server.port}` } });
    expect(failures(await world.sso.test(origin))).toEqual([
      expect.stringMatching(/^discovery: localhost:\d+ presents a certificate that is not trusted/),
    ]);
  });
});
