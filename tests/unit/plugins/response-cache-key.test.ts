// A cached key of a request equals a computed one: the cache of keys compares every fact that the key contains.
import { expect, test } from "bun:test";
import type { RequestContext } from "../../../src/pdk/context.ts";
import { type KeyMaker, keyMaker } from "../../../src/plugins/response-cache/key.ts";

type Settings = Parameters<typeof keyMaker>[0]["key"];

const PLAIN: Settings = {
  host: true,
  path: true,
  consumer: true,
  query_include: null,
  query_exclude: [],
  headers: [],
  cookies: [],
};

/** Two values of everything that a key can be made of; a request has one of each. */
const FACTS = {
  host: ["shop.test", "other.test"],
  clientHost: ["shop.test", "shop.test:8080"],
  scheme: ["http", "https"],
  port: ["80", "443"],
  route: [
    { id: "r1", name: "one" },
    { id: "r2", name: "two" },
  ],
  path: ["/", "/page"],
  query: ["", "a=1"],
  upstreamHost: [null, "inner.test"],
  serviceId: [null, "beta"],
  isFromTrustedProxy: [false, true],
  prefix: [null, "/shop"],
  isAuthenticated: [false, true],
  consumer: [null, { id: "c1" }],
  groups: [[], ["staff"]],
} as const;

const NAMES = Object.keys(FACTS) as (keyof typeof FACTS)[];

/** The request that has the second value of each fact whose bit is set. */
function requestOf(bits: number, path?: string): RequestContext {
  const fact = (name: keyof typeof FACTS) => FACTS[name][(bits >> NAMES.indexOf(name)) & 1];
  const request = {
    host: fact("host"),
    clientHost: fact("clientHost"),
    scheme: fact("scheme"),
    port: fact("port"),
    route: fact("route"),
    groups: fact("groups"),
    isAuthenticated: fact("isAuthenticated"),
    consumer: fact("consumer"),
    credentialId: "k1",
    isFromTrustedProxy: () => fact("isFromTrustedProxy"),
    header: (name: string) => (name === "x-forwarded-prefix" ? fact("prefix") : null),
    cookie: () => null,
    upstream: {
      path: path ?? fact("path"),
      query: fact("query"),
      host: fact("upstreamHost"),
      serviceId: fact("serviceId"),
      header: () => null,
    },
  };
  return request as unknown as RequestContext;
}

const keyOf = (maker: KeyMaker, bits: number) => maker.keyOf(requestOf(bits))?.key ?? null;

test.each<[string, Partial<Settings>]>([
  ["as it is", {}],
  ["for all consumers", { consumer: false }],
  ["for all hosts", { host: false }],
  ["without queries", { query_include: [] }],
])("cached keys equal computed ones, %s", (_, settings) => {
  const key = { ...PLAIN, ...settings };
  const remembering = keyMaker({ key });
  for (let bits = 0; bits < 2 ** NAMES.length; bits++) {
    const made = keyOf(keyMaker({ key }), bits);
    // After another request, and after the same one.
    for (const turn of ["first", "second"])
      if (keyOf(remembering, bits) !== made)
        throw new Error(`another key in the ${turn} turn for the request ${bits}`);
  }
});

test("each fact of the key makes another key, also right after the request without it", () => {
  const maker = keyMaker({ key: PLAIN });
  for (const [index, name] of NAMES.entries()) {
    // Forwarding headers count only from trusted proxies, and groups only with an identity.
    const needed = { prefix: "isFromTrustedProxy", groups: "consumer" }[name as string];
    const others = needed === undefined ? 0 : 1 << NAMES.indexOf(needed as keyof typeof FACTS);
    const [before, after] = [keyOf(maker, others), keyOf(maker, others | (1 << index))];
    expect([name, before !== after]).toEqual([name, true]);
    expect(keyOf(maker, others)).toBe(before);
  }
});

test.each([
  [256, true],
  [257, false],
])("the key of a path of %d characters is cached: %p", (length, isRemembered) => {
  const maker = keyMaker({ key: PLAIN });
  const keys = [1, 2].map(() => maker.keyOf(requestOf(0, "/".padEnd(length, "x"))));
  expect(keys[0]).toEqual(keys[1]!);
  expect(keys[0] === keys[1]).toBe(isRemembered);
});

test.each([
  ["shop.test/page?a=1", "shop.test/?a=1"],
  ["shop.test/page", "shop.test/"],
  ["/page/2", "/"],
])("without the path in the key, the purge of %s concerns %s", (address, resource) => {
  expect(keyMaker({ key: { ...PLAIN, path: false } }).named(address)).toBe(resource);
  expect(keyMaker({ key: PLAIN }).named(address)).toBe(address);
});
