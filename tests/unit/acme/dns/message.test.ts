// DNS messages and their signatures: malformed messages and signatures with other keys are rejected.
import { expect, test } from "bun:test";
import {
  classes,
  queryMessage,
  readMessage,
  recordTypes,
  txtBytes,
  updateMessage,
} from "../../../../src/acme/dns/dns-message.ts";
import { requireSignature, signMessage, type TsigKey } from "../../../../src/acme/dns/tsig.ts";

const key: TsigKey = { name: "key", algorithm: "hmac-sha256", secret: Buffer.from("secret") };
const NOW = Date.UTC(2026, 0, 2);

const update = updateMessage(7, "example.com", [
  { name: "a.example.com", type: recordTypes.TXT, class: classes.IN, ttl: 60, data: txtBytes("x") },
]);

test("an update has the wire format", () => {
  expect(update.toString("hex")).toBe(
    [
      "0007 2800 0001 0000 0001 0000",
      "07 6578616d706c65 03 636f6d 00 0006 0001",
      "01 61 07 6578616d706c65 03 636f6d 00 0010 0001 0000003c 0002 01 78",
    ]
      .join("")
      .replaceAll(" ", ""),
  );
});

test("texts are cut into pieces of 255 bytes", () => {
  expect([...txtBytes("")]).toEqual([0]);
  expect(txtBytes("a".repeat(300)).length).toBe(302);
});

test.each([
  { why: "nothing", bytes: Buffer.alloc(0) },
  { why: "half a head", bytes: Buffer.alloc(5) },
  { why: "an answer that is not there", bytes: Buffer.from("000780000000000100000000", "hex") },
  {
    why: "a name that points at itself",
    bytes: Buffer.from("000780000001000000000000c00c00060001", "hex"),
  },
  {
    why: "a record longer than the message",
    bytes: Buffer.from(
      "00078000000000010000000000 0010 0001 00000000 ffff".replaceAll(" ", ""),
      "hex",
    ),
  },
])("$why is rejected as malformed", ({ bytes }) => {
  expect(() => readMessage(bytes)).toThrow("response of the name server is malformed");
});

test("a name that is too long is rejected before it is sent", () => {
  expect(() => queryMessage(1, `${"a".repeat(64)}.com`, recordTypes.SOA)).toThrow("too long");
});

/** As a server would sign: over the MAC of the request too, which a request has none of. */
const verify = (bytes: Buffer, mac: Buffer, with_ = key) =>
  requireSignature({ bytes, message: readMessage(bytes) }, { key: with_, mac });

test("a response without a signature, or signed with another key, is rejected", () => {
  const { bytes, mac } = signMessage(update, key, NOW);
  expect(() => verify(update, mac)).toThrow("did not sign");
  // Signed with the right key, but not as the response to this request: the request echoed.
  expect(() => verify(bytes, mac)).toThrow("signature of the name server's response is invalid");
  expect(() => verify(bytes, mac, { ...key, secret: Buffer.from("other") })).toThrow("is invalid");
});
