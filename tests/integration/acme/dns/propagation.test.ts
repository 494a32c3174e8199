// DNS propagation: the gateway polls all responding servers of the zone and names those without the record.
import { afterEach, expect, test } from "bun:test";
import { DnsLookup } from "../../../../src/acme/dns/lookup.ts";
import { waitForRecord } from "../../../../src/acme/dns/propagation.ts";
import { type DnsRecord, type DnsServer, startDnsServer } from "../../../support/dns-server.ts";
import { eventually } from "../../../support/poll.ts";

const record = { fqdn: "_acme-challenge.www.example.test", value: "a-text" };
const there: readonly DnsRecord[] = [
  { type: "TXT", value: "another" },
  { type: "TXT", value: record.value },
];
const running: DnsServer[] = [];

afterEach(() => {
  for (const server of running.splice(0)) server.stop();
});

/** Two servers of one zone, each of which knows both. */
async function startPair() {
  const servers = [await startDnsServer({}, "127.0.0.1"), await startDnsServer({}, "127.0.0.2")];
  running.push(...servers);
  for (const { zone } of servers) {
    zone.set("example.test", [
      { type: "NS", value: "ns1.example.test" },
      { type: "NS", value: "ns2.example.test" },
    ]);
    zone.set("ns1.example.test", [{ type: "A", value: "127.0.0.1" }]);
    zone.set("ns2.example.test", [{ type: "A", value: "127.0.0.2" }]);
    zone.set("www.example.test", []);
  }
  const [one, two] = servers as [DnsServer, DnsServer];
  return { one, two, lookup: new DnsLookup(servers.map(({ address }) => address)) };
}

test("a record on all servers is found at once, beside others of the name", async () => {
  const { one, two, lookup } = await startPair();
  for (const { zone } of [one, two]) zone.set(record.fqdn, there);
  await waitForRecord(lookup, record, { timeoutMs: 0 });
});

test("a record that appears later is awaited on all servers", async () => {
  const { one, two, lookup } = await startPair();
  one.zone.set(record.fqdn, there);
  const waiting = waitForRecord(lookup, record, { timeoutMs: 15_000 });
  const asked = () => two.questions.some((question) => question.includes(record.fqdn));
  await eventually(asked);
  two.zone.set(record.fqdn, there);
  await waiting;
});

test("a timeout names the server without the record", async () => {
  const { one, lookup } = await startPair();
  one.zone.set(record.fqdn, there);
  expect(waitForRecord(lookup, record, { timeoutMs: 0 })).rejects.toThrow(
    "the TXT record of _acme-challenge.www.example.test is not visible after 0 s: ns2.example.test does not have it",
  );
});

test("a failing server delays nothing", async () => {
  const { one, two, lookup } = await startPair();
  one.zone.set(record.fqdn, there);
  two.mode = "failure";
  await waitForRecord(lookup, record, { timeoutMs: 0 });
});

test("without zone servers the default resolvers are queried", async () => {
  const only = await startDnsServer({ [record.fqdn]: there });
  running.push(only);
  await waitForRecord(new DnsLookup([only.address]), record, { timeoutMs: 0 });
});

test("waiting can be aborted", async () => {
  const { lookup } = await startPair();
  const abort = new AbortController();
  const waiting = waitForRecord(lookup, record, { timeoutMs: 60_000, signal: abort.signal });
  abort.abort(new Error("called off"));
  expect(waiting).rejects.toThrow();
});
