// Unpacks archives into memory: zip, tar and tar.gz, without links and nothing outside of them; knows no program.
import { gunzipSync, inflateRawSync } from "node:zlib";
import { ApiError } from "../../model/error.ts";
import { shown, type SourceTree, TREE_LIMITS, TreeBuilder, type TreeLimits } from "./tree.ts";

const BLOCK = 512;

/** The files of an archive; null: the bytes are none. Throws a 400 or 413 for one that is damaged, hostile or too large. */
export function unpacked(bytes: Uint8Array, limits: TreeLimits = TREE_LIMITS): SourceTree | null {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    // With a header and padding for each entry.
    const whole = limits.bytes + limits.entries * 2 * BLOCK;
    const tar = inflated(bytes, gunzipSync, { max: whole, limits });
    if (!isTar(tar)) throw new ApiError(400, "the gzip file holds no tar archive");
    return untar(tar, limits);
  }
  if (isTar(bytes)) return untar(bytes, limits);
  const isZip = bytes[0] === 0x50 && bytes[1] === 0x4b && (bytes[2] ?? 9) < 8;
  return isZip ? unzip(bytes, limits) : null;
}

const linked = (name: string) =>
  new ApiError(
    400,
    `${shown(name)}: is a link: archives are read without links, pack the file itself (tar --dereference)`,
  );

/** `max`: bytes of the result. */
function inflated(
  bytes: Uint8Array,
  inflate: typeof gunzipSync,
  { max, limits }: { readonly max: number; readonly limits: TreeLimits },
): Uint8Array {
  try {
    // zlib needs room for a byte.
    return inflate(bytes, { maxOutputLength: Math.max(1, max) });
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (/TOO_LARGE/.test(code) || error instanceof RangeError)
      throw new ApiError(413, `the files are larger than ${limits.bytes} bytes together`);
    throw new ApiError(400, "the archive is damaged: its compressed data cannot be read", {
      cause: error,
    });
  }
}

const latin = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/** Also of before POSIX: the sum over the header tells. */
const isTar = (bytes: Uint8Array): boolean =>
  bytes.byteLength >= BLOCK && sumOf(bytes.subarray(0, BLOCK)) === octal(bytes, 148, 8);

/** The checksum of a header, with spaces in its own place. */
function sumOf(header: Uint8Array): number {
  let sum = 0;
  for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 32 : byte;
  return sum;
}

function octal(bytes: Uint8Array, at: number, length: number): number {
  const text = latin(bytes.subarray(at, at + length))
    .replace(/[\0 ]+$/, "")
    .trim();
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : Number.NaN;
}

const damaged = (what: string) => new ApiError(400, `the archive is damaged: ${what}`);

/** POSIX.1-1988 (ustar) with the long names of GNU and of pax. */
function untar(bytes: Uint8Array, limits: TreeLimits): SourceTree {
  const files = new TreeBuilder(limits);
  let longName: string | null = null;
  for (let at = 0; at + BLOCK <= bytes.byteLength;) {
    const header = bytes.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const size = octal(header, 124, 12);
    if (sumOf(header) !== octal(header, 148, 8) || !Number.isSafeInteger(size))
      throw damaged("a header of tar is invalid");
    const type = String.fromCharCode(header[156] ?? 0);
    const start = at + BLOCK;
    const content = bytes.subarray(start, start + size);
    if (content.byteLength < size) throw damaged("it ends within a file");
    at = start + Math.ceil(size / BLOCK) * BLOCK;
    if (type === "L" || type === "x") {
      const text = nameOf(content).replace(/\0+$/, "");
      // Of pax: `27 path=...` with the length in front.
      longName = type === "L" ? text : (/(?:^|\n)\d+ path=([^\n]*)\n/.exec(text)?.[1] ?? longName);
      if (type === "x" && /(?:^|\n)\d+ size=/.test(text)) throw damaged("a size of pax");
      continue;
    }
    if (type === "g") continue;
    const name = longName ?? headerName(header);
    longName = null;
    const path = files.enter(name);
    if (type === "1" || type === "2") throw linked(name);
    if (type === "5") {
      files.addFolder(path);
      continue;
    }
    if (type !== "0" && type !== "\0" && type !== "7")
      throw new ApiError(400, `${shown(name)}: is neither a file nor a folder`);
    if (name.endsWith("/")) files.addFolder(path);
    else files.add(path, content);
  }
  return files.finish();
}

function headerName(header: Uint8Array): string {
  const field = (at: number, length: number) =>
    nameOf(header.subarray(at, at + length)).replace(/\0[\s\S]*$/, "");
  const isUstar = latin(header.subarray(257, 263)) === "ustar\0";
  const prefix = isUstar ? field(345, 155) : "";
  return prefix === "" ? field(0, 100) : `${prefix}/${field(0, 100)}`;
}

function nameOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return latin(bytes);
  }
}

const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_HEADER = 0x04034b50;
const END = 0x06054b50;
const END_BYTES = 22;
const LINK_MODE = 0o120_000;
const TYPE_MODE = 0o170_000;

/** APPNOTE.TXT 6.3: stored and deflated files; neither encryption nor zip64. */
function unzip(bytes: Uint8Array, limits: TreeLimits): SourceTree {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = endOf(view);
  const count = view.getUint16(end + 10, true);
  if (count === 0xffff) throw new ApiError(400, "archives of zip64 are not supported");
  const files = new TreeBuilder(limits);
  let at = view.getUint32(end + 16, true);
  for (let index = 0; index < count; index++) {
    if (at + 46 > end || view.getUint32(at, true) !== DIRECTORY_ENTRY)
      throw damaged("its directory is invalid");
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((field) =>
      view.getUint16(at + field, true),
    ) as [number, number, number];
    const name = nameOf(bytes.subarray(at + 46, at + 46 + nameBytes)).replaceAll("\\", "/");
    const path = files.enter(name);
    if (((view.getUint32(at + 38, true) >>> 16) & TYPE_MODE) === LINK_MODE) throw linked(name);
    if ((view.getUint16(at + 8, true) & 1) === 1)
      throw new ApiError(400, `${shown(name)}: is encrypted`);
    if (name.endsWith("/")) files.addFolder(path);
    else files.add(path, contentOf(view, at, { name, left: files.left, limits }));
    at += 46 + nameBytes + extraBytes + commentBytes;
  }
  return files.finish();
}

function endOf(view: DataView): number {
  const first = Math.max(0, view.byteLength - END_BYTES - 0xffff);
  for (let at = view.byteLength - END_BYTES; at >= first; at--)
    if (view.getUint32(at, true) === END) return at;
  throw damaged("it has no directory");
}

function contentOf(
  view: DataView,
  entry: number,
  {
    name,
    left,
    limits,
  }: { readonly name: string; readonly left: number; readonly limits: TreeLimits },
): Uint8Array {
  const method = view.getUint16(entry + 10, true);
  const size = view.getUint32(entry + 20, true);
  const header = view.getUint32(entry + 42, true);
  if (header + 30 > view.byteLength || view.getUint32(header, true) !== LOCAL_HEADER)
    throw damaged(`${shown(name)} has no header`);
  const start = header + 30 + view.getUint16(header + 26, true) + view.getUint16(header + 28, true);
  if (start + size > view.byteLength) throw damaged(`${shown(name)} is incomplete`);
  const packed = new Uint8Array(view.buffer, view.byteOffset + start, size);
  if (method === 0) return packed;
  if (method === 8) return inflated(packed, inflateRawSync, { max: left, limits });
  throw new ApiError(400, `${shown(name)}: is packed by method ${method}: use deflate`);
}
