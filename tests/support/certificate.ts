// Generates a certificate for localhost: the repository contains nothing that expires.
// @peculiar/x509 needs it, and brings it.
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

/** PEM texts, valid for a day, with further names behind the first. */
export async function selfSigned(
  name = "localhost",
  ...others: readonly string[]
): Promise<{ cert: string; key: string }> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date(now - 3_600_000),
    notAfter: new Date(now + 86_400_000),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.SubjectAlternativeNameExtension(
        [name, ...others].map((value) => ({ type: "dns" as const, value })),
      ),
    ],
  });
  const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey)).toString(
    "base64",
  );
  const lines = der.match(/.{1,64}/g)?.join("\n");
  return {
    cert: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
  };
}
