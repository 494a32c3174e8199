// Reads files of bounded size that others may replace: never a pipe, a device or a socket, and on request only what no other user can
// change; knows no content.
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import type { Stats } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

/** Not a regular file, too large, or one that another user could change. */
export class TrustError extends Error {}

const MAX_LINKS = 40;
const MB = 1024 * 1024;
const MAX_FILE_BYTES = 8 * MB;
/** First part of a file that tells no size, such as those of /proc. */
const CHUNK_BYTES = 65_536;

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

export interface TrustedRead {
  /** Directories that the file may not be in: the gateway writes there what others send. */
  readonly written?: readonly string[];
  /** The only directory that it may be in, with its links followed. */
  readonly within?: string;
  /** Default 8 MB. */
  readonly maxBytes?: number;
}

/** A file that `trustedPath` accepts, read once: what is checked is what is returned. */
export function readTrusted(path: string, options: TrustedRead = {}): Buffer<ArrayBuffer> {
  const user = ownUser();
  // Before advice about the mode of what a link leads to, such as a device.
  if (options.within !== undefined) requireWithin(path, realpathSync(path), options.within);
  const real = trustedPath(path, user);
  if (options.within !== undefined) requireWithin(path, real, options.within);
  requireApart(real, options.written ?? []);
  const { maxBytes = MAX_FILE_BYTES } = options;
  const check = (found: Stats) => checkOwner(real, found, { user, isLast: true });
  return read(path, { real, maxBytes, check });
}

function requireWithin(path: string, real: string, directory: string): void {
  if (isWithin(real, realpathSync(directory))) return;
  throw new TrustError(`${path}: is a link that leads out of the directory`);
}

/** The bytes of a file, also of one that other users can change. Throws a TrustError, or the error of the system when it cannot be opened. */
export const readRegular = (path: string, maxBytes = MAX_FILE_BYTES): Buffer<ArrayBuffer> =>
  read(path, { real: realpathSync(path), maxBytes, check: () => undefined });

interface Reading {
  /** The path without links. */
  readonly real: string;
  readonly maxBytes: number;
  readonly check: (found: Stats) => void;
}

function read(path: string, { real, maxBytes, check }: Reading): Buffer<ArrayBuffer> {
  const notFile = () => new TrustError(`${path}: is not a file`);
  // Opening a pipe would wait for its writer, and opening a device may act on it.
  if (!lstatSync(real).isFile()) throw notFile();
  // Should one be there meanwhile, the call neither follows it nor waits.
  const file = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw notFile();
    check(found);
    const tooLarge = () => new TrustError(`${path}: is larger than ${sizeOf(maxBytes)}`);
    if (found.size > maxBytes) throw tooLarge();
    const chunks: Buffer[] = [];
    let size = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(Math.max(found.size + 1 - size, CHUNK_BYTES));
      const length = readSync(file, chunk);
      if (length === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, length));
      // It may grow while it is read.
      size += length;
      if (size > maxBytes) throw tooLarge();
    }
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

const sizeOf = (bytes: number) => (bytes % MB === 0 ? `${bytes / MB} MB` : `${bytes} bytes`);

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
