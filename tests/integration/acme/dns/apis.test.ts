// DNS API clients against scripted APIs: the same guarantees for every provider.
import type { Fetch } from "../../../../src/dialer/dialer.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { decode } from "../../../../src/model/decode.ts";
import type { DnsProviderType } from "../../../../src/model/dns-provider.ts";
import type { DnsParts } from "../../../../src/acme/dns/definition.ts";
import { dnsProviders } from "../../../../src/acme/dns/index.ts";
import { KEY_ID, route53 } from "./play-route53.ts";
import * as plays from "./plays.ts";
import { type Play, type ScriptedApi, startScriptedApi } from "./scripted-api.ts";

const { SECRET } = plays;
const FQDN = "_acme-challenge.www.example.com";
const one = { fqdn: FQDN, value: "first-text_of-the-test" };
const other = { fqdn: FQDN, value: "other-text" };

interface Case {
  readonly title: string;
  readonly type: DnsProviderType;
  readonly play: Play;
  readonly config: (secret: string) => Record<string, unknown>;
}

const cases: readonly Case[] = [
  {
    title: "cloudflare",
    type: "cloudflare",
    play: plays.cloudflare,
    config: (api_token) => ({ api_token }),
  },
  {
    title: "route53",
    type: "route53",
    play: route53,
    config: (secret_access_key) => ({ access_key_id: KEY_ID, secret_access_key }),
  },
  {
    title: "hetzner (cloud)",
    type: "hetzner",
    play: plays.hetznerCloud,
    config: (api_token) => ({ api_token }),
  },
  {
    title: "hetzner (old console)",
    type: "hetzner",
    play: plays.hetznerConsole,
    config: (api_token) => ({ api_token, api: "dns-console" }),
  },
  {
    title: "digitalocean",
    type: "digitalocean",
    play: plays.digitalocean,
    config: (api_token) => ({ api_token }),
  },
  {
    title: "ovh",
    type: "ovh",
    play: plays.ovh,
    config: (application_secret) => ({
      application_key: "application",
      application_secret,
      consumer_key: "consumer",
    }),
  },
  {
    title: "gandi",
    type: "gandi",
    play: plays.gandi,
    config: (access_token) => ({ access_token }),
  },
  { title: "desec", type: "desec", play: plays.desec, config: (token) => ({ token }) },
];

let api: ScriptedApi | null = null;

afterEach(() => api?.stop());

function open({ type, play, config }: Case, { secret = SECRET, zones = [] as string[] } = {}) {
  const started = startScriptedApi(play);
  api = started;
  const definition = dnsProviders[type];
  const turns: Promise<unknown>[] = [];
  const dialer = { addressesOf: () => Promise.reject(new Error("no lookup")) };
  const parts: DnsParts = {
    dialer: { ...dialer, fetch: started.fetch as Fetch },
    zones,
    programs: [],
    remembered: new Map(),
    inTurn(_, run) {
      const result = Promise.allSettled(turns).then(run);
      turns.push(result);
      return result;
    },
  };
  return {
    ...started,
    client: definition.create(decode(definition.config, config(secret)), parts),
  };
}

const messageOf = (work: Promise<unknown>) =>
  work.then(
    () => "no error",
    (error: Error) => error.message,
  );

describe.each(cases)("$title", (it) => {
  test("writes a record once in the longest zone, also on repeated calls", async () => {
    const { client, world } = open(it);
    const deep = { fqdn: "_acme-challenge.a.sub.example.com", value: "deep" };
    await client.present(deep);
    await client.present(deep);
    expect(world.records.map(({ zone, name }) => [zone, name])).toEqual([
      ["sub.example.com", deep.fqdn],
    ]);
    expect(world.texts(deep.fqdn)).toEqual(["deep"]);
  });

  test("keeps two records of one name apart, also when written at once", async () => {
    const { client, world } = open(it);
    await Promise.all([client.present(one), client.present(other)]);
    expect(world.texts(FQDN)).toEqual([one.value, other.value]);
    await client.cleanUp(one);
    expect(world.texts(FQDN)).toEqual([other.value]);
    await client.cleanUp(one);
    await client.cleanUp(other);
    expect(world.records).toEqual([]);
  });

  test("leaves foreign records under the name alone", async () => {
    const { client, world } = open(it);
    world.records.push({ id: "1", zone: "example.com", name: FQDN, value: '"not ours"' });
    await client.present(one);
    await client.cleanUp(one);
    expect(world.texts(FQDN)).toEqual(["not ours"]);
  });

  test("writes a record of the zone's own name", async () => {
    const { client, world } = open(it);
    const apex = { fqdn: "example.com", value: "apex" };
    await client.present(apex);
    expect(world.texts("example.com")).toEqual(["apex"]);
    await client.cleanUp(apex);
    expect(world.records).toEqual([]);
  });

  test("lists its zones", async () => {
    const { client } = open(it);
    expect([...((await client.zones?.()) ?? [])].sort()).toEqual([
      "example.com",
      "sub.example.com",
    ]);
  });

  test("reports a name without a zone", async () => {
    const { client } = open(it);
    const message = await messageOf(
      client.present({ fqdn: "_acme-challenge.elsewhere.test", value: "x" }),
    );
    expect(message).toContain("has no zone for _acme-challenge.elsewhere.test");
  });

  test("retries after a rate limit, and reports a long one", async () => {
    const { client, first, world } = open(it);
    first.push({ status: 429, body: {}, headers: { "retry-after": "0" } });
    await client.present(one);
    expect(world.texts(FQDN)).toEqual([one.value]);
    first.push({ status: 429, body: {}, headers: { "retry-after": "3600" } });
    expect(await messageOf(client.cleanUp(one))).toContain("try again in 3600 s");
  });

  test("reports wrong credentials without the secret", async () => {
    const wrong = "wrong-secret-of-the-test";
    const { client } = open(it, { secret: wrong });
    const message = await messageOf(client.present(one));
    expect(message).toMatch(/rejects the credentials|does not allow this with these credentials/);
    expect(message).not.toContain(wrong);
  });

  test("follows no redirect, and reports provider failures as such", async () => {
    const { client, first } = open(it);
    first.push({ status: 302, headers: { location: "https://evil.example/" } });
    expect(await messageOf(client.present(one))).toContain(
      "redirect, which the gateway does not follow",
    );
    first.push({ status: 500, body: { message: "oh\nno" } });
    expect(await messageOf(client.present(one))).toContain("has an internal error");
  });

  test("reports what the provider says, in whatever form, bounded and without the secret", async () => {
    for (const said of [SECRET, encodeURIComponent(SECRET), btoa(SECRET).replace(/=+$/, "")]) {
      const { client, first } = open(it);
      const words = `zone is locked for ${said}${" and so on".repeat(1000)}`;
      first.push({ status: 400, body: it.type === "route53" ? words : { message: words } });
      const message = await messageOf(client.present(one));
      expect(message).toContain("zone is locked for *** and so on");
      expect(message).not.toContain(said);
      expect(message.length).toBeLessThan(400);
    }
  });
});

test("Hetzner's reason for a change that failed is shown without the token", async () => {
  const { client, first } = open(
    cases.find(({ type, play }) => type === "hetzner" && play === plays.hetznerCloud) as Case,
  );
  const error = { code: "locked", message: `the zone is locked (${SECRET})` };
  first.push(
    { body: { zone: { name: "example.com" } } },
    { body: { rrset: { records: [] } } },
    { status: 201, body: { action: { id: 7, status: "error", error } } },
  );
  const message = await messageOf(
    client.present({ fqdn: "_acme-challenge.example.com", value: "x" }),
  );
  expect(message).toBe("Hetzner could not change the record (the zone is locked (***))");
});

test("Gandi's refusal is shown where no zone is found", async () => {
  const { client, first } = open(cases.find(({ type }) => type === "gandi") as Case);
  const body = { message: `Access was denied to ${SECRET}` };
  first.push(...Array.from({ length: 3 }, () => ({ status: 403, body })));
  const message = await messageOf(
    client.present({ fqdn: "_acme-challenge.www.other.test", value: "x" }),
  );
  expect(message).toEndWith("can write to (status 403: Access was denied to ***)");
});

test("a secret that the provider repeats is masked", async () => {
  const cloudflare = cases[0] as Case;
  const { client, first } = open(cloudflare);
  first.push({
    status: 400,
    body: { errors: [{ code: 6111, message: `Invalid header ${SECRET}` }] },
  });
  const message = await messageOf(client.present(one));
  expect(message).toContain("6111 Invalid header ***");
  expect(message).not.toContain(SECRET);
});

test("configured zones are not searched for", async () => {
  const { client, asked } = open(cases[4] as Case, { zones: ["example.com"] });
  await client.present({ fqdn: "_acme-challenge.a.b.c.example.com", value: "x" });
  expect(
    asked.filter((line) => line.startsWith("GET /domains/") && !line.includes("records")),
  ).toEqual(["GET /domains/example.com"]);
});

test("OVH publishes the zone after each change", async () => {
  const { client, asked } = open(cases[5] as Case);
  await client.present(one);
  await client.cleanUp(one);
  const refreshes = asked.filter((line) => line === "POST /domain/zone/example.com/refresh");
  expect(refreshes).toHaveLength(2);
});

test("Route 53 is polled until a change is INSYNC", async () => {
  const { client, asked } = open(cases[1] as Case);
  await client.present(one);
  expect(asked.at(-1)).toBe("GET /change/C1");
});
