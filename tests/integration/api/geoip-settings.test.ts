// GeoIP databases in the settings: configured by admins, checked when configured.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "bun:test";
import { asnDatabase, countryDatabase } from "../../support/mmdb.ts";
import { useGateway } from "./client.ts";

const client = useGateway();
const directory = mkdtempSync(join(tmpdir(), "sluice-geo-"));
afterAll(() => rmSync(directory, { recursive: true }));

function put(name: string, bytes: Uint8Array | string): string {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

const countries = put("countries.mmdb", countryDatabase({ "203.0.113.0/24": "DE" }));
const networks = put("networks.mmdb", asnDatabase({ "203.0.113.0/24": 64_500 }));

test.each([
  ["there is none", { country_db: join(directory, "none") }, "geoip.country_db: does not exist"],
  ["it is a directory", { asn_db: directory }, "geoip.asn_db: is not a file"],
  [
    "it is something else",
    { country_db: put("text", "hello") },
    "geoip.country_db: is not a MaxMind database",
  ],
  [
    "it is of the other kind",
    { country_db: countries, asn_db: countries },
    "geoip.asn_db: is a database of countries (GeoLite2-Country), not of networks",
  ],
])("a file is rejected with 400 when %s, and nothing is stored", async (_, geoip, message) => {
  for (const method of ["PATCH", "PUT"]) {
    const answer = await client.call(`${method} /settings`, { body: { geoip } });
    expect([answer.status, answer.body.error]).toEqual([400, message]);
  }
  const { body } = await client.call("GET /settings");
  expect(body.geoip).toEqual({ country_db: null, asn_db: null });
});

test("databases are accepted, and checked again only when they change", async () => {
  const geoip = { country_db: countries, asn_db: networks };
  const written = await client.call("PATCH /settings", { body: { geoip } });
  expect([written.status, written.body.geoip]).toEqual([200, geoip]);
  rmSync(countries);
  const other = await client.call("PATCH /settings", { body: { debug_headers: true } });
  expect([other.status, other.body.geoip]).toEqual([200, geoip]);
  const none = await client.call("PATCH /settings", { body: { geoip: { country_db: null } } });
  expect(none.body.geoip).toEqual({ country_db: null, asn_db: networks });
});

test("the number of counted keys is a setting", async () => {
  expect((await client.call("GET /settings")).body.limits.counter_keys).toBe(131_072);
  const limits = { counter_keys: 1023 };
  const { status, body } = await client.call("PATCH /settings", { body: { limits } });
  expect([status, body.error]).toEqual([400, expect.stringContaining("limits.counter_keys")]);
});
