// Target platforms of executables, and the source of Bun for each; knows nothing of the build.
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

export interface Target {
  /** In the names of files: `sluice-linux-x64`. */
  readonly name: string;
  /** Name of the target in Bun, after `bun-`. */
  readonly bun: string;
  /** The npm package of Bun for it. */
  readonly package: string;
}

const target = (name: string, bun: string): Target => ({
  name,
  bun: `bun-${bun}`,
  package: `@oven/bun-${bun}`,
});

export const targets: readonly Target[] = [
  target("linux-x64", "linux-x64"),
  target("linux-x64-baseline", "linux-x64-baseline"),
  target("linux-arm64", "linux-aarch64"),
  target("linux-x64-musl", "linux-x64-musl"),
  target("linux-arm64-musl", "linux-aarch64-musl"),
  target("darwin-arm64", "darwin-aarch64"),
  target("darwin-x64", "darwin-x64"),
];

/** Throws with the known names for an unknown one. No names: all targets. */
export function chooseTargets(names: readonly string[]): readonly Target[] {
  const known = targets.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(`there is no target "${unknown}"; known are ${known.join(", ")}`);
  return targets.filter(({ name }) => names.length === 0 || names.includes(name));
}

/**
 * The path of Bun's executable for a target. npm downloads it from the npm registry, once, and compares the archive with the
 * SHA-512 of the registry. There is no other source.
 */
export async function fetchBun(
  { package: name, bun }: Target,
  { version, cache }: { readonly version: string; readonly cache: string },
): Promise<string> {
  const folder = join(cache, version);
  const path = join(folder, bun);
  if (await Bun.file(path).exists()) return path;
  await mkdir(folder, { recursive: true });
  const scratch = await mkdtemp(join(folder, "download."));
  try {
    await run(["npm", "pack", "--silent", "--pack-destination", scratch, `${name}@${version}`]);
    const archive = (await readdir(scratch)).find((file) => file.endsWith(".tgz"));
    if (archive === undefined) throw new Error(`npm has no ${name}@${version}`);
    await run(["tar", "-xzf", join(scratch, archive), "-C", scratch]);
    const unpacked = join(scratch, "package/bin/bun");
    await chmod(unpacked, 0o755);
    // A rename, so that an interrupted download never leaves half an executable behind.
    await rename(unpacked, path);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return path;
}

/** Resolves to the output of the program; throws with its error output when it fails. */
export async function run(
  command: readonly string[],
  options: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string | undefined>>;
  } = {},
): Promise<string> {
  const child = Bun.spawn([...command], { ...options, stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} failed: ${stderr.trim() || stdout.trim()}`);
  return stdout;
}
