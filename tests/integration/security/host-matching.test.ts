// Host names are compared alike however many routes there are, and however the name is written: the whole product, few and many routes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { exchange } from "../../support/raw-exchange.ts";

let gateway: Gateway;
let origin: Origin;
beforeAll(async () => {
  origin = startOrigin({ answer: reply("origin") });
  gateway = await startGateway();
  await gateway.ok("PATCH", "/api/v1/settings", { debug_headers: true });
  await gateway.ok("POST", "/api/v1/services", {
    name: "s",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

/** Id of the route that answers, null when none does. */
async function routeOf(host: string): Promise<string | null> {
  const bytes = `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const { answers } = await exchange(bytes, { port: gateway.httpPort });
  return answers[0]?.status === 404
    ? null
    : (answers[0]?.header("x-sluice-route") ?? `status ${answers[0]?.status}`);
}

// A fast path for few routes that compares differently was Caddy's CVE-2026-27588.
describe.each([1, 99, 101])("with %d routes", (count) => {
  const ids = new Map<string, string>();
  beforeAll(async () => {
    const add = async (name: string, hosts: string[]) => {
      const { id } = await gateway.ok("POST", "/api/v1/routes", { name, hosts, service_id: "s" });
      ids.set(name, id);
    };
    await add("wanted", ["Secret.Example.com", "*.Wild.example.com", "[2001:DB8::1]"]);
    for (let i = 1; i < count; i++) await add(`filler-${i}`, [`filler-${i}.example.com`]);
  });
  afterAll(async () => {
    for (const id of ids.values()) await gateway.ok("DELETE", `/api/v1/routes/${id}`);
  });

  test.each([
    ["secret.example.com", "wanted", "lower case"],
    ["SECRET.EXAMPLE.COM", "wanted", "upper case"],
    ["sEcReT.eXaMpLe.CoM", "wanted", "mixed case"],
    ["secret.example.com.", "wanted", "a trailing dot"],
    ["SECRET.example.com.", "wanted", "both"],
    ["secret.example.com:80", "wanted", "a port"],
    ["secret.example.com.:8443", "wanted", "a trailing dot and a port"],
    ["secret.example.com:", "wanted", "an empty port"],
    ["a.wild.example.com", "wanted", "below a wildcard"],
    ["A.B.WILD.Example.COM.:1", "wanted", "deeply below, in all forms at once"],
    ["[2001:db8::1]", "wanted", "IPv6"],
    ["[2001:DB8:0:0:0:0:0:1]:80", "wanted", "IPv6 written out"],
    ["wild.example.com", null, "a wildcard does not take its own name"],
    ["xsecret.example.com", null, "a longer name"],
    ["secret.example.com.evil.test", null, "a name that begins so"],
    ["example.com", null, "the parent"],
    ["secret.example.comx", null, "a name that ends differently"],
  ])("%s: %s (%s)", async (host, name) => {
    expect(await routeOf(host)).toBe(name === null ? null : ids.get(name)!);
  });

  test("every other route matches too, in another case", async () => {
    for (const i of [1, count - 1].filter((index) => index > 0 && index < count))
      expect(await routeOf(`FILLER-${i}.example.com.`)).toBe(ids.get(`filler-${i}`)!);
  });
});
