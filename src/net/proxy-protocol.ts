// The PROXY protocol, versions 1 and 2: a header with the client's address before its first byte; knows no socket.
import { ipv4Value, normalizeAddress, readIpv6 } from "./address.ts";

/** The two ends of a connection as the first proxy saw them. */
export interface ProxiedEnds {
  readonly source: { readonly address: string; readonly port: number };
  readonly destination: { readonly address: string; readonly port: number };
}

/**
 * The result of parsing the first bytes. `ends` null: the proxy's own connection (LOCAL, UNKNOWN), so the socket's address
 * counts. `bytes`: length of the header, after which the client's bytes begin.
 */
export type ProxyHeader =
  | { readonly kind: "header"; readonly ends: ProxiedEnds | null; readonly bytes: number }
  | { readonly kind: "incomplete" }
  | { readonly kind: "invalid"; readonly reason: string };

/** Longest line of version 1 with its CRLF (section 2.1 of the specification). */
const MAX_V1_BYTES = 107;
/** Longest version 2 header that is accepted: addresses and a few TLVs. */
const MAX_V2_BYTES = 1024;
const SIGNATURE = Buffer.from([13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]);
const V2_FIXED_BYTES = 16;
const LINE_START = Buffer.from("PROXY ");

const isIPv4 = (text: string) => ipv4Value(text) >= 0;
const isIPv6 = (text: string) => readIpv6(text, new Uint16Array(8));

const incomplete: ProxyHeader = { kind: "incomplete" };
const invalid = (reason: string): ProxyHeader => ({ kind: "invalid", reason });

/** Reads either version from the first bytes of a connection. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (startsLike(bytes, SIGNATURE)) {
    return bytes.length < V2_FIXED_BYTES ? incomplete : readV2(bytes);
  }
  if (startsLike(bytes, LINE_START)) return readV1(bytes);
  return invalid("the connection does not begin with a PROXY header");
}

/** Whether bytes are the beginning of `start`, or begin with it. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

function readV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MAX_V1_BYTES).indexOf("\r\n");
  if (end < 0)
    return bytes.length >= MAX_V1_BYTES ? invalid("the PROXY line is too long") : incomplete;
  const words = bytes.toString("latin1", 0, end).split(" ");
  const [, family, source = "", destination = "", sourcePort = "", destinationPort = ""] = words;
  if (family === "UNKNOWN") return { kind: "header", ends: null, bytes: end + 2 };
  const isAddress = family === "TCP4" ? isIPv4 : family === "TCP6" ? isIPv6 : null;
  if (isAddress === null || words.length !== 6) return invalid("the PROXY line is malformed");
  if (!isAddress(source) || !isAddress(destination))
    return invalid("the PROXY line holds an address that is not valid");
  if (!isPort(sourcePort) || !isPort(destinationPort))
    return invalid("the PROXY line holds a port that is not valid");
  return {
    kind: "header",
    ends: {
      source: { address: normalizeAddress(source) ?? source, port: Number(sourcePort) },
      destination: {
        address: normalizeAddress(destination) ?? destination,
        port: Number(destinationPort),
      },
    },
    bytes: end + 2,
  };
}

/** Decimal without leading zeros, 0 to 65535. */
const isPort = (text: string) => /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;

function readV2(bytes: Buffer): ProxyHeader {
  const [versionAndCommand, familyAndProtocol] = [bytes.readUInt8(12), bytes.readUInt8(13)];
  if (versionAndCommand >> 4 !== 2) return invalid("the PROXY header has an unknown version");
  const command = versionAndCommand & 15;
  if (command > 1) return invalid("the PROXY header has an unknown command");
  const length = V2_FIXED_BYTES + bytes.readUInt16BE(14);
  if (length > MAX_V2_BYTES) return invalid("the PROXY header is too long");
  if (bytes.length < length) return incomplete;
  if (command === 0) return { kind: "header", ends: null, bytes: length };
  const family = familyAndProtocol >> 4;
  const addressBytes = family === 1 ? 4 : family === 2 ? 16 : 0;
  // Unspecified and unix sockets have no address for rules.
  if (addressBytes === 0) return { kind: "header", ends: null, bytes: length };
  const body = bytes.subarray(V2_FIXED_BYTES, length);
  if (body.length < addressBytes * 2 + 4) return invalid("the PROXY header is too short");
  const ends = {
    source: {
      address: addressOf(body.subarray(0, addressBytes)),
      port: body.readUInt16BE(addressBytes * 2),
    },
    destination: {
      address: addressOf(body.subarray(addressBytes, addressBytes * 2)),
      port: body.readUInt16BE(addressBytes * 2 + 2),
    },
  };
  return { kind: "header", ends, bytes: length };
}

function addressOf(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, index) =>
    (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16),
  );
  const text = groups.join(":");
  return normalizeAddress(text) ?? text;
}

/** The header that announces `ends` to a target; null: the gateway's own connection. */
export function writeProxyHeader(version: "v1" | "v2", ends: ProxiedEnds | null): Buffer {
  return version === "v1" ? writeV1(ends) : writeV2(ends);
}

function writeV1(ends: ProxiedEnds | null): Buffer {
  if (ends === null) return Buffer.from("PROXY UNKNOWN\r\n");
  const { source, destination } = ends;
  const isV4 = isIPv4(source.address) && isIPv4(destination.address);
  const [from, to] = isV4
    ? [source.address, destination.address]
    : [asIpv6(source.address), asIpv6(destination.address)];
  const family = isV4 ? "TCP4" : "TCP6";
  return Buffer.from(`PROXY ${family} ${from} ${to} ${source.port} ${destination.port}\r\n`);
}

function writeV2(ends: ProxiedEnds | null): Buffer {
  if (ends === null) return Buffer.concat([SIGNATURE, Buffer.from([0x20, 0, 0, 0])]);
  const { source, destination } = ends;
  const isV4 = isIPv4(source.address) && isIPv4(destination.address);
  const toBytes = isV4 ? ipv4Bytes : (address: string) => ipv6Bytes(asIpv6(address));
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(source.port, 0);
  ports.writeUInt16BE(destination.port, 2);
  const body = Buffer.concat([toBytes(source.address), toBytes(destination.address), ports]);
  const fixed = Buffer.from([0x21, isV4 ? 0x11 : 0x21, 0, body.length]);
  return Buffer.concat([SIGNATURE, fixed, body]);
}

/** An IPv4 address beside an IPv6 one is written as mapped (RFC 4291 section 2.5.5.2). */
const asIpv6 = (address: string) => (isIPv4(address) ? `::ffff:${address}` : address);

const ipv4Bytes = (address: string) => Buffer.from(address.split(".").map(Number));

function ipv6Bytes(address: string): Buffer {
  const groups = new Uint16Array(8);
  readIpv6(address.split("%")[0] ?? "", groups);
  const bytes = Buffer.alloc(16);
  for (const [index, group] of groups.entries()) bytes.writeUInt16BE(group, index * 2);
  return bytes;
}
