// ClientHellos of real clients, whole and in pieces, and bytes of other protocols.
import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { connect } from "node:tls";
import { readClientHello } from "../../../src/net/client-hello.ts";
import { Random } from "../../support/random.ts";

/** The first bytes that a TLS client of the runtime sends. */
async function helloOf(options: {
  servername?: string;
  ALPNProtocols?: string[];
  maxVersion?: "TLSv1.2";
}): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      resolve(bytes);
      socket.destroy();
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address() as { port: number };
  const client = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
  client.on("error", () => {});
  const bytes = await promise;
  client.destroy();
  server.close();
  return bytes;
}

const named = await helloOf({ servername: "App.Example.COM", ALPNProtocols: ["h2", "http/1.1"] });
const unnamed = await helloOf({});

/** The same message in records of at most `size` bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const parts: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    parts.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(parts);
}

test("name and protocols are read, the name in lower case", () => {
  expect(readClientHello(named)).toEqual({
    serverName: "app.example.com",
    protocols: ["h2", "http/1.1"],
    offersTls13: true,
  });
});

test("an offer of TLS 1.3 is recognized", async () => {
  expect(readClientHello(unnamed)).toMatchObject({ offersTls13: true });
  const old = await helloOf({ maxVersion: "TLSv1.2" });
  expect(readClientHello(old)).toMatchObject({ offersTls13: false });
});

test("a client may send no name", () => {
  expect(readClientHello(unnamed)).toMatchObject({ serverName: null });
});

test("every beginning needs more bytes, and what follows does not matter", () => {
  for (let length = 0; length < named.length; length++)
    expect(readClientHello(named.subarray(0, length))).toBe("incomplete");
  const more = Buffer.concat([named, Buffer.from("anything")]);
  expect(readClientHello(more)).toMatchObject({ serverName: "app.example.com" });
});

test.each([[1], [3], [7], [100], [500]])(
  "spread over records of %i bytes it is read the same",
  (size) => {
    const bytes = inRecords(named, size);
    expect(readClientHello(bytes)).toMatchObject({ serverName: "app.example.com" });
    for (let length = 0; length < bytes.length; length++)
      expect(readClientHello(bytes.subarray(0, length))).toBe("incomplete");
  },
);

describe("is rejected", () => {
  test.each([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n")],
    ["SSH", Buffer.from("SSH-2.0-OpenSSH_9.2\r\n")],
    ["SSL 2", Buffer.from([0x80, 0x2e, 1, 0, 2])],
    ["an alert", Buffer.from([21, 3, 1, 0, 2, 2, 40])],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    ["a record that is too long", Buffer.from([22, 3, 1, 0xff, 0xff])],
    ["a ServerHello", Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0])],
    ["a message that is too long", Buffer.from([22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff])],
    ["a message with nothing in it", Buffer.from([22, 3, 1, 0, 4, 1, 0, 0, 0])],
  ])("%s", (_, bytes) => {
    expect(readClientHello(bytes)).toBe("invalid");
  });

  test.each([["a\0b.test"], ["a b"], [".."], ["-x"], ["a\r\nb"]])("the name %j", (name) => {
    const at = named.indexOf("App.Example.COM");
    const changed = Buffer.from(named);
    changed.write(name.padEnd(15, "\0"), at, "latin1");
    expect(readClientHello(changed)).toBe("invalid");
  });
});

describe("a duplicate is rejected, as servers differ in which one they read", () => {
  const u16 = (value: number) => Buffer.from([value >> 8, value & 255]);
  const sized = (bytes: Buffer) => Buffer.concat([u16(bytes.length), bytes]);
  const nameOf = (host: string) => Buffer.concat([Buffer.of(0), sized(Buffer.from(host))]);
  const extension = (type: number, ...items: Buffer[]) =>
    Buffer.concat([u16(type), sized(sized(Buffer.concat(items)))]);
  const helloWith = (...extensions: Buffer[]) => {
    const random = Buffer.concat([Buffer.of(3, 3), Buffer.alloc(32)]);
    const rest = Buffer.from([0, 0, 2, 0x13, 1, 1, 0]);
    const body = Buffer.concat([random, rest, sized(Buffer.concat(extensions))]);
    const message = Buffer.concat([Buffer.of(1, 0), sized(body)]);
    return Buffer.concat([Buffer.of(22, 3, 1), sized(message)]);
  };
  const [open, secret] = [nameOf("open.test"), nameOf("secret.test")];
  const h2 = Buffer.from("\x02h2");

  test.each([
    ["two names", helloWith(extension(0, open, secret))],
    ["two extensions with names", helloWith(extension(0, open), extension(0, secret))],
    ["two lists of protocols", helloWith(extension(16, h2), extension(16, h2))],
  ])("%s", (_, bytes) => {
    expect(readClientHello(helloWith(extension(0, open)))).toMatchObject({
      serverName: "open.test",
    });
    expect(readClientHello(bytes)).toBe("invalid");
  });
});

test("no change of bytes throws, and only names that are host names come out", () => {
  const random = new Random(5);
  for (let round = 0; round < 20_000; round++) {
    const bytes = Buffer.from(named);
    for (let change = random.between(1, 6); change > 0; change--)
      bytes[random.between(0, bytes.length)] = random.between(0, 256);
    const result = readClientHello(bytes.subarray(0, random.between(0, bytes.length + 1)));
    if (typeof result !== "string" && result.serverName !== null)
      expect(result.serverName).toMatch(/^[a-z0-9_.-]+$/);
  }
});
