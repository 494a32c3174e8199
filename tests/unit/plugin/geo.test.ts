// Countries and networks of addresses, from database files that appear, change, break and disappear.
import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import * as files from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createGeo, type Geo } from "../../../src/dataplane/plugin/geo.ts";
import { GeoDatabaseError, type GeoKind, openGeoDatabase } from "../../../src/net/geo-database.ts";
import { asnDatabase, countryDatabase, mmdb } from "../../support/mmdb.ts";
import { eventually } from "../../support/poll.ts";

const none = { country_db: null, asn_db: null };
const countries = countryDatabase({
  "203.0.113.0/24": "DE",
  "198.51.100.7/32": "FR",
  "2001:db8::/32": "JP",
});
const networks = asnDatabase({ "203.0.113.0/25": 64_500, "2001:db8::/32": 4_200_000_000 });

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sluice-geo-"));
});
const opened: Geo[] = [];
afterEach(() => {
  for (const geo of opened.splice(0)) geo.configure(none);
  rmSync(directory, { recursive: true });
});

function world() {
  const log: string[] = [];
  const geo = createGeo(
    (level, message, fields) => {
      log.push(`${level} ${message}: ${String(fields?.["setting"])} ${String(fields?.["error"])}`);
    },
    { pollMs: 5 },
  );
  opened.push(geo);
  return { geo, log };
}

/** Writes a file as careful programs do: it is there as a whole or not at all. */
function put(name: string, bytes: Uint8Array | string): string {
  const path = join(directory, name);
  writeFileSync(`${path}.new`, bytes);
  renameSync(`${path}.new`, path);
  return path;
}

test("countries and networks of IPv4 and IPv6 addresses are found once the databases are prepared", async () => {
  const { geo, log } = world();
  const settings = { country_db: put("c", countries), asn_db: put("n", networks) };
  await geo.prepare(settings);
  expect(geo.country("203.0.113.9")).toBeNull();
  geo.configure(settings);
  expect(
    ["203.0.113.9", "198.51.100.7", "198.51.100.8", "2001:db8::1", "2001:db9::1", "nonsense"].map(
      geo.country,
    ),
  ).toEqual(["DE", "FR", null, "JP", null, null]);
  expect(["203.0.113.9", "203.0.113.200", "2001:db8::1"].map(geo.asn)).toEqual([
    64_500,
    null,
    4_200_000_000,
  ]);
  // And a second time, from the cache.
  expect(geo.country("203.0.113.9")).toBe("DE");
  geo.configure(none);
  expect([geo.country("203.0.113.9"), geo.asn("203.0.113.9")]).toEqual([null, null]);
  expect(log).toEqual([]);
});

test("settings without a prepare open their files", async () => {
  const { geo } = world();
  geo.configure({ ...none, country_db: put("c", countries) });
  await eventually(() => geo.country("203.0.113.9") === "DE");
});

test("an IPv6 address is not looked up in a database of IPv4", async () => {
  const { geo } = world();
  const record = { country: { iso_code: "DE" } };
  const short = mmdb({ type: "Country", ipVersion: 4, networks: { "32.1.0.0/16": record } });
  const settings = { ...none, country_db: put("c", short) };
  await geo.prepare(settings);
  geo.configure(settings);
  expect(["32.1.1.1", "2001:db8::1"].map(geo.country)).toEqual(["DE", null]);
});

test("a file that changes is opened again", async () => {
  const { geo, log } = world();
  const settings = { ...none, country_db: put("c", countries) };
  await geo.prepare(settings);
  geo.configure(settings);
  put("c", countryDatabase({ "203.0.113.0/24": "AT" }));
  await eventually(() => geo.country("203.0.113.9") === "AT");
  expect(log).toEqual([]);
});

test("a file that breaks is logged once, and the previous data stays in use", async () => {
  const { geo, log } = world();
  const settings = { ...none, country_db: put("c", countries) };
  await geo.prepare(settings);
  geo.configure(settings);
  put("c", "broken");
  await eventually(() => log.length === 1);
  expect(log).toEqual([
    "warn cannot open a GeoIP database: geoip.country_db is not a MaxMind database",
  ]);
  // Broken in the same way again.
  utimesSync(settings.country_db, 1, 1);
  expect(geo.country("203.0.113.9")).toBe("DE");
  put("c", countryDatabase({ "203.0.113.0/24": "AT" }));
  await eventually(() => geo.country("203.0.113.9") === "AT");
  expect(log).toHaveLength(1);
});

test("a file that is missing is logged once, and opened when it appears", async () => {
  const { geo, log } = world();
  const settings = { ...none, asn_db: join(directory, "n") };
  await geo.prepare(settings);
  geo.configure(settings);
  geo.configure(settings);
  expect(geo.asn("203.0.113.9")).toBeNull();
  put("n", networks);
  await eventually(() => geo.asn("203.0.113.9") === 64_500);
  expect(log).toEqual(["warn cannot open a GeoIP database: geoip.asn_db does not exist"]);
});

describe("a database", () => {
  const unusable: (readonly [string, () => string, GeoKind, string])[] = [
    ["a file that is not there", () => join(directory, "none"), "country", "does not exist"],
    ["a directory", () => directory, "country", "is not a file"],
    ["a device that never ends", () => "/dev/zero", "country", "is not a file"],
    ["an empty file", () => put("x", ""), "country", "is not a MaxMind database"],
    ["a text", () => put("x", "hello"), "country", "is not a MaxMind database"],
    [
      "a mark with nonsense behind it",
      () =>
        put(
          "x",
          Buffer.concat([Buffer.from("\xab\xcd\xefMaxMind.com", "latin1"), Buffer.alloc(9, 7)]),
        ),
      "country",
      "is not a MaxMind database",
    ],
    [
      "one without its end",
      () => put("x", countries.subarray(0, -60)),
      "country",
      "is not a MaxMind database",
    ],
    [
      "one of networks for countries",
      () => put("x", networks),
      "country",
      "is a database of networks (GeoLite2-ASN), not of countries",
    ],
    [
      "one of countries for networks",
      () => put("x", countries),
      "asn",
      "is a database of countries (GeoLite2-Country), not of networks",
    ],
  ];
  test.each(unusable)("is rejected when it is %s", async (_, path, kind, message) => {
    const error = await openGeoDatabase(path(), kind, files).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GeoDatabaseError);
    expect((error as Error).message).toBe(message);
  });

  test("that is damaged in the middle finds nothing", async () => {
    const bytes = Buffer.from(countries);
    bytes.fill(0xff, 0, 600);
    const database = await openGeoDatabase(put("x", bytes), "country", files);
    expect(database.country("203.0.113.9")).toBeNull();
  });
});
