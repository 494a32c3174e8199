// Headers of the PROXY protocol: written ones are read back, and other bytes are rejected at the first invalid byte.
import { describe, expect, test } from "bun:test";
import { readProxyHeader, writeProxyHeader } from "../../../src/net/proxy-protocol.ts";

const ends = (source: string, destination: string) => ({
  source: { address: source, port: 50_000 },
  destination: { address: destination, port: 443 },
});

describe.each([["v1"], ["v2"]] as const)("%s", (version) => {
  test.each([
    ["192.0.2.1", "198.51.100.7"],
    ["2001:db8::1", "2001:db8::2"],
    ["::1", "::"],
    ["2001:db8:0:0:1:2:3:4", "fe80::1"],
  ])("what is written for %s is read back", (source, destination) => {
    const header = writeProxyHeader(version, ends(source, destination));
    const read = readProxyHeader(Buffer.concat([header, Buffer.from("GET / HTTP/1.1\r\n")]));
    if (read.kind !== "header" || read.ends === null) throw new Error(JSON.stringify(read));
    expect(read.bytes).toBe(header.length);
    expect(read.ends.source.port).toBe(50_000);
    expect(read.ends.destination.port).toBe(443);
    // The same address in another spelling is the same bytes again.
    expect(writeProxyHeader(version, read.ends).equals(writeProxyHeader(version, read.ends))).toBe(
      true,
    );
    expect(readProxyHeader(writeProxyHeader("v2", read.ends))).toMatchObject({ ends: read.ends });
  });

  test("every beginning of a header needs more bytes", () => {
    const header = writeProxyHeader(version, ends("192.0.2.1", "198.51.100.7"));
    for (let length = 0; length < header.length; length++)
      expect(readProxyHeader(header.subarray(0, length))).toEqual({ kind: "incomplete" });
  });

  test("a LOCAL header contains no addresses", () => {
    const header = writeProxyHeader(version, null);
    expect(readProxyHeader(header)).toEqual({ kind: "header", ends: null, bytes: header.length });
  });

  test("an IPv4 client of an IPv6 address is written as mapped", () => {
    const read = readProxyHeader(writeProxyHeader(version, ends("192.0.2.1", "2001:db8::1")));
    expect(read).toMatchObject({ kind: "header", ends: { source: { address: "192.0.2.1" } } });
  });
});

test("version 1 is as in the specification", () => {
  const text = "PROXY TCP4 192.0.2.1 198.51.100.7 50000 443\r\n";
  expect(String(writeProxyHeader("v1", ends("192.0.2.1", "198.51.100.7")))).toBe(text);
});

describe("is rejected", () => {
  test.each([
    ["no header", "GET / HTTP/1.1\r\n\r\n"],
    ["TLS", "\x16\x03\x01"],
    ["lower case", "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n"],
    ["an unknown family", "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"],
    ["a word too few", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"],
    ["a word too many", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n"],
    ["two spaces", "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n"],
    ["an address that is none", "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n"],
    ["an address of the other family", "PROXY TCP4 ::1 ::1 1 2\r\n"],
    ["a name", "PROXY TCP4 localhost 1.2.3.4 1 2\r\n"],
    ["a port that is none", "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n"],
    ["a port with a sign", "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n"],
    ["a port with a leading zero", "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n"],
    ["a line without end", `PROXY TCP4 ${"1".repeat(120)}`],
  ])("%s", (_, text) => {
    expect(readProxyHeader(Buffer.from(text, "latin1")).kind).toBe("invalid");
  });

  const v2 = (bytes: number[], body = Buffer.alloc(0)) =>
    Buffer.concat([Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1"), Buffer.from(bytes), body]);

  test.each([
    ["version 1 in binary", v2([0x11, 0x11, 0, 12], Buffer.alloc(12))],
    ["an unknown command", v2([0x22, 0x11, 0, 12], Buffer.alloc(12))],
    ["addresses that are cut off", v2([0x21, 0x11, 0, 4], Buffer.alloc(4))],
    ["IPv6 with the length of IPv4", v2([0x21, 0x21, 0, 12], Buffer.alloc(12))],
    ["an oversized one", v2([0x21, 0x11, 0xff, 0xff])],
  ])("%s", (_, bytes) => {
    expect(readProxyHeader(bytes).kind).toBe("invalid");
  });

  test("not for TLVs after the addresses: they are skipped", () => {
    const bytes = v2(
      [0x21, 0x11, 0, 15],
      Buffer.concat([Buffer.alloc(12), Buffer.from([4, 0, 0])]),
    );
    expect(readProxyHeader(bytes)).toMatchObject({ kind: "header", bytes: 31 });
  });

  test("a unix socket has no addresses", () => {
    const bytes = v2([0x21, 0x31, 0, 216], Buffer.alloc(216));
    expect(readProxyHeader(bytes)).toMatchObject({ kind: "header", ends: null });
  });
});
