// The output of `make release`: reproducible executables that report version and commit, with checksums, SBOM and licences.
import { expect } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";

const { afterAll, beforeAll, describe, test } = needs("executable");

const checkout = resolve(import.meta.dir, "../..");
const scratch = join(tmpdir(), `sluice-release-${Bun.randomUUIDv7()}`);
const out = join(scratch, "out");
const own = `sluice-linux-${process.arch === "arm64" ? "arm64" : "x64"}`;
const other = process.arch === "arm64" ? "sluice-linux-x64" : "sluice-linux-arm64";

function release(words: string, cwd = checkout): { code: number; text: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    ["make", "--silent", "release", `ARGS=${words}`],
    { cwd },
  );
  return { code: exitCode, text: `${stdout}${stderr}` };
}

const only = (...names: string[]) => names.map((name) => name.replace("sluice-", "")).join(",");

beforeAll(() => {
  mkdirSync(scratch);
  const { code, text } = release(`--only ${only(own, other)} --out ${out}`);
  if (code !== 0) throw new Error(text);
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const read = (name: string) => readFileSync(join(out, name), "utf8");
const sumOf = (path: string) =>
  new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");

test("SHA-256 sums cover every file", () => {
  const rows = read("SHA256SUMS")
    .trim()
    .split("\n")
    .map((line) => line.split("  "));
  expect(rows.map(([, name]) => name).sort()).toEqual(
    [own, other, "LICENSE.txt", "THIRD-PARTY-LICENSES.txt", "install.sh", "sbom.cdx.json"].sort(),
  );
  for (const [sum, name = ""] of rows) expect(sumOf(join(out, name))).toBe(sum ?? "");
});

test.each([own, other])("%s is under 130 MB and executable by every user", (name) => {
  const { size, mode } = statSync(join(out, name));
  expect(size).toBeLessThan(130_000_000);
  expect(mode & 0o777).toBe(0o755);
});

test("the executable for another processor has that architecture", () => {
  const machines = { "sluice-linux-x64": 62, "sluice-linux-arm64": 183 } as Record<string, number>;
  for (const name of [own, other]) {
    const head = readFileSync(join(out, name)).subarray(0, 20);
    expect(head.subarray(0, 4).toString("latin1")).toBe("\x7fELF");
    expect([name, head.readUInt16LE(18)]).toEqual([name, machines[name] ?? 0]);
  }
});

test("version prints the version of package.json and the commit", () => {
  const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8"));
  const commit = Bun.spawnSync(["git", "rev-parse", "HEAD"], { cwd: checkout })
    .stdout.toString()
    .trim();
  const { stdout } = Bun.spawnSync([join(out, own), "version"], { cwd: "/", env: {} });
  expect(stdout.toString()).toStartWith(
    `sluice ${version} (Bun ${Bun.version}, linux ${process.arch}, commit ${commit}`,
  );
});

test("the executable serves from an empty directory, without other files", async () => {
  const gateway = await startGateway({ binary: join(out, own) });
  try {
    expect((await gateway.api("GET", "/docs/scalar.js")).status).toBe(200);
    const { port } = new URL(gateway.admin);
    const check = (address: string) =>
      Bun.spawnSync([join(out, own), "healthcheck"], { env: { SLUICE_ADMIN: address } }).exitCode;
    expect([check(`127.0.0.1:${port}`), check("127.0.0.1:1")]).toEqual([0, 1]);
  } finally {
    await gateway.stop();
  }
});

test("the same commit builds to the same bytes, also in another directory", () => {
  const elsewhere = join(scratch, "elsewhere");
  mkdirSync(elsewhere);
  // All files that git tracks or would add, and the packages: the names of chunks depend on their paths from the root of the
  // checkout, so a link to their folder is not enough.
  const copy =
    'git ls-files -z --cached --others --exclude-standard | xargs -0 cp -a --parents -t "$0" && cp -a .git node_modules "$0"';
  const copied = Bun.spawnSync(["bash", "-o", "pipefail", "-c", copy, elsewhere], {
    cwd: checkout,
  });
  expect([copied.exitCode, String(copied.stderr)]).toEqual([0, ""]);
  symlinkSync(join(checkout, ".bun"), join(elsewhere, ".bun"));
  const again = join(scratch, "again");
  const { code, text } = release(`--only ${only(own)} --out ${again}`, elsewhere);
  expect([code, text]).toEqual([0, expect.stringContaining("sluice")]);
  expect(sumOf(join(again, own))).toBe(sumOf(join(out, own)));
});

describe("the SBOM", () => {
  const bom = () => JSON.parse(read("sbom.cdx.json"));

  test("is CycloneDX, has this version and the checksums of the executables", () => {
    const { bomFormat, specVersion, metadata } = bom();
    expect([bomFormat, specVersion, metadata.component.name]).toEqual([
      "CycloneDX",
      "1.6",
      "sluice",
    ]);
    for (const { name, hashes } of metadata.component.components)
      expect(hashes).toEqual([{ alg: "SHA-256", content: sumOf(join(out, name)) }]);
  });

  test("lists the bundled packages in the versions of bun.lock, and no development dependency", () => {
    const { components } = bom();
    const lock = readFileSync(join(checkout, "bun.lock"), "utf8");
    const found = new Set<string>();
    for (const { group, name, version, type } of components) {
      const full = group === undefined ? name : `${group}/${name}`;
      if (type === "library") expect(lock).toContain(`"${full}@${version}"`);
      found.add(full);
    }
    for (const name of [
      "bun",
      "elysia",
      "drizzle-orm",
      "react",
      "@scalar/api-reference",
      "recheck",
    ])
      expect([name, found.has(name)]).toEqual([name, true]);
    for (const name of ["@biomejs/biome", "drizzle-kit", "playwright-core", "oidc-provider"])
      expect([name, found.has(name)]).toEqual([name, false]);
  });

  test("the licence file has the licence of every component", () => {
    const text = read("THIRD-PARTY-LICENSES.txt");
    for (const { group, name, version, type } of bom().components) {
      const full = group === undefined ? name : `${group}/${name}`;
      if (type === "library") expect(text).toContain(`\n${full} ${version} (`);
    }
    expect(text).toContain("JavaScriptCore");
  });
});

test.each([
  ["--only plan9", 'there is no target "plan9"'],
  ["--onyl linux-x64", "onyl"],
])("%s is rejected", (words, problem) => {
  const refused = join(scratch, "refused");
  // What `make release` runs last: the rules before it do not see these words.
  const { exitCode, stderr } = Bun.spawnSync(
    [process.execPath, "scripts/release.ts", ...words.split(" "), "--out", refused],
    { cwd: checkout, env: { ...process.env, BUILD_FLAGS: "--compile" } },
  );
  expect(exitCode).not.toBe(0);
  expect(stderr.toString()).toContain(problem);
  expect(existsSync(refused)).toBe(false);
});
