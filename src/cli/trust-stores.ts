// The stores of trusted roots on this machine: the system's, and the NSS databases of browsers; knows no gateway.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What became of one store. */
export interface StoreResult {
  readonly state: "done" | "skipped" | "failed";
  /** One line. */
  readonly text: string;
}

export interface TrustedRoot {
  /** `Sluice Local CA 1a2b3c4d` */
  readonly name: string;
  readonly pem: string;
}

export interface StoreOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
}

export const NAME_PREFIX = "Sluice Local CA ";
const FILE_PREFIX = "sluice-local-ca-";

/** `sluice-local-ca-1a2b3c4d.crt` */
const fileOf = (name: string) => `${FILE_PREFIX}${name.slice(NAME_PREFIX.length)}.crt`;

interface SystemStore {
  readonly directory: string;
  readonly update: readonly [string, ...string[]];
}

/** Debian, Fedora, openSUSE, Arch: where administrators put roots, and what makes the system read them. */
const systemStores: readonly SystemStore[] = [
  { directory: "/usr/local/share/ca-certificates", update: ["update-ca-certificates"] },
  { directory: "/etc/pki/ca-trust/source/anchors", update: ["update-ca-trust", "extract"] },
  { directory: "/etc/pki/trust/anchors", update: ["update-ca-certificates"] },
  { directory: "/etc/ca-certificates/trust-source/anchors", update: ["trust", "extract-compat"] },
];

const SBIN = "/usr/sbin:/sbin";

const programOf = (name: string, { env }: StoreOptions) =>
  Bun.which(name, { PATH: `${env["PATH"] ?? ""}:${SBIN}` });

/** Adds the root to the system's store, which curl and most programs read. */
export function trustInSystem({ name, pem }: TrustedRoot, options: StoreOptions): StoreResult {
  return inSystem(options, ({ directory }) => {
    const path = join(directory, fileOf(name));
    writeFileSync(path, pem, { mode: 0o644 });
    return path;
  });
}

/** Removes the root, or every root of a local CA. */
export function untrustInSystem(name: string | null, options: StoreOptions): StoreResult {
  return inSystem(options, ({ directory }) => {
    const isMeant = (file: string) =>
      name === null ? file.startsWith(FILE_PREFIX) : file === fileOf(name);
    const files = readdirSync(directory).filter(isMeant);
    for (const file of files) rmSync(join(directory, file), { force: true });
    return files.length === 0 ? null : files.map((file) => join(directory, file)).join(", ");
  });
}

/** `change` returns the changed files; null: none. */
function inSystem(
  options: StoreOptions,
  change: (store: SystemStore) => string | null,
): StoreResult {
  const store = systemStores.find(
    ({ directory, update: [program] }) =>
      existsSync(directory) && programOf(program, options) !== null,
  );
  if (store === undefined)
    return {
      state: "skipped",
      text: "system: no store was found; on Debian install the package ca-certificates",
    };
  try {
    const changed = change(store);
    if (changed === null) return { state: "skipped", text: "system: it was not there" };
    run(store.update, options);
    return { state: "done", text: `system: ${changed}, ${store.update.join(" ")}` };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code === "EACCES" ? `${store.directory} is not writable: run it as root` : message;
    return { state: "failed", text: `system: ${reason}` };
  }
}

/** Databases of browsers, below the home directory. A profile of Firefox is a folder in one of the last three. */
const CHROMIUM = [".pki/nssdb", "snap/chromium/current/.pki/nssdb"];
const FIREFOX = [
  ".mozilla/firefox",
  "snap/firefox/common/.mozilla/firefox",
  ".var/app/org.mozilla.firefox/.mozilla/firefox",
];
const BROWSERS = [
  "chromium",
  "chromium-browser",
  "google-chrome",
  "brave-browser",
  "microsoft-edge",
];

/** Adds the root to all NSS databases of the user, and creates the one of Chromium where that is installed. */
export function trustInBrowsers({ name, pem }: TrustedRoot, options: StoreOptions): StoreResult[] {
  return inBrowsers(options, (database) => {
    if (!existsSync(join(database, "cert9.db"))) {
      mkdirSync(database, { recursive: true, mode: 0o700 });
      certutil(["-N", "-d", `sql:${database}`, "--empty-password"], options);
    }
    remove(name, database, options);
    certutil(["-A", "-d", `sql:${database}`, "-n", name, "-t", "C,,"], options, pem);
    return true;
  });
}

/** Removes the root, or every root of a local CA. */
export function untrustInBrowsers(name: string | null, options: StoreOptions): StoreResult[] {
  return inBrowsers(options, (database) => {
    if (!existsSync(join(database, "cert9.db"))) return false;
    return remove(name, database, options);
  });
}

function inBrowsers(options: StoreOptions, change: (database: string) => boolean): StoreResult[] {
  const databases = databasesOf(options);
  if (databases.length === 0)
    return [{ state: "skipped", text: "browsers: no database of Chromium or Firefox was found" }];
  if (programOf("certutil", options) === null)
    return [
      {
        state: "failed",
        text: `browsers: certutil is missing, for ${databases.join(", ")}; on Debian install the package libnss3-tools`,
      },
    ];
  return databases.map((database): StoreResult => {
    try {
      if (!change(database))
        return { state: "skipped", text: `browser: ${database}: it was not there` };
      return { state: "done", text: `browser: ${database}; restart the browser` };
    } catch (error) {
      return { state: "failed", text: `browser: ${database}: ${(error as Error).message}` };
    }
  });
}

/** Returns whether there was one. */
function remove(name: string | null, database: string, options: StoreOptions): boolean {
  // Nickname and trust flags, in two columns.
  const names = certutil(["-L", "-d", `sql:${database}`], options)
    .split("\n")
    .map((line) => /^(Sluice Local CA [0-9a-f]{8})\s/.exec(line)?.[1] ?? "")
    .filter((found) => found !== "" && (name === null || found === name));
  for (const each of names) certutil(["-D", "-d", `sql:${database}`, "-n", each], options);
  return names.length > 0;
}

/** As the user, whose files they are. */
const certutil = (args: readonly string[], options: StoreOptions, input = "") =>
  run(["certutil", ...args], options, { input, ...userOf(options)?.ids });

function databasesOf(options: StoreOptions): string[] {
  const home = userOf(options)?.home;
  if (home === undefined) return [];
  const hasChromium = BROWSERS.some((name) => programOf(name, options) !== null);
  // Under sudo, a new folder would belong to root.
  const mayCreate = hasChromium && options.env["SUDO_USER"] === undefined;
  const chromium = CHROMIUM.map((path) => join(home, path)).filter(
    (path, index) => existsSync(join(path, "cert9.db")) || (index === 0 && mayCreate),
  );
  const firefox = FIREFOX.map((path) => join(home, path))
    .filter((path) => existsSync(path))
    .flatMap((path) => readdirSync(path).map((profile) => join(path, profile)))
    .filter((profile) => existsSync(join(profile, "cert9.db")));
  return [...chromium, ...firefox];
}

interface User {
  readonly home: string;
  /** Empty: this process has them. */
  readonly ids: { readonly uid?: number; readonly gid?: number };
}

/** Under sudo, the one who ran it: root must not write where that user may have put links. */
function userOf({ env }: StoreOptions): User | null {
  const name = env["SUDO_USER"] ?? "";
  if (name === "" || name === "root" || process.getuid?.() !== 0) {
    const home = env["HOME"] ?? "";
    return home === "" ? null : { home, ids: {} };
  }
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const fields = lines.map((line) => line.split(":")).find(([first]) => first === name);
  const [, , uid, gid, , home] = fields ?? [];
  return home === undefined ? null : { home, ids: { uid: Number(uid), gid: Number(gid) } };
}

/** Returns the standard output; throws with what the program wrote. */
function run(
  [name = "", ...args]: readonly string[],
  options: StoreOptions,
  how: { readonly input?: string; readonly uid?: number; readonly gid?: number } = {},
): string {
  const program = programOf(name, options) ?? name;
  const fixed = { encoding: "utf8", timeout: 60_000 } as const;
  const { status, stdout, stderr, error } = spawnSync(program, args, { ...how, ...fixed });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${name} failed: ${(stderr || stdout).trim()}`);
  return stdout;
}
