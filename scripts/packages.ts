// Builds what package managers install, from the executables of a release: Debian packages and a Homebrew formula.
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { describeRelease } from "./release/describe.ts";
import { type FormulaFile, formulaOf } from "./release/formula.ts";
import type { Release } from "./release/bill-of-materials.ts";
import { run } from "./release/targets.ts";

const root = resolve(import.meta.dir, "..");
const kinds = ["deb", "formula"] as const;

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    /** The directory of a release. */
    from: { type: "string", default: join(root, "dist/release") },
    out: { type: "string", default: join(root, "dist/packages") },
    only: { type: "string", default: kinds.join(",") },
    /** Where the files of the release can be downloaded, for the formula. */
    url: { type: "string", default: "https://downloads.example.com/sluice" },
  },
});

const debTargets = { "linux-x64": "amd64", "linux-arm64": "arm64" } as const;

function controlOf(version: string, architecture: string, kilobytes: number): string {
  return `Package: sluice
Version: ${debianVersion(version)}
Architecture: ${architecture}
Maintainer: The Sluice authors <sluice@localhost>
Installed-Size: ${kilobytes}
Depends: libc6 (>= 2.31), passwd
Section: httpd
Priority: optional
Description: Self-hosted HTTP and TCP gateway in one executable
 Routes requests to applications by host and path. It is configured at run
 time, in a web UI or through an HTTP API, and keeps its state in SQLite.
`;
}

/** 1.0.0-rc.1 comes before 1.0.0, which Debian writes with a tilde. */
const debianVersion = (version: string) => version.replace("-", "~");

/**
 * The installer lays out the files, so that both ways of installing have the same unit, settings and places. It runs the executable of
 * this machine; the other architecture gets its own afterwards.
 */
async function buildDeb(name: keyof typeof debTargets, release: Release): Promise<string> {
  const architecture = debTargets[name];
  const scratch = await mkdtemp(join(tmpdir(), "sluice-deb-"));
  try {
    const tree = join(scratch, "tree");
    const installer = join(root, "scripts/install.sh");
    const own = join(values.from, `sluice-linux-${process.arch}`);
    const words = ["--root", tree, "--prefix", "/usr", "--service", "systemd", "--no-start"];
    // The unit is not for the systemd of this machine.
    const env = { ...process.env, PATH: `${join(scratch, "bin")}:${process.env["PATH"]}` };
    await Bun.write(join(scratch, "bin/systemctl"), "#!/bin/sh\n");
    await chmod(join(scratch, "bin/systemctl"), 0o755);
    await run(["sh", installer, ...words, "--from", own], { env });
    await copyFile(join(values.from, `sluice-${name}`), join(tree, "usr/bin/sluice"));
    await chmod(join(tree, "usr/bin/sluice"), 0o755);
    await moveToPackagePlaces(tree);
    await writeControl(tree, { version: release.version, architecture });
    const path = join(values.out, `sluice_${debianVersion(release.version)}_${architecture}.deb`);
    const date = Math.floor(Date.parse(release.committedAt) / 1000);
    await run(["dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", tree, path], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(date) },
    });
    return path;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** /etc belongs to the administrator, but for the settings. */
async function moveToPackagePlaces(tree: string): Promise<void> {
  const moves = [
    ["etc/systemd/system/sluice.service", "lib/systemd/system/sluice.service"],
    ["etc/sysctl.d/60-sluice.conf", "usr/lib/sysctl.d/60-sluice.conf"],
  ] as const;
  for (const [from, to] of moves) {
    await mkdir(join(tree, to, ".."), { recursive: true });
    await rename(join(tree, from), join(tree, to));
  }
  for (const path of ["etc/systemd", "etc/sysctl.d", "var"])
    await rm(join(tree, path), { recursive: true });
  const licences = join(tree, "usr/share/doc/sluice");
  await mkdir(licences, { recursive: true });
  await copyFile(join(values.from, "LICENSE.txt"), join(licences, "copyright"));
  await copyFile(
    join(values.from, "THIRD-PARTY-LICENSES.txt"),
    join(licences, "THIRD-PARTY-LICENSES.txt"),
  );
}

async function writeControl(
  tree: string,
  { version, architecture }: { readonly version: string; readonly architecture: string },
): Promise<void> {
  const folder = join(tree, "DEBIAN");
  const kilobytes = Math.ceil(Bun.file(join(tree, "usr/bin/sluice")).size / 1024);
  await Bun.write(join(folder, "control"), controlOf(version, architecture, kilobytes));
  await Bun.write(join(folder, "conffiles"), "/etc/sluice/sluice.env\n");
  for (const name of ["postinst", "prerm", "postrm"]) {
    await copyFile(join(root, "scripts/packaging/deb", name), join(folder, name));
    await chmod(join(folder, name), 0o755);
  }
}

async function writeFormula({ version }: Release): Promise<string> {
  const sums = await Bun.file(join(values.from, "SHA256SUMS")).text();
  const files = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"].map((target) => {
    const name = `sluice-${target}`;
    const [sha256] =
      sums
        .split("\n")
        .find((line) => line.endsWith(`  ${name}`))
        ?.split("  ") ?? [];
    if (sha256 === undefined)
      throw new Error(`${values.from}/SHA256SUMS has no ${name}: make release`);
    return [target, { url: `${values.url}/${name}`, sha256 }] as const;
  });
  const path = join(values.out, "sluice.rb");
  await Bun.write(path, formulaOf(version, new Map<string, FormulaFile>(files)));
  return path;
}

async function main(): Promise<void> {
  const wanted = values.only.split(",");
  const unknown = wanted.find((kind) => !kinds.some((known) => known === kind));
  if (unknown !== undefined)
    throw new Error(`there is no package "${unknown}"; known are ${kinds.join(", ")}`);
  const release = await describeRelease();
  await rm(values.out, { recursive: true, force: true });
  await mkdir(values.out, { recursive: true });
  if (wanted.includes("deb"))
    for (const name of ["linux-x64", "linux-arm64"] as const) {
      if (!existsSync(join(values.from, `sluice-${name}`)))
        throw new Error(`there is no ${values.from}/sluice-${name}: make release makes it`);
      console.log(await buildDeb(name, release));
    }
  if (wanted.includes("formula")) console.log(await writeFormula(release));
}

await main().catch((error: unknown) => {
  console.error(`packages: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
