// A CA for one test: signs certificates with dates and names of the test's choice.
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

export interface Leaf {
  readonly cert: string;
  readonly key: string;
}

export interface LeafOptions {
  readonly names?: readonly string[];
  readonly addresses?: readonly string[];
  /** Days from now; default one day back. */
  readonly from?: number;
  /** Days from now; default 30. */
  readonly until?: number;
  readonly commonName?: string;
}

export class Authority {
  /** PEM of the CA itself. */
  readonly cert: string;
  readonly #keys: CryptoKeyPair;
  readonly #certificate: x509.X509Certificate;

  private constructor(keys: CryptoKeyPair, certificate: x509.X509Certificate) {
    this.#keys = keys;
    this.#certificate = certificate;
    this.cert = `${certificate.toString("pem")}\n`;
  }

  /** A root CA, or one that another CA has signed. */
  static async create(name: string, parent: Authority | null = null): Promise<Authority> {
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const extensions = [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
    ];
    const dates = {
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + 365 * DAY_MS),
    };
    const certificate = await x509.X509CertificateGenerator.create({
      subject: `CN=${name}`,
      issuer: parent === null ? `CN=${name}` : parent.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: parent === null ? keys.privateKey : parent.#keys.privateKey,
      signingAlgorithm: algorithm,
      extensions,
      ...dates,
    });
    return new Authority(keys, certificate);
  }

  async sign({
    names = [],
    addresses = [],
    from = -1,
    until = 30,
    ...rest
  }: LeafOptions): Promise<Leaf> {
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.create({
      subject: `CN=${rest.commonName ?? names[0] ?? "leaf"}`,
      issuer: this.#certificate.subject,
      notBefore: new Date(Date.now() + from * DAY_MS),
      notAfter: new Date(Date.now() + until * DAY_MS),
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.SubjectAlternativeNameExtension([
          ...names.map((value) => ({ type: "dns" as const, value })),
          ...addresses.map((value) => ({ type: "ip" as const, value })),
        ]),
      ],
    });
    const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
    const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
    return {
      cert: `${certificate.toString("pem")}\n`,
      key: `-----BEGIN PRIVATE KEY-----\n${lines.join("\n")}\n-----END PRIVATE KEY-----\n`,
    };
  }
}
