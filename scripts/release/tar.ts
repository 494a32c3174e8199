// Writes tar archives (POSIX ustar) that depend on nothing but their entries; knows nothing of their use.

export interface Entry {
  /** Without a slash at the beginning; parents come first. */
  readonly path: string;
  readonly mode: number;
  /** Owner and group; default 0. */
  readonly id?: number;
  /** The bytes of a file, or where a link leads; absent: a directory. */
  readonly bytes?: Uint8Array;
  readonly link?: string;
}

const BLOCK = 512;
const FILE = "0";
const LINK = "2";
const DIRECTORY = "5";

/** All times are 0, so that the same entries give the same bytes. */
export function tarOf(entries: readonly Entry[]): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (const entry of entries) {
    const { bytes } = entry;
    pieces.push(headerOf(entry));
    if (bytes === undefined) continue;
    pieces.push(bytes, new Uint8Array(-bytes.length & (BLOCK - 1)));
  }
  pieces.push(new Uint8Array(2 * BLOCK));
  return Buffer.concat(pieces);
}

/** A directory and all directories above it that are missing in the list, owned by root. */
export function parentsOf(paths: readonly string[]): readonly Entry[] {
  const folders = new Set<string>();
  for (const path of paths)
    for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1))
      folders.add(path.slice(0, end));
  return [...folders].sort().map((path) => ({ path, mode: 0o755 }));
}

function headerOf({ path, mode, id = 0, bytes, link }: Entry): Uint8Array {
  const header = Buffer.alloc(BLOCK);
  const type = link !== undefined ? LINK : bytes === undefined ? DIRECTORY : FILE;
  const [prefix, name] = splitPath(type === DIRECTORY ? `${path}/` : path);
  header.write(name, 0);
  writeOctal(header, mode, { at: 100, length: 8 });
  writeOctal(header, id, { at: 108, length: 8 });
  writeOctal(header, id, { at: 116, length: 8 });
  writeOctal(header, bytes?.length ?? 0, { at: 124, length: 12 });
  writeOctal(header, 0, { at: 136, length: 12 });
  header.write(type, 156);
  header.write(link ?? "", 157, 100);
  header.write("ustar\x0000", 257, "latin1");
  header.write(prefix, 345);
  // The sum is made with spaces in its own place.
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** ustar has 100 bytes for the name, and 155 for directories before it. */
function splitPath(path: string): readonly [prefix: string, name: string] {
  if (path.length <= 100) return ["", path];
  const slash = path.indexOf("/", path.length - 101);
  if (slash < 0 || slash > 155) throw new Error(`${path} is too long for tar`);
  return [path.slice(0, slash), path.slice(slash + 1)];
}

function writeOctal(
  header: Buffer,
  value: number,
  { at, length }: { readonly at: number; readonly length: number },
): void {
  header.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
}
