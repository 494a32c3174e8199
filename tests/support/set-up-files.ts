// Archives of files for tests: tar and zip, also with entries that no honest program writes.
import { deflateRawSync } from "node:zlib";

export interface ArchiveEntry {
  readonly name: string;
  readonly content?: string | Uint8Array;
  /** Type of tar: `0` file, `2` symbolic link, `5` folder. Default: file. */
  readonly type?: string;
}

const bytesOf = (content: string | Uint8Array = ""): Uint8Array =>
  typeof content === "string" ? new TextEncoder().encode(content) : content;

export const entriesOf = (files: Readonly<Record<string, string>>): readonly ArchiveEntry[] =>
  Object.entries(files).map(([name, content]) => ({ name, content }));

/** POSIX ustar. */
export function tarOf(entries: readonly ArchiveEntry[]): Uint8Array {
  const blocks = entries.flatMap(({ name, content, type = "0" }) => {
    const bytes = bytesOf(content);
    const header = Buffer.alloc(512);
    header.write(name, 0, 100);
    header.write("0000644\0", 100);
    header.write(`${bytes.byteLength.toString(8).padStart(11, "0")}\0`, 124);
    header.write("        ", 148);
    header.write(type, 156);
    header.write("ustar\x0000", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    const padding = Buffer.alloc((512 - (bytes.byteLength % 512)) % 512);
    return [header, Buffer.from(bytes), padding];
  });
  return new Uint8Array(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

/** `mode`: of Unix, such as 0o120777 for a link. */
export function zipOf(
  entries: readonly (ArchiveEntry & { readonly mode?: number; readonly flags?: number })[],
  { stores = false }: { readonly stores?: boolean } = {},
): Uint8Array {
  const local: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, content, mode = 0o100_644, flags = 0 } of entries) {
    const bytes = bytesOf(content);
    const packed = stores ? Buffer.from(bytes) : deflateRawSync(bytes);
    const title = Buffer.from(name);
    const header = Buffer.alloc(30);
    header.writeUInt32LE(0x04034b50, 0);
    header.writeUInt16LE(flags, 6);
    header.writeUInt16LE(stores ? 0 : 8, 8);
    header.writeUInt32LE(packed.byteLength, 18);
    header.writeUInt32LE(bytes.byteLength, 22);
    header.writeUInt16LE(title.byteLength, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(0x0314, 4);
    entry.writeUInt16LE(flags, 8);
    entry.writeUInt16LE(stores ? 0 : 8, 10);
    entry.writeUInt32LE(packed.byteLength, 20);
    entry.writeUInt32LE(bytes.byteLength, 24);
    entry.writeUInt16LE(title.byteLength, 28);
    entry.writeUInt32LE((mode << 16) >>> 0, 38);
    entry.writeUInt32LE(at, 42);
    local.push(header, title, packed);
    directory.push(entry, title);
    at += 30 + title.byteLength + packed.byteLength;
  }
  const whole = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(whole.byteLength, 12);
  end.writeUInt32LE(at, 16);
  return new Uint8Array(Buffer.concat([...local, whole, end]));
}
