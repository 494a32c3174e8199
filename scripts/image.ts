// Builds the container image for both architectures as an OCI image layout, without a daemon, from the executables of a release.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Architecture, unpackDebian, updatePins } from "./release/debian-files.ts";
import { describeRelease } from "./release/describe.ts";
import { imageConfig, USER } from "./release/image-config.ts";
import { type Descriptor, type Layer, OciLayout } from "./release/oci-layout.ts";
import { type Entry, parentsOf, tarOf } from "./release/tar.ts";

const root = resolve(import.meta.dir, "..");

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    /** The directory of a release. */
    from: { type: "string", default: join(root, "dist/release") },
    out: { type: "string", default: join(root, "dist/image") },
    /** x64, arm64 or both, separated by a comma. */
    only: { type: "string", default: "x64,arm64" },
    /** Takes the newest packages of Debian when it has the pinned ones no more. */
    newest: { type: "boolean", default: false },
    /** Pins the newest packages of Debian, and builds nothing. */
    update: { type: "boolean", default: false },
  },
});

const ARCHITECTURES: Readonly<Record<string, Architecture>> = { x64: "amd64", arm64: "arm64" };

/** What the executable is linked to, and what looks up names of hosts. */
const LIBRARIES = ["c", "m", "pthread", "dl", "resolv", "nss_dns", "nss_files"];
const LOADERS = {
  amd64: { link: "lib64/ld-linux-x86-64.so.2", triplet: "x86_64-linux-gnu" },
  arm64: { link: "lib/ld-linux-aarch64.so.1", triplet: "aarch64-linux-gnu" },
} as const;

/** Where runtimes mount, so that the file system may be read-only. */
const MOUNTS = ["dev", "proc", "sys", "run", "home/nonroot"];

const text = (words: string) => new TextEncoder().encode(words);

/** Libraries, certificates and time zones: the same in all versions until Debian changes them. */
async function baseLayer(layout: OciLayout, folder: string, to: Architecture): Promise<Layer> {
  const { link, triplet } = LOADERS[to];
  const libraries = readdirSync(join(folder, "lib", triplet)).filter(
    (name) =>
      name.startsWith("ld-linux") || LIBRARIES.some((lib) => name.startsWith(`lib${lib}.so`)),
  );
  const files = [
    ...libraries.map((name) => `lib/${triplet}/${name}`),
    ...filesIn(folder, "usr/share/zoneinfo").filter(
      (path) => !/zoneinfo\/(?:right|posix)\//.test(path),
    ),
    ...filesIn(folder, "usr/share/doc").filter((path) => path.endsWith("/copyright")),
    ...filesIn(folder, "var/lib/dpkg/status.d"),
  ];
  const entries: Entry[] = [
    ...files.map((path) => entryOf(folder, path)),
    { path: link, mode: 0o777, link: `/lib/${triplet}/${link.replace(/.*\//, "")}` },
    { path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, bytes: certificatesIn(folder) },
    { path: "etc/passwd", mode: 0o644, bytes: text(passwd("/root", "/home/nonroot")) },
    { path: "etc/group", mode: 0o644, bytes: text(`root:x:0:\nnonroot:x:${USER}:\n`) },
    { path: "etc/nsswitch.conf", mode: 0o644, bytes: text("hosts: files dns\n") },
    { path: "etc/os-release", mode: 0o644, bytes: text(OS_RELEASE) },
    { path: "tmp", mode: 0o1777 },
    ...MOUNTS.map((path) => ({ path, mode: 0o755 })),
  ];
  const comment = "libc, CA certificates and time zones of Debian 12";
  return await layout.addLayer(tarOf(inOrder(entries)), comment);
}

const passwd = (rootHome: string, home: string) =>
  `root:x:0:0:root:${rootHome}:/sbin/nologin\nnonroot:x:${USER}:${USER}:nonroot:${home}:/sbin/nologin\n`;

const OS_RELEASE = 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Sluice on Debian 12 (distroless)"\n';

/** What the package's own script writes when it is installed. */
function certificatesIn(folder: string): Uint8Array {
  const place = join(folder, "usr/share/ca-certificates/mozilla");
  const names = readdirSync(place).filter((name) => name.endsWith(".crt"));
  return text(
    names
      .sort()
      .map((name) => readFileSync(join(place, name), "utf8"))
      .join(""),
  );
}

async function programLayer(layout: OciLayout, executable: string): Promise<Layer> {
  const bytes = await readFile(executable);
  const entries: Entry[] = [
    { path: "usr/local/bin/sluice", mode: 0o755, bytes },
    { path: "usr/share/doc/sluice/LICENSE.txt", mode: 0o644, bytes: await released("LICENSE.txt") },
    {
      path: "usr/share/doc/sluice/THIRD-PARTY-LICENSES.txt",
      mode: 0o644,
      bytes: await released("THIRD-PARTY-LICENSES.txt"),
    },
    // A new volume of an engine is a copy of the directory of the image, with its owner: /data is where many compose files have theirs.
    ...["data", "var/lib/sluice"].map((path) => ({ path, mode: 0o700, id: USER })),
  ];
  return await layout.addLayer(tarOf(inOrder(entries)), "the executable and its licences");
}

const released = (name: string) => readFile(join(values.from, name));

/** Sorted, with the directories above them. */
function inOrder(entries: readonly Entry[]): readonly Entry[] {
  const given = new Set(entries.map(({ path }) => path));
  const parents = parentsOf([...given]).filter(({ path }) => !given.has(path));
  return [...entries, ...parents].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function filesIn(folder: string, path: string): readonly string[] {
  return readdirSync(join(folder, path), { recursive: true })
    .map((name) => `${path}/${String(name)}`)
    .filter((each) => !lstatSync(join(folder, each)).isDirectory());
}

function entryOf(folder: string, path: string): Entry {
  const file = join(folder, path);
  const status = lstatSync(file);
  if (status.isSymbolicLink()) return { path, mode: 0o777, link: readlinkSync(file) };
  return { path, mode: status.mode & 0o755, bytes: readFileSync(file) };
}

async function main(): Promise<void> {
  if (values.update) return await updatePins();
  const wanted = values.only.split(",");
  const unknown = wanted.find((name) => ARCHITECTURES[name] === undefined);
  if (unknown !== undefined) throw new Error(`there is no image for "${unknown}"`);
  const executables = wanted.map(
    (name) => [name, join(values.from, `sluice-linux-${name}`)] as const,
  );
  for (const [name, path] of executables)
    if (!existsSync(path))
      throw new Error(`there is no ${path}: make release ARGS="--only linux-${name}" makes it`);
  const release = await describeRelease();
  await rm(values.out, { recursive: true, force: true });
  const layout = await OciLayout.create(values.out);
  const created = new Date(release.committedAt).toISOString();
  const { config, labels } = imageConfig(release);
  const images: Descriptor[] = [];
  for (const [name, path] of executables) {
    const architecture = ARCHITECTURES[name] ?? "amd64";
    const folder = await unpackDebian(architecture, values);
    const base = await baseLayer(layout, folder, architecture);
    await rm(folder, { recursive: true, force: true });
    const layers = [base, await programLayer(layout, path)];
    images.push(await layout.addImage({ architecture, created, config, labels, layers }));
    const bytes = layers.reduce((sum, { descriptor }) => sum + descriptor.size, 0);
    console.log(`linux/${architecture}  ${(bytes / 1_000_000).toFixed(1)} MB compressed`);
  }
  const digest = await layout.finish(images, release.version, labels);
  console.log(`${values.out} holds the image ${release.version}, ${digest}`);
}

await main().catch((error: unknown) => {
  console.error(`image: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
