// What an editor may and may not do with secrets beside leading one elsewhere: lists, nulls, places of plugins, fixed addresses, other fields.
import { describe, expect, test } from "bun:test";
import { dnsProviders } from "../../../src/acme/dns/index.ts";
import { eventually } from "../../support/poll.ts";
import { type Call, expectOk } from "../api/people.ts";
import { type Sender, senders } from "./secret-senders.ts";
import { expectRefusal, newValue, useSecretWorld } from "./secret-world.ts";

const world = useSecretWorld();
const { place, evil } = world;
const REFERENCE = { $secret: "another" };

describe("DNS providers with one address", () => {
  const fixed = Object.values(dnsProviders).filter(({ sentTo }) => sentTo !== undefined);

  test.each(fixed.map(({ type, example }) => [type, example]))(
    "%s: an editor neither uses its secret elsewhere nor changes its kind",
    async (type, example) => {
      const references = Object.values(example).filter((value) => typeof value === "object");
      const [{ $secret: name }] = references as [{ $secret: string }];
      await expectOk(world.people.root("POST /secrets", { name, value: "of-a-provider" }));
      const body = { name: `fixed-${type}`, type, config: example };
      const refusal = `only an admin may send the secret "${name}" to this destination`;
      const made = await world.editor("POST /dns-providers", body);
      expect([made.status, made.body.error]).toEqual([
        403,
        expect.stringContaining(`${refusal} (type); send`),
      ]);
      const { id } = await expectOk(world.people.root("POST /dns-providers", body));
      expect(
        (await world.editor(`PATCH /dns-providers/${id}`, { config: { ttl: 600 } })).status,
      ).toBe(type === "duckdns" ? 400 : 200);
      const moved = {
        type: "webhook",
        config: { ttl: null, url: evil.url, token: { $secret: name } },
      };
      const gone = Object.fromEntries(Object.keys(example).map((field) => [field, null]));
      const answer = await world.editor(`PATCH /dns-providers/${id}`, {
        ...moved,
        config: { ...gone, ...moved.config },
      });
      expect([answer.status, answer.body.error]).toEqual([
        403,
        `config.token: ${refusal} (config.url); send the value itself instead`,
      ]);
    },
  );
});

describe("a list of senders", () => {
  const headers = (value: string) => ({ headers: { "X-Token": value } });
  const kept = (at: string) => ({ http: { url: `${place.url}${at}` } });
  /** Two senders with a secret each. */
  async function two(call: Call) {
    const { fields, page } = await world.frame("plugins");
    const values = [newValue(), newValue()];
    const own = values.map((value, at) => ({
      http: { ...kept(`/${at}`).http, ...headers(value) },
    }));
    const config = { sinks: own, queue: { max_coalescing_delay: 0.01 } };
    const { id } = await expectOk(call("POST /plugins", { name: "access-log", ...fields, config }));
    return { line: `/plugins/${id}`, values: values as [string, string], page };
  }

  test.each([
    ["another one before them", () => [{ http: { url: evil.url } }, kept("/0"), kept("/1")]],
    ["another one between them", () => [kept("/0"), { http: { url: evil.url } }, kept("/1")]],
    ["the two in another order", () => [kept("/1"), kept("/0")]],
    ["only the second one", () => [kept("/1")]],
  ])("an editor writes %s: each keeps its secret, and the new one gets none", async (_, list) => {
    const { line, values, page } = await two(world.people.root);
    const { status, body } = await world.editor(`PATCH ${line}`, { config: { sinks: list() } });
    expect([status, body.error]).toEqual([200, undefined]);
    await fetch(page);
    await eventually(() => place.hasSeen(values[1]));
    const paths = place.origin.requests.filter(({ head }) => head.includes(values[1]));
    expect(new Set(paths.map(({ target }) => target))).toEqual(new Set(["/1"]));
    for (const value of values) expect(evil.hasSeen(value)).toBe(false);
  });

  test("senders that an admin inserts before them do not get their secrets either", async () => {
    const { line, values, page } = await two(world.people.root);
    const sinks = [{ http: { url: `${place.url}/new` } }, kept("/0"), kept("/1")];
    await expectOk(world.people.root(`PATCH ${line}`, { config: { sinks } }));
    await fetch(page);
    await eventually(() => place.hasSeen(values[1]));
    await eventually(() => place.origin.requests.some(({ target }) => target === "/new"));
    const [fresh] = place.origin.requests.filter(({ target }) => target === "/new");
    expect(fresh?.header("x-token")).toBe(null);
  });
});

describe("an editor", () => {
  test("removes a destination with null only together with the secret", async () => {
    const sender = senders.find(({ name }) => name === "otel-tracing") as Sender;
    const { line } = await world.store(sender);
    const why = "null";
    const field = "config.endpoint";
    for (const config of [{ endpoint: null }, null])
      expectRefusal(await world.editor(`PATCH ${line}`, { config }), {
        why,
        field,
        secretField: sender.secretField,
      });
    const gone = { endpoint: null, headers: { "X-Token": null } };
    expect((await world.editor(`PATCH ${line}`, { config: gone })).status).toBe(200);
    expect((await world.editor(`PATCH ${line}`, { config: { endpoint: evil.url } })).status).toBe(
      200,
    );
  });

  test("may change the scope of a plugin that sends a secret: the destination stays", async () => {
    const { line } = await world.store(senders.find(({ name }) => name === "oidc") as Sender);
    await expectOk(world.editor("POST /services", { name: "other" }));
    const moved = await world.editor(`PATCH ${line}`, { route_id: null, service_id: "other" });
    expect([moved.status, moved.body.error]).toEqual([200, undefined]);
  });

  test("is refused with a token as in a session", async () => {
    const { token } = await expectOk(
      world.people.root("POST /tokens", { name: "ed", role: "editor" }),
    );
    const { line } = await world.store(senders.find(({ name }) => name === "ldap-auth") as Sender);
    const headers = { authorization: `Bearer ${token}` };
    const body = { config: { url: `ldap://127.0.0.1:${evil.port}` } };
    const answer = await world.people.gateway.api("PATCH", `/api/v1${line}`, body, headers);
    expect(answer.status).toBe(403);
  });

  test.each([
    ["transform", "request.headers.set.A", { request: { headers: { set: { A: REFERENCE } } } }],
    ["transform", "response.headers.add.A", { response: { headers: { add: { A: REFERENCE } } } }],
    ["respond", "body", { body: REFERENCE }],
    ["respond", "headers.A", { headers: { A: REFERENCE } }],
    ["redirect", "to", { to: REFERENCE }],
    ["forward-auth", "url", { url: REFERENCE }],
    ["mirror", "url", { url: REFERENCE }],
    ["oidc", "issuer", { issuer: REFERENCE, client_id: "a" }],
  ])("refers to no secret in what %s sends to targets or clients: %s", async (name, at, config) => {
    for (const call of [world.editor, world.people.root]) {
      const { status, body } = await call("POST /plugins", { name, config });
      const error = `config.${at}: must be a string`;
      expect([status, body.error.replace(/ or null$/, "")]).toEqual([400, error]);
    }
  });

  test("gets a literal reference where a plugin accepts any JSON", async () => {
    const { fields, page } = await world.frame("plugins");
    const changes = { request: { body_json: { set: { token: REFERENCE } } } };
    const made = { name: "transform", ...fields, config: changes };
    await expectOk(world.editor("POST /plugins", made));
    const headers = { "content-type": "application/json" };
    const answer = await fetch(page, { method: "POST", headers, body: "{}" });
    expect(await answer.json()).toEqual({ token: REFERENCE });
  });

  test.each(senders.map((sender) => [sender.name, sender] as const))(
    "cannot test a guess of the stored secret in a trial: %s",
    async (_, { collection, ...sender }) => {
      const { line, value } = await world.store({ ...sender, collection });
      const tag = (await world.editor(`GET ${line}`)).headers.get("etag");
      const tell = async (guess: string) => {
        const { name: _, ...patch } = sender.write({ place, secret: guess });
        const { status, headers, body } = await world.editor(`PATCH ${line}?dry_run=1`, patch);
        const isLeft = headers.get("etag") === tag;
        return [status, isLeft, body.updated_at === body.created_at, body.error];
      };
      const right = await tell(value);
      expect(right).toEqual(await tell(newValue()));
      expect(right).toEqual([200, false, false, undefined]);
    },
  );

  test("learns nothing of a named secret from errors of its value", async () => {
    await expectOk(world.people.root("POST /secrets", { name: "long", value: "x".repeat(10_000) }));
    const answers = await Promise.all(
      ["another", "not an address", "long", "none"].map(async (name) => {
        const fields = { name: `probe ${name}`, events: ["overload"], type: "webhook" };
        const config = { url: { $secret: name } };
        const { status, body } = await world.editor("POST /alerts", { ...fields, config });
        return [status, String(body.error).replace(JSON.stringify(name), "NAME")];
      }),
    );
    expect(new Set(answers.map(String)).size).toBe(1);
    expect(answers[0]?.[0]).toBe(403);
    const told = await world.people.root("POST /alerts", {
      name: "probe",
      events: ["overload"],
      type: "webhook",
      config: { url: { $secret: "not an address" } },
    });
    expect([told.status, told.body.error]).toEqual([
      400,
      "config.url: must be an http:// or https:// address",
    ]);
  });

  test("cannot restore revisions or import", async () => {
    const [revision] = (await world.editor("GET /revisions")).body;
    expect((await world.editor(`POST /revisions/${revision.number}/restore`)).status).toBe(403);
    expect((await world.editor("POST /import", { format: 1 })).status).toBe(403);
  });
});
