// Files of Debian packages, for any architecture, in pinned versions; knows nothing of images.
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { run } from "./targets.ts";

export type Architecture = "amd64" | "arm64";

interface Pin {
  readonly version: string;
  /** SHA-256 of the package for each architecture, or for `all`. */
  readonly sha256: Readonly<Partial<Record<Architecture | "all", string>>>;
}

const root = resolve(import.meta.dir, "../..");
const pinFile = join(import.meta.dir, "debian-packages.json");
const cache = join(root, ".bun/debian");
export const architectures: readonly Architecture[] = ["amd64", "arm64"];
const names = ["libc6", "ca-certificates", "tzdata"] as const;
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
/** A snapshot has every version that ever was; mirrors have the newest. */
const MIRROR = process.env["DEBIAN_MIRROR"] || "http://deb.debian.org/debian";
const SECURITY = process.env["DEBIAN_SECURITY_MIRROR"] || "http://deb.debian.org/debian-security";
const SOURCES = [
  `${MIRROR} bookworm`,
  `${MIRROR} bookworm-updates`,
  `${SECURITY} bookworm-security`,
];
const HINT =
  "make image ARGS=--update pins the versions that Debian has now; DEBIAN_MIRROR may be a snapshot of another time";

type Pins = Readonly<Record<string, Pin>>;

/**
 * Unpacks the packages into a new directory, which the caller removes. `newest`: when Debian has the pinned versions no more, those
 * that it has now, whose signatures apt checks.
 */
export async function unpackDebian(
  architecture: Architecture,
  { newest }: { readonly newest: boolean },
): Promise<string> {
  const pins = (await Bun.file(pinFile).json()) as Pins;
  if (!newest) return await unpack(architecture, pins);
  return await unpack(architecture, pins).catch(() => unpack(architecture, {}));
}

async function unpack(architecture: Architecture, pins: Pins): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-debian-"));
  const pinned = Object.entries(pins).map(([name, pin]) => [
    name,
    join(cache, `${name}-${sumIn(pin, architecture)}.deb`),
  ]) as [string, string][];
  const kept = pinned.length > 0 && pinned.every(([, path]) => existsSync(path));
  if (kept) await unpackInto(folder, new Map(pinned));
  else
    await download(wordsOf(pins), architecture, async (archives) => {
      for (const [name, path] of pinned) await keep(archives.get(name) ?? "", path);
      await unpackInto(folder, archives);
    });
  return folder;
}

const wordsOf = (pins: Pins) =>
  names.map((name) => (pins[name] === undefined ? name : `${name}=${pins[name].version}`));

/** Throws when the file has not the sum that is the end of the name of its place. */
async function keep(path: string, place: string): Promise<void> {
  const sum = await sumOf(path);
  if (!place.endsWith(`-${sum}.deb`))
    throw new Error(`${basename(path)} has the sum ${sum}, which is not the pinned one`);
  await mkdir(cache, { recursive: true });
  await copyFile(path, place);
}

async function unpackInto(folder: string, archives: ReadonlyMap<string, string>): Promise<void> {
  for (const [name, path] of archives) {
    await run(["dpkg-deb", "--extract", path, folder]);
    // Scanners of images look there for the versions of packages.
    const control = await run(["dpkg-deb", "--field", path]);
    await Bun.write(join(folder, "var/lib/dpkg/status.d", name), control);
  }
}

/** Pins the newest versions that Debian has. */
export async function updatePins(): Promise<void> {
  const pins: Record<string, { version: string; sha256: Record<string, string> }> = {};
  for (const architecture of architectures)
    await download(names, architecture, async (archives) => {
      for (const [name, path] of archives) {
        const shown = ["--showformat=${Version} ${Architecture}", "--show", path];
        const [version = "", kind = ""] = (await run(["dpkg-deb", ...shown])).split(" ");
        const pin = (pins[name] ??= { version, sha256: {} });
        if (pin.version !== version)
          throw new Error(`${name} has another version for ${architecture}; try again later`);
        pin.sha256[kind] = await sumOf(path);
      }
    });
  const sorted = Object.fromEntries(names.map((name) => [name, pins[name]]));
  await Bun.write(pinFile, `${JSON.stringify(sorted, null, 2)}\n`);
}

/** With lists of its own, because the machine may have other sources and another architecture. */
async function download(
  words: readonly string[],
  architecture: Architecture,
  use: (archives: ReadonlyMap<string, string>) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-apt-"));
  try {
    const files = ["lists/partial", "cache/archives/partial", "archives"];
    for (const path of files) await mkdir(join(folder, path), { recursive: true });
    const lines = SOURCES.map((source) => `deb [signed-by=${KEYRING}] ${source} main\n`);
    await Bun.write(join(folder, "sources.list"), lines.join(""));
    await Bun.write(join(folder, "status"), "");
    const apt = ["apt-get", "-qq", ...settingsOf(folder, architecture)];
    await run([...apt, "update"]);
    const cwd = join(folder, "archives");
    await run([...apt, "download", ...words], { cwd }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}\n${HINT}`);
    });
    const found = await readdir(cwd);
    await use(new Map(found.map((file) => [file.split("_")[0] ?? "", join(cwd, file)])));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function settingsOf(folder: string, architecture: Architecture): readonly string[] {
  const settings = {
    "Dir::Etc::sourcelist": join(folder, "sources.list"),
    "Dir::Etc::sourceparts": "-",
    "Dir::State::lists": join(folder, "lists"),
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": join(folder, "cache"),
    "APT::Architecture": architecture,
    "APT::Architectures": architecture,
    // Lists of snapshots have expired; versions are pinned by their sums.
    "Acquire::Check-Valid-Until": "false",
    "APT::Sandbox::User": "root",
  };
  return Object.entries(settings).map(([name, value]) => `-o${name}=${value}`);
}

function sumIn({ sha256 }: Pin, architecture: Architecture): string {
  const sum = sha256[architecture] ?? sha256.all;
  if (sum === undefined) throw new Error(`no package is pinned for ${architecture}`);
  return sum;
}

const sumOf = async (path: string) =>
  new Bun.CryptoHasher("sha256").update(await Bun.file(path).bytes()).digest("hex");
