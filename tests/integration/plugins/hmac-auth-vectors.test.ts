// The examples of RFC 9421 whose algorithms the gateway has: the same text is signed, and the signatures of the RFC are good.
import { expect, test } from "bun:test";
import { createHmac, verify } from "node:crypto";
import { componentValue, type SignedMessage } from "../../../src/plugins/hmac-auth/components.ts";
import { fitsDigest } from "../../../src/plugins/hmac-auth/digest.ts";
import {
  type MessageSignature,
  readSignatures,
  signatureBase,
} from "../../../src/plugins/hmac-auth/signature.ts";
import { parseItem } from "structured-headers";

const BODY = '{"hello": "world"}';

const message = (
  headers: Readonly<Record<string, string>>,
  { path, query, authority = "example.com" }: { path: string; query: string; authority?: string },
): SignedMessage => ({
  method: "POST",
  scheme: "https",
  authority,
  path,
  query,
  target: query === "" ? path : `${path}?${query}`,
  header: (name) => headers[name] ?? null,
});

/** Appendix B.2. */
const example = message(
  {
    host: "example.com",
    date: "Tue, 20 Apr 2021 02:07:55 GMT",
    "content-type": "application/json",
    "content-digest":
      "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
    "content-length": "18",
  },
  { path: "/foo", query: "param=Value&Pet=dog" },
);

function baseOf(input: string, value: string): { base: string; signature: MessageSignature } {
  const [signature] = readSignatures(input, value) ?? [];
  if (signature === undefined) throw new Error("there is no signature");
  const base = signatureBase(signature, example);
  return { base: Buffer.from(base ?? []).toString("latin1"), signature };
}

test("B.2.5: hmac-sha256", () => {
  const { base, signature } = baseOf(
    'sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"',
    "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:",
  );
  expect(base).toBe(`"date": Tue, 20 Apr 2021 02:07:55 GMT
"@authority": example.com
"content-type": application/json
"@signature-params": ("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`);
  expect(signature).toMatchObject({
    keyId: "test-shared-secret",
    created: 1618884473,
    expires: null,
  });
  const secret = Buffer.from(
    "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==",
    "base64",
  );
  const expected = createHmac("sha256", secret).update(base).digest();
  expect(Buffer.from(signature.value).equals(expected)).toBe(true);
});

test("B.2.6: ed25519", () => {
  const { base, signature } = baseOf(
    'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
    "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
  );
  const key = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=
-----END PUBLIC KEY-----
`;
  expect(verify(null, Buffer.from(base), key, signature.value)).toBe(true);
});

test("B.2: the digest of the body", () => {
  const digest = example.header("content-digest") ?? "";
  expect(fitsDigest(digest, Buffer.from(BODY))).toBe(true);
  expect(fitsDigest(digest, Buffer.from(`${BODY} `))).toBe(false);
});

test.each([
  // Section 2.1
  ['"x-ows-header"', "Leading and trailing whitespace."],
  ['"cache-control"', "max-age=60, must-revalidate"],
  ['"x-empty-header"', ""],
  // Section 2.1.2
  ['"example-dict";key="a"', "1"],
  ['"example-dict";key="d"', "?1"],
  ['"example-dict";key="b"', "2;x=1;y=2"],
  ['"example-dict";key="c"', "(a b c)"],
  // Section 2.2
  ['"@method"', "POST"],
  ['"@target-uri"', "https://www.example.com/path?param=value&foo=bar&baz=batman&qux="],
  ['"@authority"', "www.example.com"],
  ['"@scheme"', "https"],
  ['"@request-target"', "/path?param=value&foo=bar&baz=batman&qux="],
  ['"@path"', "/path"],
  ['"@query"', "?param=value&foo=bar&baz=batman&qux="],
  // Section 2.2.8
  ['"@query-param";name="baz"', "batman"],
  ['"@query-param";name="qux"', ""],
  ['"@query-param";name="param"', "value"],
])("section 2: %s", (identifier, value) => {
  const request = message(
    {
      "x-ows-header": "  Leading and trailing whitespace.  ",
      "cache-control": "max-age=60, must-revalidate",
      "x-empty-header": "",
      "example-dict": " a=1,    b=2;x=1;y=2,   c=(a   b   c), d ",
    },
    // Ports that the scheme implies, and capitals, do not count.
    {
      path: "/path",
      query: "param=value&foo=bar&baz=batman&qux=",
      authority: "WWW.Example.com:443",
    },
  );
  expect(componentValue(parseItem(identifier), request)).toBe(value);
});

test.each([
  ["var", "this%20is%20a%20big%0Amultiline%20value"],
  ["bar", "with%20plus%20whitespace"],
  ["fa%C3%A7ade%22%3A%20", "something"],
])("section 2.2.8: parameters are encoded anew: %s", (name, value) => {
  const query =
    "var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something";
  const request = message({}, { path: "/parameters", query });
  expect(componentValue(parseItem(`"@query-param";name="${name}"`), request)).toBe(value);
});
