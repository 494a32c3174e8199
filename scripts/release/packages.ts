// Finds the packages inside the executable, from the bundler and from the dependencies of prebuilt files; knows no output format.
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export interface Package {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression; `NOASSERTION` when the package has none. */
  readonly license: string;
  readonly repository: string | null;
  /** Texts of its licence and notice files, by file name. */
  readonly texts: readonly (readonly [file: string, text: string])[];
  /** `bundled`: its code is inside. `possible`: a prebuilt file inside was built from it and others, perhaps in part. */
  readonly presence: "bundled" | "possible";
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string | { readonly type?: string };
  readonly licenses?: readonly { readonly type?: string }[];
  readonly repository?: string | { readonly url?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface Bundles {
  /** The checkout. */
  readonly root: string;
  /** Entry points of the gateway. */
  readonly program: readonly string[];
  /** Entry points for browsers. */
  readonly page: readonly string[];
  /** Packages with a prebuilt file inside: the bundler does not see them, nor their dependencies. */
  readonly packed: readonly string[];
}

/** Sorted by name and version. */
export async function packagesInside(bundles: Bundles): Promise<readonly Package[]> {
  const { root } = bundles;
  const inputs = [
    ...(await inputsOf({ entrypoints: [...bundles.program], target: "bun", root })),
    ...(await inputsOf({
      entrypoints: [...bundles.page],
      target: "browser",
      root,
    })),
  ];
  const bundled = new Set<string>();
  const possible = new Set<string>();
  for (const input of inputs) {
    const folder = packageFolder(resolve(root, input));
    if (folder !== null) bundled.add(folder);
  }
  for (const name of bundles.packed) {
    const folder = realpathSync(join(root, "node_modules", name));
    bundled.add(folder);
    addDependencies(folder, possible);
  }
  const found = [...bundled].map((folder) => toPackage(folder, "bundled"));
  for (const folder of possible)
    if (!bundled.has(folder)) found.push(toPackage(folder, "possible"));
  const byIdentity = new Map(found.map((each) => [`${each.name}@${each.version}`, each]));
  return [...byIdentity.values()].sort((a, b) => compare(identity(a), identity(b)));
}

const identity = ({ name, version }: Package) => `${name}@${version}`;
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

interface Bundle {
  readonly root: string;
  readonly entrypoints: string[];
  readonly target: "bun" | "browser";
}

async function inputsOf({ root, ...options }: Bundle): Promise<readonly string[]> {
  const { metafile } = await Bun.build({
    ...options,
    entrypoints: options.entrypoints.map((entry) => join(root, entry)),
    splitting: true,
    metafile: true,
  });
  if (metafile === undefined) throw new Error("the bundler does not say what it has read");
  // Paths are relative to the directory that the process runs in.
  return Object.keys(metafile.inputs).map((path) => resolve(path));
}

/** The innermost package folder of the file; null for a file of this repository. */
function packageFolder(path: string): string | null {
  const [match] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [];
  return match === undefined ? null : realpathSync(match);
}

function addDependencies(folder: string, into: Set<string>): void {
  for (const name of Object.keys(manifestOf(folder).dependencies ?? {})) {
    const found = findPackage(name, folder);
    if (found === null || into.has(found)) continue;
    into.add(found);
    addDependencies(found, into);
  }
}

function findPackage(name: string, from: string): string | null {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name);
    if (existsSync(join(candidate, "package.json"))) return realpathSync(candidate);
  }
  return null;
}

const manifestOf = (folder: string) =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;

function toPackage(folder: string, presence: Package["presence"]): Package {
  const manifest = manifestOf(folder);
  const files = readdirSync(folder).filter((file) =>
    /^(?:licen[cs]e|copying|notice|copyright)(?:[.-]|$)/i.test(file),
  );
  const { repository } = manifest;
  const url = typeof repository === "string" ? repository : (repository?.url ?? null);
  return {
    name: manifest.name ?? folder,
    version: manifest.version ?? "0",
    license: licenseOf(manifest),
    repository: url,
    texts: files.sort().map((file) => [file, readFileSync(join(folder, file), "utf8")]),
    presence,
  };
}

function licenseOf({ license, licenses }: Manifest): string {
  if (typeof license === "string") return license;
  const named = license?.type ?? licenses?.map(({ type }) => type ?? "").join(" OR ");
  return named || "NOASSERTION";
}
