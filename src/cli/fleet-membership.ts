// What `fleet join` leaves in a data directory: how its gateway reaches the database of its fleet; opens no connection.
import {
  closeSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { UsageError } from "./usage-error.ts";

/** `urls`: with the password of the database, the first one first; `root_certificate`: PEM; `node_name` null: the host name. */
const membership = t.Object(
  {
    urls: t.Array(t.String(), { minItems: 1 }),
    root_certificate: t.Union([t.String(), t.Null()]),
    node_name: t.Union([t.String(), t.Null()]),
  },
  { additionalProperties: false },
);

export type StoredMembership = Readonly<Static<typeof membership>>;

export const membershipPath = (dataDir: string) => join(dataDir, "fleet.json");

/** Null: the gateway has not joined by an invitation. Throws a UsageError where the file is not what `join` writes. */
export function readMembership(dataDir: string): StoredMembership | null {
  const path = membershipPath(dataDir);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new UsageError(`${path} cannot be read: ${message}; give --store`);
  }
  const value = parsed(text);
  if (!Value.Check(membership, value))
    throw new UsageError(`${path} is damaged: remove it and give --store, or join again`);
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export const writeMembership = (dataDir: string, stored: StoredMembership): void =>
  write(membershipPath(dataDir), stored);

/** It holds a password: for the owner of the data directory alone. */
function write(path: string, stored: StoredMembership): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, `${JSON.stringify(stored, null, 2)}\n`);
    // Root may run this for a gateway of the directory's owner.
    const { uid, gid } = statSync(dirname(path));
    if (process.getuid?.() === 0 && uid !== 0) fchownSync(file, uid, gid);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Replaces how a node reaches its database, whole or not at all; false: it has not joined by an invitation. */
export function moveMembership(
  dataDir: string,
  database: Pick<StoredMembership, "urls" | "root_certificate">,
): boolean {
  const stored = readMembership(dataDir);
  if (stored === null) return false;
  const path = membershipPath(dataDir);
  rmSync(`${path}.new`, { force: true });
  write(`${path}.new`, { ...stored, ...database });
  renameSync(`${path}.new`, path);
  return true;
}

export const removeMembership = (dataDir: string) =>
  rmSync(membershipPath(dataDir), { force: true });
