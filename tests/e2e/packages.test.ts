// The Debian package, installed below another root by dpkg, and the Homebrew formula, read by Ruby.
import { expect } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "dpkg-deb", "systemd-analyze", "ruby");

const checkout = resolve(import.meta.dir, "../..");
const scratch = mkdtempSync(join(tmpdir(), "sluice-packages-"));
const release = join(scratch, "release");
const out = join(scratch, "packages");
const root = join(scratch, "root");
const own = process.arch === "arm64" ? "arm64" : "amd64";
const debOf = (architecture: string) => join(out, `sluice_${manifest.version}_${architecture}.deb`);

function run(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: checkout });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}${stdout}`);
  return stdout.toString();
}

const targets = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"];
const fileOf = (target: string) => join(release, `sluice-${target}`);
const sumOf = (target: string) =>
  new Bun.CryptoHasher("sha256").update(readFileSync(fileOf(target))).digest("hex");

const packages = (words: string) =>
  run("make", "--silent", "packages", `ARGS=--from ${release} ${words}`);

const dpkg = (...words: string[]) =>
  run(
    ...["dpkg", `--root=${root}`, "--force-script-chrootless", "--force-depends"],
    ...["--force-not-root", "--log=/dev/null", ...words],
  );

beforeAll(() => {
  mkdirSync(release);
  for (const name of targets)
    if (name === `linux-${process.arch}`) copyFileSync(executable, fileOf(name));
    else writeFileSync(fileOf(name), name);
  for (const name of ["LICENSE.txt", "THIRD-PARTY-LICENSES.txt"])
    writeFileSync(join(release, name), name);
  const sums = targets.map((name) => `${sumOf(name)}  sluice-${name}\n`);
  writeFileSync(join(release, "SHA256SUMS"), sums.join(""));
  packages(`--out ${out} --url https://example.com/v1`);
  for (const path of ["updates", "info"])
    mkdirSync(join(root, "var/lib/dpkg", path), { recursive: true });
  writeFileSync(join(root, "var/lib/dpkg/status"), "");
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("a package for each architecture names it, its version and its settings", () => {
  for (const architecture of ["amd64", "arm64"]) {
    const control = run("dpkg-deb", "--field", debOf(architecture));
    expect(control).toContain(`Architecture: ${architecture}\n`);
    expect(control).toContain(`Version: ${manifest.version}\n`);
  }
  const scripts = join(scratch, "control");
  run("dpkg-deb", "--control", debOf(own), scripts);
  expect(readFileSync(join(scripts, "conffiles"), "utf8")).toBe("/etc/sluice/sluice.env\n");
  for (const name of ["postinst", "prerm", "postrm"]) run("sh", "-n", join(scripts, name));
  for (const line of run("dpkg-deb", "--contents", debOf(own)).trim().split("\n"))
    expect(line).toContain(" root/root ");
});

test("dpkg installs it, keeps changed settings, and removes it again", () => {
  dpkg("--add-architecture", own);
  dpkg("--install", debOf(own));
  const program = join(root, "usr/bin/sluice");
  expect(run(program, "version")).toStartWith(`sluice ${manifest.version} `);
  expect(statSync(program).mode & 0o777).toBe(0o755);
  const settings = join(root, "etc/sluice/sluice.env");
  writeFileSync(settings, "SLUICE_HTTP=0.0.0.0:8080\n");
  dpkg("--force-confdef", "--force-confold", "--install", debOf(own));
  expect(readFileSync(settings, "utf8")).toBe("SLUICE_HTTP=0.0.0.0:8080\n");
  const unit = join(root, "lib/systemd/system/sluice.service");
  const text = readFileSync(unit, "utf8");
  expect(text).toContain("ExecStart=/usr/bin/sluice serve --data-dir /var/lib/sluice\n");
  writeFileSync(join(scratch, "sluice.service"), text.replaceAll("/usr/bin/sluice", program));
  run("systemd-analyze", "verify", "--man=no", join(scratch, "sluice.service"));
  dpkg("--remove", "sluice");
  expect([existsSync(program), existsSync(settings)]).toEqual([false, true]);
  dpkg("--purge", "sluice");
  expect(existsSync(join(root, "etc/sluice"))).toBe(false);
});

test("the formula is valid Ruby, with a file and its sum for each system", () => {
  const formula = join(out, "sluice.rb");
  expect(run("ruby", "-c", formula)).toBe("Syntax OK\n");
  const text = readFileSync(formula, "utf8");
  expect(text).toContain(`version "${manifest.version}"`);
  for (const name of targets)
    expect(text).toContain(
      `url "https://example.com/v1/sluice-${name}", using: :nounzip\n      sha256 "${sumOf(name)}"`,
    );
});

test("an unknown kind, and a release without what it needs, are rejected", () => {
  expect(() => packages(`--out ${scratch}/none --only rpm`)).toThrow('there is no package "rpm"');
  writeFileSync(join(release, "SHA256SUMS"), "");
  expect(() => packages(`--out ${scratch}/none --only formula`)).toThrow(
    "has no sluice-darwin-arm64",
  );
});
