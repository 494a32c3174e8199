// Certificates that users upload: in any order, with the wrong key, with too many or too few parts.
import { describe, expect, test } from "bun:test";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { ChainError, readChain } from "../../../src/crypto/certificate-chain.ts";
import { Authority } from "../../support/authority.ts";

const root = await Authority.create("Root");
const middle = await Authority.create("Middle", root);
const issuing = await Authority.create("Issuing", middle);
const leaf = await issuing.sign({ names: ["App.test", "*.app.test"] });
const stranger = await Authority.create("Stranger");

const subjectsOf = (pem: string) =>
  (pem.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map(
    (block) => new X509Certificate(block).subject,
  );

describe("a chain", () => {
  test.each([
    ["in order", [leaf.cert, issuing.cert, middle.cert]],
    ["the other way round", [middle.cert, issuing.cert, leaf.cert]],
    ["with its root", [root.cert, leaf.cert, middle.cert, issuing.cert]],
    ["with something else in between", [leaf.cert, stranger.cert, issuing.cert, middle.cert]],
    ["with text around it", [`subject: x\n${leaf.cert}`, "\nnotes\n", issuing.cert, middle.cert]],
    ["twice", [leaf.cert, issuing.cert, middle.cert, leaf.cert, issuing.cert]],
  ])("%s is sorted, without the root", (_, pems) => {
    const chain = readChain(pems.join(""), leaf.key);
    expect(subjectsOf(chain.certificate)).toEqual(["CN=App.test", "CN=Issuing", "CN=Middle"]);
  });

  test("with CRLF is read", () => {
    const chain = readChain(leaf.cert.replaceAll("\n", "\r\n"), leaf.key.replaceAll("\n", "\r\n"));
    expect(subjectsOf(chain.certificate)).toEqual(["CN=App.test"]);
  });

  test("has its names in lower case, its dates, issuer and fingerprint", () => {
    const chain = readChain(leaf.cert, leaf.key);
    expect(chain.names).toEqual(["app.test", "*.app.test"]);
    expect(chain.issuer).toBe("CN=Issuing");
    expect(chain.fingerprint).toMatch(/^[0-9a-f]{64}$/);
    expect(Date.parse(chain.notAfter)).toBeGreaterThan(Date.parse(chain.notBefore));
  });
});

test("keys of every usual form are read", () => {
  for (const type of ["rsa", "ec"] as const) {
    const { privateKey } =
      type === "rsa"
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ec", { namedCurve: "P-384" });
    const forms = ["pkcs8", type === "rsa" ? "pkcs1" : "sec1"] as const;
    for (const form of forms) {
      const pem = privateKey.export({ type: form, format: "pem" } as never).toString();
      // It belongs to no certificate here, which is checked only after it was read.
      expect(() => readChain(leaf.cert, pem)).toThrow("does not belong to the certificate");
    }
  }
});

describe("is rejected, with the field and without the text of the key:", () => {
  const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
  const ed25519 = generateKeyPairSync("ed25519").privateKey;
  const pemOf = (key: typeof weak) => key.export({ type: "pkcs8", format: "pem" }).toString();
  const encrypted = generateKeyPairSync("ec", { namedCurve: "P-256" })
    .privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" })
    .toString();
  test.each([
    ["nothing", "", leaf.key, "certificate", "must hold a PEM certificate"],
    ["a key in its place", leaf.key, leaf.key, "certificate", "must hold a PEM certificate"],
    [
      "broken base64",
      "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
      leaf.key,
      "certificate",
      "certificate 1 cannot be read",
    ],
    ["too many", leaf.cert.repeat(21), leaf.key, "certificate", "at most 20"],
    ["no key", leaf.cert, "", "private_key", "must be a PEM private key"],
    ["a certificate as key", leaf.cert, leaf.cert, "private_key", "must be a PEM private key"],
    [
      "another key",
      leaf.cert,
      pemOf(weak).length > 0 ? issuingKey() : "",
      "private_key",
      "does not belong",
    ],
    ["a key with a passphrase", leaf.cert, encrypted, "private_key", "passphrase"],
    ["a short RSA key", leaf.cert, pemOf(weak), "private_key", "at least 2048 bits"],
    [
      "a kind that browsers do not take",
      leaf.cert,
      pemOf(ed25519),
      "private_key",
      "elliptic-curve",
    ],
    [
      "a damaged key",
      leaf.cert,
      "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LWNhbmFyeQ==\n-----END PRIVATE KEY-----\n",
      "private_key",
      "cannot be read",
    ],
  ])("%s", (_, certificate, key, field, message) => {
    try {
      readChain(certificate, key);
      throw new Error("was accepted");
    } catch (error) {
      expect(error).toBeInstanceOf(ChainError);
      expect((error as ChainError).field).toBe(field as ChainError["field"]);
      expect((error as Error).message).toContain(message);
      expect(`${(error as Error).message} ${String((error as Error).cause)}`).not.toContain(
        "c2VjcmV0",
      );
    }
  });
});

function issuingKey(): string {
  return generateKeyPairSync("ec", { namedCurve: "P-256" })
    .privateKey.export({ type: "pkcs8", format: "pem" })
    .toString();
}
