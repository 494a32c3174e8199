// Nothing of another program's configuration is dropped silently: whatever stands in it shows in the document or the report.
import { Database } from "bun:sqlite";
import { ApiError } from "../../../src/model/error.ts";
import { describe, expect, test } from "bun:test";
import {
  type Anything,
  caddySample,
  convertWith,
  kongSample,
  npmDatabase,
} from "../../unit/import/samples.ts";

/** Every place in a value where a member stands, with the object that holds it. */
function* members(
  value: Anything,
  path = "",
): Generator<{ path: string; holder: Anything; name: string }> {
  if (typeof value !== "object" || value === null) return;
  for (const name of Object.keys(value)) {
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
    if (!Array.isArray(value)) yield { path: at, holder: value, name };
    yield* members(value[name], at);
  }
}

function* objects(value: Anything, path = ""): Generator<{ path: string; object: Anything }> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield { path, object: value };
  for (const name of Object.keys(value))
    yield* objects(value[name], Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`);
}

/** What a conversion says, without what is new each time. */
async function outcomeOf(from: "kong" | "caddy" | "npm", source: unknown): Promise<string> {
  try {
    const { document, report } = await convertWith(from, source);
    const text = JSON.stringify({ document, report });
    return text
      .replaceAll(/\$argon2id\$[^"]*/g, "hash")
      .replaceAll(/-----BEGIN PRIVATE KEY-----[^"]*/g, "key");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.message;
  }
}

/** Defaults, and members of something that the report lists as omitted. */
const silent = {
  kong: [
    /^\._(transform|format_version)$/,
    /\.plugins\[\d+\]\.config$/,
    /^\.services\[0\]\.(protocol|routes\[0\]\.strip_path|routes\[1\]\.regex_priority)$/,
    /^\.upstreams\[0\]\.(algorithm|hash_fallback)$/,
    /\.active\.type$/,
    /\.limit_by$/,
    /\.strategy$/,
    /^\.vaults/,
    /^\.services\[1\]\.routes\[0\]\.plugins\[0\]/,
    /^\.services\[2\]/,
    /^\.routes\[0\]/,
    /\.passive\.healthy/,
    /\.groups\[0\]/,
    /^\.certificates\[1\]/,
    /^\.upstreams\[1\]/,
    /^\.consumers\[1\]\.basicauth_credentials/,
    /^\.certificates\[0\]\.snis\[\d\]$/,
    /\.config\.headers$/,
  ],
  caddy: [
    /\.transport\.protocol$/,
    /\.(terminal|group|module)$/,
    /\.http_basic\.hash/,
    /\.encodings\.(zstd|gzip)$/,
    /^\.(admin|logging)/,
    /^\.apps\.pki/,
    /\.srv0\.logs/,
    /load_files/,
    /\.srv0\.routes\[[24]\]\.handle\[0\]/,
    /\.srv0\.routes\[3\]\./,
    /\.srv0\.routes\[4\]\.match/,
    /\.srv0\.routes\[1\]\.handle\[0\]\.routes\[0\]\.handle\[0\]/,
    /policies\[1\]\.issuers\[0\]$/,
  ],
};

/** Making a hash takes a while each time. */
function kongWithoutPasswords(): Anything {
  const sample = kongSample();
  for (const consumer of sample.consumers) delete consumer.basicauth_credentials;
  return sample;
}

const isHeard = (from: keyof typeof silent) => (path: string) =>
  !silent[from].some((each) => each.test(path));

for (const [from, sample] of [
  ["kong", kongWithoutPasswords],
  ["caddy", caddySample],
] as const) {
  test(`${from}: without any one member the document or the report is another`, async () => {
    const whole = await outcomeOf(from, sample());
    const paths = [...members(sample())].map(({ path }) => path);
    expect(paths.length).toBeGreaterThan(100);
    const unheard: string[] = [];
    for (const wanted of paths) {
      const source = sample();
      const found = [...members(source)].find(({ path }) => path === wanted);
      if (found === undefined) throw new Error(wanted);
      delete found.holder[found.name];
      if ((await outcomeOf(from, source)) === whole) unheard.push(wanted);
    }
    expect(unheard.filter(isHeard(from))).toEqual([]);
  });

  test(`${from}: a member that nobody knows is in the report, wherever it stands`, async () => {
    const unheard: string[] = [];
    const count = [...objects(sample())].length;
    const whole = await outcomeOf(from, sample());
    for (let index = 0; index < count; index++) {
      const source = sample();
      const place = [...objects(source)][index];
      if (place === undefined) throw new Error("none");
      place.object["zz_unknown"] = { zz: 1 };
      if ((await outcomeOf(from, source)) === whole) unheard.push(place.path);
    }
    expect(unheard.filter(isHeard(from))).toEqual([]);
  });
}

describe("npm", () => {
  /** What says nothing about traffic. */
  const silentColumns =
    /^(id|created_on|modified_on|owner_user_id|is_deleted|meta|expires_on|hint|description|name|domain_names)$/;

  test("an unknown column is in the report, in whichever table", async () => {
    const tables = ["proxy_host", "redirection_host", "dead_host", "stream", "certificate"];
    for (const table of [...tables, "access_list", "access_list_auth", "access_list_client"]) {
      const changed = npmDatabase(
        `ALTER TABLE ${table} ADD COLUMN zz_unknown varchar(255)`,
        `UPDATE ${table} SET zz_unknown = 'something'`,
      );
      const { report } = await convertWith("npm", changed);
      expect(
        report.some(({ what }) => what.includes("zz_unknown")),
        table,
      ).toBe(true);
    }
  });

  test("every column of a proxy host is used, or declared unused", async () => {
    const database = Database.deserialize(npmDatabase());
    const columns = database
      .query<{ name: string }, []>("SELECT name FROM pragma_table_info('proxy_host')")
      .all()
      .map(({ name }) => name)
      .filter((name) => !silentColumns.test(name));
    const whole = await outcomeOf("npm", npmDatabase());
    const unheard: string[] = [];
    for (const column of columns) {
      const other = npmDatabase(
        `UPDATE proxy_host SET ${column} = CASE WHEN typeof(${column}) = 'integer' THEN 7 - ${column} * 7 ELSE NULL END`,
      );
      if ((await outcomeOf("npm", other)) === whole) unheard.push(column);
    }
    expect(unheard).toEqual([]);
  });
});
