// When a name is looked up, which address is next, and which stay in use while lookups fail; on a simulated clock.
import { destinationProblem } from "../../../src/net/destinations.ts";
import { noRules } from "../../support/dialer.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { parseHosts } from "../../../src/dataplane/names/hosts-file.ts";
import { type NameQuestion, NameResolver } from "../../../src/dataplane/names/name-resolver.ts";
import { ResolvedName } from "../../../src/dataplane/names/resolved-name.ts";
import { type DnsRecord, type DnsServer, startDnsServer } from "../../support/dns-server.ts";

let server: DnsServer;
let now = 0;
let logged: string[] = [];
beforeAll(async () => {
  server = await startDnsServer();
});
afterAll(() => server.stop());
beforeEach(() => {
  server.zone.clear();
  server.questions.length = 0;
  server.mode = "zone";
  now = 1_000_000;
  logged = [];
});

const a = (...values: string[]): DnsRecord[] => values.map((value) => ({ type: "A", value }));

/** Records the lookups; each has a resolver of its own, because one remembers what has not expired. */
class Watched extends NameResolver {
  readonly searches: Promise<unknown>[] = [];

  override find(question: NameQuestion) {
    const search = resolverOf().find(question);
    this.searches.push(search.catch(() => null));
    return search;
  }
}

const resolverOf = () => new NameResolver({ servers: [server.address], hostsFile: "/nonexistent" });
let watched: Watched;

function start(name: string, kind: NameQuestion["kind"] = "dns", isStatic = false): ResolvedName {
  watched = new Watched({ servers: [] });
  return new ResolvedName({ kind, name, port: 80 }, isStatic, {
    problemOf: (destination) => destinationProblem(destination, noRules),
    resolver: watched,
    now: () => now,
    log: (_, message, fields = {}) => void logged.push(`${message} ${JSON.stringify(fields)}`),
  });
}

/** Waits until the last lookup has ended and its result is in use. */
async function found(): Promise<void> {
  await watched.searches.at(-1);
  await new Promise<void>((done) => setImmediate(done));
}

/** Advances the clock and waits for the lookup that it starts; false: it starts none. */
async function later(name: ResolvedName, ms: number): Promise<boolean> {
  now += ms;
  const before = watched.searches.length;
  name.sweep(now);
  await found();
  return watched.searches.length > before;
}

const turns = (name: ResolvedName, count: number) =>
  Array.from({ length: count }, () => {
    const address = name.next(null);
    return address === null ? "none" : `${address.host}${address.port ? `:${address.port}` : ""}`;
  });

describe("addresses of a name", () => {
  test("all are used in turn, IPv4 and IPv6", async () => {
    server.zone.set("app.test", [
      ...a("192.0.2.1", "192.0.2.2"),
      { type: "AAAA", value: "2001:db8::1" },
    ]);
    const name = start("app.test");
    await found();
    expect(name.size).toBe(3);
    const seen = turns(name, 6);
    expect(seen.slice(0, 3).sort()).toEqual(["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
  });

  test("one that failed is tried last for ten seconds", async () => {
    server.zone.set("app.test", a("192.0.2.1", "192.0.2.2"));
    const name = start("app.test");
    await found();
    const first = name.next(null)!;
    name.failed(first);
    expect(turns(name, 4)).not.toContain(first.host);
    const other = name.next(null)!;
    expect(name.next(new Set([other]))).toBe(first);
    expect(name.next(new Set([other, first]))).toBeNull();
    now += 10_000;
    expect(turns(name, 4)).toContain(first.host);
  });

  test("one that stays is the same object, and a removed one is marked as gone", async () => {
    server.zone.set("app.test", a("192.0.2.1", "192.0.2.2"));
    const name = start("app.test");
    await found();
    const [one, two] = [name.next(null)!, name.next(null)!];
    const { version } = name;
    await later(name, 5000);
    expect(name.version).toBe(version);
    server.zone.set("app.test", a(two.host, "192.0.2.3"));
    await later(name, 5000);
    expect([name.has(one), name.has(two), name.size]).toEqual([false, true, 2]);
    expect(name.version).not.toBe(version);
  });
});

describe("a name is looked up again", () => {
  test.each([
    { ttl: 0, after: 5, why: "not more often than every five seconds" },
    { ttl: 60, after: 60, why: "when its records expire" },
    { ttl: 86_400, after: 300, why: "at least every five minutes" },
  ])("$why: $ttl s become $after s", async ({ ttl, after }) => {
    server.zone.set("app.test", [{ type: "A", value: "192.0.2.1", ttl }]);
    const resolved = start("app.test");
    await found();
    expect(await later(resolved, after * 1000 - 1)).toBe(false);
    expect(await later(resolved, 1)).toBe(true);
  });

  test("the shortest life of several records counts", async () => {
    server.zone.set("app.test", [
      { type: "A", value: "192.0.2.1", ttl: 200 },
      { type: "AAAA", value: "2001:db8::1", ttl: 20 },
    ]);
    const name = start("app.test");
    await found();
    expect(await later(name, 19_999)).toBe(false);
    expect(await later(name, 1)).toBe(true);
  });

  test("a static name only with a new version", async () => {
    server.zone.set("app.test", a("192.0.2.1"));
    const name = start("app.test", "dns", true);
    await found();
    expect(await later(name, 86_400_000)).toBe(false);
    server.zone.set("app.test", a("192.0.2.2"));
    name.renew();
    await found();
    expect(turns(name, 1)).toEqual(["192.0.2.2"]);
  });

  test("no more after it is closed", async () => {
    server.zone.set("app.test", a("192.0.2.1"));
    const name = start("app.test");
    await found();
    name.close();
    expect(await later(name, 86_400_000)).toBe(false);
  });
});

describe("while lookups fail", () => {
  test.each(["failure", "zone"] as const)(
    "the last known addresses stay in use, and the log says so once (%s)",
    async (mode) => {
      server.zone.set("app.test", a("192.0.2.1"));
      const name = start("app.test");
      await found();
      server.zone.clear();
      server.mode = mode;
      for (const _ of [1, 2, 3]) await later(name, 5000);
      expect(turns(name, 1)).toEqual(["192.0.2.1"]);
      expect(logged).toHaveLength(1);
      expect(logged[0]).toMatch(
        /^the name of a target could not be resolved \{"name":"app.test","reason":".+","known_addresses":1\}$/,
      );
      server.mode = "zone";
      server.zone.set("app.test", a("192.0.2.9"));
      await later(name, 5000);
      expect(turns(name, 1)).toEqual(["192.0.2.9"]);
      expect(logged[1]).toBe('the name of a target is resolved again {"name":"app.test"}');
    },
  );

  test("callers do not wait when the lookup failed a moment ago; a second later the next call starts one", async () => {
    const name = start("app.test");
    await found();
    expect([name.size, name.next(null)]).toEqual([0, null]);
    expect(name.whenFound(() => {})).toBeNull();
    server.zone.set("app.test", a("192.0.2.1"));
    now += 1000;
    await new Promise<void>((resolve) => expect(name.whenFound(resolve)).not.toBeNull());
    expect(turns(name, 1)).toEqual(["192.0.2.1"]);
  });

  test("a waiting caller can abort", async () => {
    server.zone.set("app.test", a("192.0.2.1"));
    const name = start("app.test");
    let told = 0;
    const forget = name.whenFound(() => told++)!;
    name.whenFound(() => (told += 10));
    forget();
    await found();
    expect(told).toBe(10);
  });
});

describe("SRV records", () => {
  test("give addresses, ports and weights of the first tier", async () => {
    server.zone.set("_http._tcp.app.test", [
      { type: "SRV", value: "10 30 8080 one.test" },
      { type: "SRV", value: "10 10 8081 two.test" },
      { type: "SRV", value: "20 0 9090 spare.test" },
    ]);
    server.zone.set("one.test", a("192.0.2.1"));
    server.zone.set("two.test", a("192.0.2.2"));
    server.zone.set("spare.test", a("192.0.2.3"));
    const name = start("_http._tcp.app.test", "srv");
    await found();
    const seen = turns(name, 40);
    const count = (place: string) => seen.filter((one) => one === place).length;
    expect([count("192.0.2.1:8080"), count("192.0.2.2:8081")]).toEqual([30, 10]);
  });

  test("addresses of the next tier are used once the first one has failed", async () => {
    server.zone.set("_http._tcp.app.test", [
      { type: "SRV", value: "1 1 8080 one.test" },
      { type: "SRV", value: "2 1 9090 spare.test" },
    ]);
    server.zone.set("one.test", a("192.0.2.1"));
    server.zone.set("spare.test", a("192.0.2.3"));
    const name = start("_http._tcp.app.test", "srv");
    await found();
    name.failed(name.next(null)!);
    expect(turns(name, 1)).toEqual(["192.0.2.3:9090"]);
  });

  test("a host without an address is omitted, and one with two has no more weight", async () => {
    server.zone.set("_http._tcp.app.test", [
      { type: "SRV", value: "1 1 8080 both.test" },
      { type: "SRV", value: "1 1 8080 single.test" },
      { type: "SRV", value: "1 1 8080 gone.test" },
    ]);
    server.zone.set("both.test", a("192.0.2.1", "192.0.2.2"));
    server.zone.set("single.test", a("192.0.2.3"));
    const name = start("_http._tcp.app.test", "srv");
    await found();
    const seen = turns(name, 40);
    expect(seen.filter((one) => one === "192.0.2.3:8080")).toHaveLength(20);
  });

  test("a name without any is not found, whatever addresses it has", async () => {
    server.zone.set("app.test", a("192.0.2.1"));
    const name = start("app.test", "srv");
    await found();
    expect(name.size).toBe(0);
  });
});

describe("local name resolution", () => {
  test("the hosts file comes first, without a query to name servers", async () => {
    const hostsFile = `/tmp/sluice-hosts-${Bun.randomUUIDv7()}`;
    await Bun.write(hostsFile, "192.0.2.7 App.test other\n");
    const resolver = new NameResolver({ servers: [server.address], hostsFile });
    const { addresses, ttlSeconds } = await resolver.find({ kind: "dns", name: "app.test" });
    expect([addresses.map(({ host }) => host), ttlSeconds]).toEqual([["192.0.2.7"], 30]);
    expect(server.questions).toEqual([]);
    await Bun.file(hostsFile).delete();
  });

  test("localhost is loopback, whatever a name server responds", async () => {
    server.zone.set("localhost", a("192.0.2.1"));
    const { addresses } = await resolverOf().find({ kind: "dns", name: "localhost" });
    expect(addresses.map(({ host }) => host)).toEqual(["127.0.0.1", "::1"]);
  });

  test("the system resolver is used when its name servers have no record", async () => {
    const resolver = new NameResolver({ servers: [], hostsFile: "/nonexistent" });
    const own = (await Bun.file("/etc/hosts").text()).match(/^127\.0\.0\.1\s+(?!localhost)(\S+)/m);
    if (own?.[1] === undefined) return;
    const { addresses } = await resolver.find({ kind: "dns", name: own[1].toLowerCase() });
    expect(addresses.map(({ host }) => host)).toContain("127.0.0.1");
  });

  test("of a hosts file: comments, several names, several addresses, no zones", () => {
    const names = parseHosts(
      "# 1.1.1.1 no\n127.0.0.1\tlocalhost  LOCAL # x\n::1 localhost\nfe80::1%eth0 zone\n\nrubbish\n",
    );
    expect(Object.fromEntries(names)).toEqual({
      localhost: ["127.0.0.1", "::1"],
      local: ["127.0.0.1"],
    });
  });
});

test("a query in flight is not repeated", async () => {
  server.zone.set("app.test", a("192.0.2.1"));
  const resolver = resolverOf();
  const question = { kind: "dns", name: "app.test" } as const;
  await Promise.all([resolver.find(question), resolver.find(question), resolver.find(question)]);
  expect(server.questions.sort()).toEqual(["A app.test", "AAAA app.test"]);
});
