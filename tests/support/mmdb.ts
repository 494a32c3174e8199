// Writes small MaxMind databases (https://maxmind.github.io/MaxMind-DB/), so that tests need no licensed one.
import ipaddr from "ipaddr.js";

/** Supported record types. */
type Value = string | number | readonly Value[] | { readonly [name: string]: Value };

export interface MmdbOptions {
  /** As `GeoLite2-Country`. */
  readonly type: string;
  /** By network, as `203.0.113.0/24`. None may be part of another. */
  readonly networks: Readonly<Record<string, Value>>;
  /** 4: addresses of 32 bits only; default 6. */
  readonly ipVersion?: 4 | 6;
}

/** Both children: another node, the offset of a record, or nothing. */
type Node = [Child, Child];
type Child = Node | { readonly record: number } | null;

/** A database for `country_db`. */
export const countryDatabase = (countries: Readonly<Record<string, string>>) =>
  mmdb({
    type: "GeoLite2-Country",
    networks: mapValues(countries, (iso_code) => ({
      country: { iso_code, names: { en: iso_code } },
    })),
  });

/** A database for `asn_db`. */
export const asnDatabase = (networks: Readonly<Record<string, number>>) =>
  mmdb({
    type: "GeoLite2-ASN",
    networks: mapValues(networks, (autonomous_system_number) => ({
      autonomous_system_number,
      autonomous_system_organization: `network ${autonomous_system_number}`,
    })),
  });

export function mmdb({ type, networks, ipVersion = 6 }: MmdbOptions): Buffer {
  const root: Node = [null, null];
  const data: Buffer[] = [];
  let length = 0;
  for (const [network, value] of Object.entries(networks)) {
    insert(root, bitsOf(network, ipVersion), length);
    const record = encode(value);
    data.push(record);
    length += record.length;
  }
  const nodes = numbered(root);
  const tree = Buffer.concat([...nodes.keys()].map((node) => encodeNode(node, nodes)));
  const metadata = encode({
    node_count: nodes.size,
    record_size: 24,
    ip_version: ipVersion,
    database_type: type,
    languages: ["en"],
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_700_000_000,
    description: { en: "made by a test" },
  });
  const mark = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");
  return Buffer.concat([tree, Buffer.alloc(16), ...data, mark, metadata]);
}

/** IPv4 networks lie at ::/96 of a tree for both. */
function bitsOf(network: string, ipVersion: 4 | 6): number[] {
  const [address, prefix] = ipaddr.parseCIDR(network);
  const bits = address
    .toByteArray()
    .flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> (7 - bit)) & 1));
  const isShort = address.kind() === "ipv4";
  const before = isShort && ipVersion === 6 ? Array.from({ length: 96 }, () => 0) : [];
  return [...before, ...bits.slice(0, prefix)];
}

function insert(root: Node, bits: readonly number[], record: number): void {
  let node = root;
  for (const [index, bit] of bits.entries()) {
    if (index === bits.length - 1) node[bit] = { record };
    else {
      const child = node[bit];
      const next: Node = Array.isArray(child) ? child : [null, null];
      node[bit] = next;
      node = next;
    }
  }
}

/** All nodes, parents first, with their numbers. */
function numbered(root: Node): Map<Node, number> {
  const nodes = new Map<Node, number>([[root, 0]]);
  for (const node of nodes.keys())
    for (const child of node) if (Array.isArray(child)) nodes.set(child, nodes.size);
  return nodes;
}

function encodeNode(node: Node, nodes: ReadonlyMap<Node, number>): Buffer {
  const bytes = Buffer.alloc(6);
  for (const [side, child] of node.entries()) {
    // The count itself means nothing; records lie behind it and the 16 bytes between tree and data.
    const target = Array.isArray(child)
      ? nodes.get(child)!
      : nodes.size + (child === null ? 0 : 16 + child.record);
    bytes.writeUIntBE(target, side * 3, 3);
  }
  return bytes;
}

const [STRING, UINT32, MAP, ARRAY] = [2, 6, 7, 11];

function encode(value: Value): Buffer {
  if (typeof value === "string") {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(STRING, bytes.length), bytes]);
  }
  if (typeof value === "number") {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return Buffer.concat([control(UINT32, 4), bytes]);
  }
  if (Array.isArray(value))
    return Buffer.concat([control(ARRAY, value.length), ...value.map(encode)]);
  const entries = Object.entries(value);
  return Buffer.concat([
    control(MAP, entries.length),
    ...entries.flatMap(([name, member]) => [encode(name), encode(member)]),
  ]);
}

/** Types from 8 on are written in a second byte, lengths from 29 on in a third. */
function control(type: number, length: number): Buffer {
  if (length > 284) throw new Error("no test needs one that long");
  const size = Math.min(length, 29);
  const bytes = type < 8 ? [(type << 5) | size] : [size, type - 7];
  return Buffer.from(length < 29 ? bytes : [...bytes, length - 29]);
}

const mapValues = <T, R>(record: Readonly<Record<string, T>>, map: (value: T) => R) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
