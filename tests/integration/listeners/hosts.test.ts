// Listeners with host names of their own: which one a request is for, what shares a port, and TLS names beside the Host.
import { beforeAll, describe, expect, test } from "bun:test";
import { type ClientHttp2Session, connect } from "node:http2";
import { freePort } from "../../support/data-plane.ts";
import { engineOf, testedEngine } from "../../support/engines.ts";
import { eventually } from "../../support/poll.ts";
import { ask, talk, useListeners } from "./world.ts";

const { api } = useListeners();
const isBun = testedEngine === "bun";
const ofTested = engineOf({});

const request = (host: string, target = "/", more = "") =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`;
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);

/** Listeners at one port, each with a route that answers with its name. */
async function shared(
  listeners: Record<string, readonly string[]>,
  fields: object = {},
): Promise<{ port: number; ids: Record<string, string> }> {
  const port = freePort();
  const ids: Record<string, string> = {};
  for (const [name, hosts] of Object.entries(listeners)) {
    const place = { address: "127.0.0.1", port };
    const { id } = await api.create("/listeners", {
      name,
      hosts,
      ...place,
      ...ofTested,
      ...fields,
    });
    ids[name] = id;
    // The route "mirror" of the world is for every listener: this one goes before it.
    const route = await api.create("/routes", { name, listener_ids: [id], priority: 1 });
    await api.create("/plugins", {
      name: "respond",
      route_id: route.id,
      config: { status: 200, body: `from ${name}` },
    });
  }
  return { port, ids };
}

/** The name of the listener whose route has answered, or the status. */
const reached = (answer: string) => /from ([\w-]+)/.exec(answer)?.[1] ?? statusOf(answer);

describe("several listeners at one port", () => {
  let port = 0;
  beforeAll(async () => {
    ({ port } = await shared({
      any: [],
      exact: ["a.b.test", "only.test"],
      wide: ["*.test"],
      narrow: ["*.b.test"],
    }));
  });

  test.each([
    ["a.b.test", "exact"],
    ["A.B.TEST", "exact"],
    ["a.b.test.", "exact"],
    ["a.b.test:1234", "exact"],
    ["only.test", "exact"],
    ["x.b.test", "narrow"],
    ["x.y.b.test", "narrow"],
    ["b.test", "wide"],
    ["x.only.test", "wide"],
    ["test", "any"],
    ["b.test.evil", "any"],
    ["xb.test", "wide"],
    ["127.0.0.1", "any"],
    ["[::1]", "any"],
  ])("%s selects %s, in every worker", async (host, name) => {
    for (let round = 0; round < 4; round++)
      expect(reached(await talk(port, [request(host)]))).toBe(name);
  });

  test.each([
    ["the forwarded host", request("x.test", "/", "X-Forwarded-Host: a.b.test\r\n"), "wide"],
    ["the forwarded field", request("x.test", "/", "Forwarded: host=a.b.test\r\n"), "wide"],
    ["a second Host", request("x.test", "/", "Host: a.b.test\r\n"), 400],
    ["a list in Host", request("x.test, a.b.test"), 400],
    ["a user in Host", request("x@a.b.test"), 400],
    ["a path in Host", request("x.test/a.b.test"), 400],
  ])("%s selects none", async (_, bytes, name) => {
    expect(reached(await talk(port, [bytes]))).toBe(name);
  });

  test("the absolute form selects, as RFC 9112 section 3.2.2 asks, but not with Bun's engine", async () => {
    const answer = await talk(port, [request("x.test", "http://a.b.test/")]);
    expect(reached(answer)).toBe(isBun ? "wide" : "exact");
  });

  test("each request of a connection selects its own", async () => {
    const hosts = ["a.b.test", "x.b.test", "test", "a.b.test"];
    const seen: unknown[] = [];
    const client = connect(`http://127.0.0.1:${port}`);
    for (const host of hosts) {
      const stream = client.request({ ":path": "/", ":authority": host });
      let text = "";
      for await (const chunk of stream) text += String(chunk);
      seen.push(/from (\w+)/.exec(text)?.[1]);
    }
    client.close();
    expect(seen).toEqual(["exact", "narrow", "any", "exact"]);
  });
});

/** The status of a request to the host on an open connection. */
const statusOn = (client: ClientHttp2Session, host: string) =>
  new Promise((resolve) => {
    const stream = client.request({ ":path": "/", ":authority": host });
    stream.on("response", (head) => resolve(head[":status"]));
    stream.resume();
  });

describe("a listener with host names", () => {
  test("serves no other host, whatever routes exist", async () => {
    const { port } = await shared({ alone: ["own.test"] });
    expect(reached(await talk(port, [request("own.test")]))).toBe("alone");
    const other = await talk(port, [request("other.test")]);
    expect(statusOf(other)).toBe(404);
  });

  test("changes them for open connections", async () => {
    const { port, ids } = await shared({ moving: ["before.test"] });
    const client = connect(`http://127.0.0.1:${port}`);
    expect([await statusOn(client, "before.test"), await statusOn(client, "after.test")]).toEqual([
      200, 404,
    ]);
    const answer = await api.call(`PATCH /listeners/${ids["moving"]}`, {
      body: { hosts: ["after.test"] },
    });
    expect(answer.status).toBe(200);
    expect([await statusOn(client, "before.test"), await statusOn(client, "after.test")]).toEqual([
      404, 200,
    ]);
    client.close();
  });

  test("has its own limits beside another one at its port", async () => {
    const { port, ids } = await shared({ tight: ["tight.test"], loose: ["loose.test"] });
    await api.call("DELETE /routes/tight");
    await api.call("DELETE /routes/loose");
    const body = { max_body_bytes: 3 };
    expect((await api.call(`PATCH /listeners/${ids["tight"]}`, { body })).status).toBe(200);
    const post = (host: string) =>
      talk(port, [
        `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nConnection: close\r\n\r\n12345`,
      ]);
    expect(statusOf(await post("tight.test"))).toBe(413);
    expect(statusOf(await post("loose.test"))).toBe(200);
  });

  test("takes the port over when the older one is deleted", async () => {
    const { port, ids } = await shared({ older: ["older.test"], younger: ["younger.test"] });
    await api.call("DELETE /routes/older");
    expect((await api.call(`DELETE /listeners/${ids["older"]}`)).status).toBe(200);
    await eventually(
      async () => reached(await talk(port, [request("younger.test")])) === "younger",
    );
    for (let round = 0; round < 4; round++) {
      expect(reached(await talk(port, [request("younger.test")]))).toBe("younger");
      expect(reached(await talk(port, [request("older.test")]))).toBe(404);
    }
  });

  test("continues for open connections when the older one is deleted", async () => {
    const { port, ids } = await shared(
      { "old front": ["older.test"], "young front": ["younger.test"] },
      { engine: "sluice", max_connections: 1000 },
    );
    const client = connect(`http://127.0.0.1:${port}`);
    expect([await statusOn(client, "younger.test"), await statusOn(client, "older.test")]).toEqual([
      200, 200,
    ]);
    await api.call("DELETE /routes/old%20front");
    expect((await api.call(`DELETE /listeners/${ids["old front"]}`)).status).toBe(200);
    expect([await statusOn(client, "younger.test"), await statusOn(client, "older.test")]).toEqual([
      200, 404,
    ]);
    client.close();
  });

  test("appears in the explanation of a request", async () => {
    const { port, ids } = await shared({ first: ["first.test"], second: ["second.test"] });
    const explain = async (host: string) =>
      (
        await api.call("POST /routes/explain", {
          body: { method: "GET", url: `http://${host}:${port}/` },
        })
      ).body;
    expect(await explain("second.test")).toMatchObject({ listener: { id: ids["second"] } });
    expect(await explain("third.test")).toMatchObject({
      listener: null,
      route: null,
      detail: "no listener at this port serves the host",
    });
  });
});

describe("listeners that cannot share a port get 409 with the field", () => {
  let place = {};
  beforeAll(async () => {
    const { port } = await shared({ taken: ["taken.test", "*.taken.test"] });
    place = { name: "another", address: "127.0.0.1", port, ...ofTested };
  });

  test.each([
    [{ hosts: ["free.test", "TAKEN.test."] }, "hosts[1]: taken.test. on"],
    [{ hosts: ["*.taken.test"] }, "hosts[0]: *.taken.test on"],
    [{ hosts: ["free.test"], address: "0.0.0.0" }, "port: 0.0.0.0 port"],
    [{ hosts: ["free.test"], http2: false }, "http2: must be as that of"],
    [{ hosts: ["free.test"], idle_timeout: 5 }, "idle_timeout: must be as that of"],
    [
      { hosts: ["free.test"], max_connections: 5, engine: "sluice" },
      isBun ? "engine: must be as that of" : "max_connections: must be as that of",
    ],
    [{ hosts: ["free.test"], protocol: "https" }, "protocol: must be as that of"],
    [{ hosts: ["free.test"], engine: isBun ? "sluice" : "bun" }, "engine: must be as that of"],
  ])("%j", async (fields, message) => {
    const answer = await api.call("POST /listeners", { body: { ...place, ...fields } });
    expect(answer.status).toBe(409);
    expect(answer.body.error).toContain(message);
  });

  test.each([
    [{ hosts: ["https://x.test"] }, "hosts[0]: must be a host name"],
    [{ hosts: ["x.test:80"] }, "hosts[0]: must be a host name without a port"],
    [{ hosts: ["a.*.test"] }, "hosts[0]: must be a host name"],
    [{ hosts: ["x.test", "X.test"] }, "hosts[1]: duplicates hosts[0]"],
  ])("and %j is not one", async (fields, message) => {
    const answer = await api.call("POST /listeners", { body: { ...place, ...fields } });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(message);
  });

  test("two without host names conflict; a disabled one does not count", async () => {
    const { ids } = await shared({ plain: [] });
    const { port } = (await api.call(`GET /listeners/${ids["plain"]}`)).body;
    const body = { ...place, port };
    const refused = await api.call("POST /listeners", { body });
    expect([refused.status, refused.body.error]).toEqual([
      409,
      expect.stringContaining("listeners with different hosts may share it"),
    ]);
    expect((await api.call("POST /listeners", { body: { ...body, enabled: false } })).status).toBe(
      200,
    );
    const enabled = await api.call("PATCH /listeners/another", { body: { enabled: true } });
    expect(enabled.status).toBe(409);
    const named = await api.call("PATCH /listeners/another", {
      body: { enabled: true, hosts: ["another.test"] },
    });
    expect(named.status).toBe(200);
  });
});

describe("a field of the socket", () => {
  test("changes for all listeners of the port in one import, and never for one alone", async () => {
    const { port, ids } = await shared({ left: ["left.test"], right: ["right.test"] });
    const body = { http2: false };
    expect((await api.call(`PATCH /listeners/${ids["left"]}`, { body })).status).toBe(409);
    const { body: left } = await api.call(`GET /listeners/${ids["left"]}`);
    expect(
      (await api.call(`PUT /listeners/${ids["left"]}`, { body: { ...left, ...body } })).status,
    ).toBe(409);
    const { body: document } = await api.call("GET /export");
    const changed = (names: readonly string[]) => ({
      ...document,
      listeners: document.listeners.map((each: { name: string }) =>
        names.includes(each.name) ? { ...each, ...body } : each,
      ),
    });
    const one = await api.call("POST /import?mode=merge", { body: changed(["left"]) });
    expect([one.status, one.body.error]).toEqual([
      409,
      expect.stringContaining("must be as that of listener"),
    ]);
    const both = await api.call("POST /import?mode=merge", { body: changed(["left", "right"]) });
    expect(both.status).toBe(200);
    expect((await api.call(`GET /listeners/${ids["right"]}`)).body.http2).toBe(false);
    for (const name of ["left", "right"])
      await eventually(async () => reached(await talk(port, [request(`${name}.test`)])) === name);
  });

  test("may differ while one of the listeners is disabled", async () => {
    const { port, ids } = await shared({ stays: ["stays.test"], rests: ["rests.test"] });
    const patch = async (name: string, body: object) =>
      (await api.call(`PATCH /listeners/${ids[name]}`, { body })).status;
    expect(await patch("rests", { enabled: false })).toBe(200);
    expect(await patch("stays", { idle_timeout: 30 })).toBe(200);
    expect(await patch("rests", { enabled: true })).toBe(409);
    expect(await patch("rests", { enabled: true, idle_timeout: 30 })).toBe(200);
    await eventually(async () => reached(await talk(port, [request("rests.test")])) === "rests");
  });
});

describe("a Host of another certificate than the TLS name's", () => {
  beforeAll(async () => {
    for (const name of ["one", "two"])
      await api.create("/certificates", {
        name,
        source: "self_signed",
        domains: [`${name}.tls`, `*.${name}.tls`],
      });
  });

  const get = (port: number, servername: string | undefined, host: string, more = "") =>
    ask(port, servername === undefined ? {} : { servername }, request(host, "/", more));

  test.each([
    ["one.tls", "one.tls", 200],
    ["one.tls", "ONE.tls.", 200],
    ["one.tls", "a.one.tls", 200],
    ["one.tls", "two.tls", 421],
    ["one.tls", "TWO.tls.:443", 421],
    ["one.tls", "a.two.tls", 421],
    // No certificate is there for the host: it demands nothing.
    ["one.tls", "none.tls", 200],
    ["none.tls", "one.tls", 421],
    ["none.tls", "other.tls", 200],
    // Without a name there is nothing to compare.
    [undefined, "one.tls", 200],
  ])("name %s, host %s: %d where the name is known", async (name, host, status) => {
    const port = freePort();
    const place = { address: "127.0.0.1", port, protocol: "https", max_connections: 1000 };
    const { id } = await api.create("/listeners", { name: "limited", ...place });
    expect(statusOf((await get(port, name, host)).text)).toBe(status);
    await api.call(`DELETE /listeners/${id}`);
  });

  test("is served to a trusted proxy, which may use one connection for all hosts", async () => {
    const port = freePort();
    await api.create("/listeners", {
      name: "behind a proxy",
      address: "127.0.0.1",
      port,
      protocol: "https",
      max_connections: 1000,
      trusted_proxies: ["127.0.0.1/32"],
    });
    expect(statusOf((await get(port, "one.tls", "two.tls")).text)).toBe(200);
  });

  test("Bun's engine does not know the TLS name, and serves it", async () => {
    const port = freePort();
    await api.create("/listeners", {
      name: "of Bun",
      address: "127.0.0.1",
      port,
      engine: "bun",
      protocol: "https",
    });
    expect(statusOf((await get(port, "one.tls", "two.tls")).text)).toBe(200);
  });
});
