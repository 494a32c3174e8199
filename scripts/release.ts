// Builds a release: an executable per target, checksums, SBOM, licences and the installer.
import { chmod, copyFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { billOfMaterials, type BuiltFile, type Release } from "./release/bill-of-materials.ts";
import { describeRelease } from "./release/describe.ts";
import { licenceTexts } from "./release/licences.ts";
import { packagesInside } from "./release/packages.ts";
import { chooseTargets, fetchBun, run, type Target, targets } from "./release/targets.ts";
import { packedFiles } from "./packed-files.ts";

const root = resolve(import.meta.dir, "..");
const others = ["install.sh", "sbom.cdx.json", "THIRD-PARTY-LICENSES.txt", "LICENSE.txt"];
/** Flags of `bun build`, from the Makefile. */
const flags = (process.env["BUILD_FLAGS"] ?? "").split(/\s+/).filter((word) => word !== "");
const program = ["main", "worker", "importer", "plugin-reader", "regex-checker"].map(
  (name) => `src/${name}.ts`,
);

/** The repository that builds the release, of which `sluice version --check` asks. */
const [, repository] =
  /^https:\/\/github\.com\/([\w.-]+\/[\w.-]+)$/.exec(process.env["SLUICE_SOURCE_URL"] ?? "") ?? [];
const releasesUrl =
  repository === undefined ? null : `https://api.github.com/repos/${repository}/releases/latest`;

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    only: { type: "string", multiple: true },
    out: { type: "string", default: join(root, "dist/release") },
  },
});

interface Build {
  readonly release: Release;
  /** Where the executable is put. */
  readonly out: string;
}

async function build(target: Target, { release, out }: Build): Promise<BuiltFile> {
  const bun = await fetchBun(target, {
    version: release.bunVersion,
    cache: join(root, ".bun/targets"),
  });
  // The output contains its own file name, so that name is the same for all.
  const scratch = await mkdtemp(join(out, "build."));
  const built = join(scratch, "sluice");
  try {
    await run(
      [
        ...[process.execPath, "build", ...flags, `--target=${target.bun}`],
        `--compile-executable-path=${bun}`,
        ...["--define", `SLUICE_COMMIT=${JSON.stringify(release.commit)}`],
        ...["--define", `SLUICE_RELEASES=${JSON.stringify(releasesUrl)}`],
        ...[...program, "--outfile", built],
      ],
      { cwd: root },
    );
    const name = `sluice-${target.name}`;
    await chmod(built, 0o755);
    await rename(built, join(out, name));
    return { name, sha256: await sumOf(join(out, name)) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function sumOf(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hash.update(chunk);
  return hash.digest("hex");
}

async function main(): Promise<void> {
  if (flags.length === 0) throw new Error("BUILD_FLAGS is empty: `make release` sets it");
  const names = (values.only ?? []).flatMap((words) => words.split(","));
  const chosen = chooseTargets(names);
  const out = resolve(values.out);
  const release = await describeRelease();
  await mkdir(out, { recursive: true });
  // Files of an earlier release must not look like part of this one.
  for (const name of [...targets.map((target) => `sluice-${target.name}`), ...others, "SHA256SUMS"])
    await rm(join(out, name), { force: true });
  const files: BuiltFile[] = [];
  for (const target of chosen) {
    const file = await build(target, { release, out });
    files.push(file);
    const { size } = Bun.file(join(out, file.name));
    console.log(`${file.sha256}  ${file.name}  ${(size / 1_000_000).toFixed(1)} MB`);
  }
  const packages = await packagesInside({
    root,
    program,
    page: ["src/ui/index.html"],
    packed: packedFiles.map((file) => file.package),
  });
  await Bun.write(join(out, "sbom.cdx.json"), billOfMaterials(release, packages, files));
  await Bun.write(
    join(out, "THIRD-PARTY-LICENSES.txt"),
    licenceTexts(packages, release.bunVersion),
  );
  await copyFile(join(root, "LICENSE"), join(out, "LICENSE.txt"));
  await copyFile(join(root, "scripts/install.sh"), join(out, "install.sh"));
  await chmod(join(out, "install.sh"), 0o755);
  const sums = [...files];
  for (const name of others) sums.push({ name, sha256: await sumOf(join(out, name)) });
  const lines = sums.map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  await Bun.write(join(out, "SHA256SUMS"), lines.join(""));
  const { version, commit } = release;
  console.log(`${out} holds sluice ${version}, commit ${commit ?? "unknown"}`);
}

await main().catch((error: unknown) => {
  console.error(`release: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
