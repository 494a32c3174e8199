// Reads files that only root and the user of the gateway can change; knows nothing of plugins.
import {
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import type { Stats } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

/** Another user could change what the gateway would run. */
export class TrustError extends Error {}

const MAX_LINKS = 40;
const MAX_FILE_BYTES = 8 * 1024 * 1024;

const GROUP_OR_OTHERS = 0o022;
const STICKY = 0o1000;

/** The user whose files are trusted beside those of root; null: the system has no users (Windows). */
const ownUser = (): number | null => process.geteuid?.() ?? null;

/**
 * The real path. Throws a TrustError unless every directory and link on the way belongs to root or the gateway's user, and no other user
 * can write to it. In a sticky directory such as /tmp others can only add entries, which is not enough to replace one.
 */
export function trustedPath(path: string, user = ownUser()): string {
  let rest = resolve(path).split(sep).filter(Boolean);
  let at: string = sep;
  let links = 0;
  checkOwner(at, lstatSync(at), { user, isLast: false });
  while (rest.length > 0) {
    const [name = "", ...others] = rest;
    const next = join(at, name);
    const found = lstatSync(next, { throwIfNoEntry: false });
    if (found === undefined) throw new TrustError(`${path}: does not exist`);
    if (found.isSymbolicLink()) {
      if (++links > MAX_LINKS) throw new TrustError(`${path}: too many symbolic links`);
      // The mode of a link says nothing; who may replace it was checked with its directory.
      requireOwner(next, found, user);
      const target = resolve(at, readlinkSync(next));
      rest = [...target.split(sep).filter(Boolean), ...others];
      at = sep;
      continue;
    }
    checkOwner(next, found, { user, isLast: others.length === 0 });
    at = next;
    rest = others;
  }
  return at;
}

/** Throws a TrustError when a real path is in one of these directories, or has one in it. */
export function requireApart(real: string, written: readonly string[]): void {
  for (const path of written) {
    const other = existsSync(path) ? realpathSync(path) : resolve(path);
    if (isWithin(real, other) || isWithin(other, real))
      throw new TrustError(
        `${real}: the gateway itself writes to ${other}: choose a directory that is not in there and does not contain it`,
      );
  }
}

/** By inode too: a directory that is mounted twice has two paths. */
function isWithin(path: string, directory: string): boolean {
  const wanted = statSync(directory, { throwIfNoEntry: false });
  for (let at = path; ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false });
    const isSame = found?.ino === wanted?.ino && found?.dev === wanted?.dev;
    if (at === directory || (found !== undefined && isSame)) return true;
    if (at === dirname(at)) return false;
  }
}

/**
 * The text of a file that `trustedPath` accepts and that is in none of the `written` directories, read once: what is checked is what
 * is returned.
 */
export function readTrusted(path: string, written: readonly string[] = []): string {
  const user = ownUser();
  const real = trustedPath(path, user);
  requireApart(real, written);
  // Opening a pipe would wait for its writer.
  if (!lstatSync(real).isFile()) throw new TrustError(`${path}: is not a file`);
  const file = openSync(real, "r");
  try {
    const found = fstatSync(file);
    if (found.size > MAX_FILE_BYTES) throw new TrustError(`${path}: is larger than 8 MB`);
    checkOwner(real, found, { user, isLast: true });
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

const SETTINGS = ["package.json", "tsconfig.json", "jsconfig.json"];

/**
 * Throws a TrustError when another user could change a file that the bundler reads for one of these files, in its directory or above:
 * in a sticky directory others can add one.
 */
export function requireTrustedSettings(files: readonly string[]): void {
  const seen = new Set<string>();
  for (const file of files)
    for (let at = dirname(file); !seen.has(at); at = dirname(at)) {
      seen.add(at);
      for (const path of SETTINGS.map((name) => join(at, name)))
        if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) trustedPath(path);
    }
}

interface Check {
  readonly user: number | null;
  readonly isLast: boolean;
}

function checkOwner(path: string, found: Stats, { user, isLast }: Check): void {
  requireOwner(path, found, user);
  if (user === null || (found.mode & GROUP_OR_OTHERS) === 0) return;
  if (!isLast && found.isDirectory() && (found.mode & STICKY) !== 0) return;
  throw new TrustError(
    `${path}: other users can write to it: remove the right with chmod go-w ${path}`,
  );
}

function requireOwner(path: string, { uid }: Stats, user: number | null): void {
  if (user === null || uid === 0 || uid === user) return;
  throw new TrustError(
    `${path}: belongs to the user ${uid}: it must belong to root or to the user of the gateway (${user})`,
  );
}
