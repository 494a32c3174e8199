// A MaxMind database in memory: the country or autonomous system of an address; knows neither settings nor requests.
import type { Reader } from "maxmind";

/** Kinds of lookups. */
export type GeoKind = "country" | "asn";

/** How files are read: `node:fs/promises`. */
export interface GeoFiles {
  stat(path: string): Promise<{ readonly size: number; isFile(): boolean }>;
  readFile(path: string): Promise<Buffer>;
}

/** Why a file cannot be used. */
export class GeoDatabaseError extends Error {}

/** Above the size of all known databases: a file is read as a whole. */
const MAX_BYTES = 2 ** 31;
/** Addresses in the lookup cache. */
const MAX_REMEMBERED = 4096;

/** Throws a GeoDatabaseError when the file cannot be read, is no MaxMind database or one of another kind. */
export async function openGeoDatabase(
  path: string,
  kind: GeoKind,
  files: GeoFiles,
): Promise<GeoDatabase> {
  const bytes = await read(path, files);
  // Loads the reader only for gateways with a database.
  const { Reader } = await import("maxmind");
  const reader = toReader(() => new Reader(bytes));
  const { databaseType } = reader.metadata;
  const isOfNetworks = /asn|isp/i.test(databaseType) && !/country|city/i.test(databaseType);
  if (kind === "country" && isOfNetworks)
    throw new GeoDatabaseError(`is a database of networks (${databaseType}), not of countries`);
  if (kind === "asn" && /country|city/i.test(databaseType) && !/asn|isp/i.test(databaseType))
    throw new GeoDatabaseError(`is a database of countries (${databaseType}), not of networks`);
  return new GeoDatabase(reader);
}

async function read(path: string, { stat, readFile }: GeoFiles): Promise<Buffer> {
  try {
    const found = await stat(path);
    // A pipe or a device has no end.
    if (!found.isFile()) throw new GeoDatabaseError("is not a file");
    if (found.size > MAX_BYTES) throw new GeoDatabaseError("is too large to be a MaxMind database");
    return await readFile(path);
  } catch (error) {
    if (error instanceof GeoDatabaseError) throw error;
    const { code } = error as { readonly code?: string };
    if (code === "ENOENT" || code === "ENOTDIR") throw new GeoDatabaseError("does not exist");
    if (code === "EACCES" || code === "EPERM")
      throw new GeoDatabaseError("is not readable for the gateway");
    throw new GeoDatabaseError(`cannot be read: ${code ?? "unknown error"}`, { cause: error });
  }
}

function toReader(make: () => Reader<never>): Reader<never> {
  try {
    const reader = make();
    const { nodeCount, recordSize, searchTreeSize, ipVersion } = reader.metadata;
    const isSound =
      nodeCount > 0 &&
      [24, 28, 32].includes(recordSize) &&
      (ipVersion === 4 || ipVersion === 6) &&
      searchTreeSize > 0;
    if (isSound) return reader;
  } catch {
    // The reader searches a marker in the last part of the file and fails in many ways without it.
  }
  throw new GeoDatabaseError("is not a MaxMind database");
}

export class GeoDatabase {
  readonly #reader: Reader<never>;
  /** Few clients make most requests, and a record is decoded in microseconds. */
  readonly #remembered = new Map<string, unknown>();

  constructor(reader: Reader<never>) {
    this.#reader = reader;
  }

  /** ISO 3166-1 alpha-2 of the country that the address is in; null when it is not known. */
  country(address: string): string | null {
    const code = this.#field(address, ["country", "iso_code"]);
    return typeof code === "string" ? code : null;
  }

  /** Number of the network that announces the address; null when it is not known. */
  asn(address: string): number | null {
    const number = this.#field(address, ["autonomous_system_number"]);
    return typeof number === "number" ? number : null;
  }

  #field(address: string, path: readonly string[]): unknown {
    const known = this.#remembered.get(address);
    if (known !== undefined) return known;
    const value = this.#read(address, path) ?? null;
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
    this.#remembered.set(address, value);
    return value;
  }

  #read(address: string, path: readonly string[]): unknown {
    // The reader would read the first half of a longer address as one of these.
    if (this.#reader.metadata.ipVersion === 4 && address.includes(":")) return null;
    try {
      let value: unknown = this.#reader.get(address);
      for (const name of path) value = (value as Record<string, unknown> | null)?.[name];
      return value;
    } catch {
      // No address, or damaged data in the file.
      return null;
    }
  }
}
