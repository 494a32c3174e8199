// What `make publish` would run, and what it refuses before it runs anything.
import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../../..");
const DIGEST = `sha256:${"a".repeat(64)}`;
const IMAGE = "ghcr.io/owner/sluice";

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

function built(version: string): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-publish-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["image", "release", "packages"]) mkdirSync(join(folder, name));
  const annotations = { "org.opencontainers.image.ref.name": version };
  writeFileSync(
    join(folder, "image/index.json"),
    JSON.stringify({ manifests: [{ digest: DIGEST, size: 1, annotations }] }),
  );
  const sum = new Bun.CryptoHasher("sha256").update("program").digest("hex");
  writeFileSync(join(folder, "release/sluice-linux-x64"), "program");
  writeFileSync(join(folder, "release/SHA256SUMS"), `${sum}  sluice-linux-x64\n`);
  writeFileSync(join(folder, "packages/sluice.rb"), "");
  return folder;
}

function publish(folder: string, tag: string, image = IMAGE) {
  const words = `--tag ${tag} --image ${image} --from ${folder} --dry-run`;
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    ["make", "--silent", "publish", `ARGS=${words}`],
    { cwd: root },
  );
  return { code: exitCode, lines: stdout.toString().trim().split(" \n"), stderr: String(stderr) };
}

test("a version is pushed, signed by its digest, and released with all files", () => {
  const folder = built("1.2.3");
  const { code, lines } = publish(folder, "v1.2.3");
  expect(code).toBe(0);
  const copy = `skopeo copy --all --preserve-digests oci:${folder}/image:1.2.3 docker://${IMAGE}`;
  expect(lines.slice(0, 3)).toEqual([
    `${copy}:1.2.3`,
    `${copy}:latest`,
    `cosign sign --yes ${IMAGE}@${DIGEST}`,
  ]);
  expect(lines.at(-1)).toStartWith("gh release create v1.2.3 --verify-tag");
  for (const name of ["release/sluice-linux-x64", "release/SHA256SUMS", "packages/sluice.rb"])
    expect(lines.at(-1)).toContain(` ${folder}/${name}`);
});

test("a release candidate is not the latest version", () => {
  const { lines } = publish(built("1.2.3-rc.1"), "v1.2.3-rc.1");
  expect(lines.join("\n")).not.toContain(":latest");
  expect(lines.at(-1)).toContain("--prerelease");
});

test("nothing is published that is not what the tag and the sums say", () => {
  const folder = built("1.2.3");
  expect(publish(folder, "v1.2.4").stderr).toContain("is not version 1.2.4");
  expect(publish(folder, "main").stderr).toContain("--tag must be a version");
  expect(publish(folder, "v1.2.3", "UPPER/name").stderr).toContain("--image must be a name");
  writeFileSync(join(folder, "release/sluice-linux-x64"), "changed");
  const { code, stderr } = publish(folder, "v1.2.3");
  expect([code, stderr]).toEqual([2, expect.stringContaining("is not what SHA256SUMS says")]);
});
