// A client that signs requests as RFC 9421 says, written without the gateway's own code so that mistakes show.
import { createHash, createHmac, type KeyObject, sign } from "node:crypto";

export interface Signing {
  /** Component identifiers as they are serialised, with their values; default method and target URI. */
  readonly components?: readonly (readonly [identifier: string, value: string])[];
  /** What differs from a good signature; undefined leaves a parameter out. */
  readonly parameters?: Readonly<Record<string, string | number | undefined>>;
  /** A text for hmac-sha256, a private key for ed25519. */
  readonly key: string | KeyObject;
  readonly keyId: string;
  readonly label?: string;
}

export const seconds = () => Math.floor(Date.now() / 1000);

/** Header fields of a signed request. */
export function signed({ components = [], parameters = {}, key, keyId, label = "sig" }: Signing) {
  const all = { created: seconds(), keyid: keyId, ...parameters };
  const list = components.map(([identifier]) => identifier).join(" ");
  const rest = Object.entries(all)
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) => `;${name}=${typeof value === "number" ? value : JSON.stringify(value)}`,
    );
  const input = `(${list})${rest.join("")}`;
  const lines = components.map(([identifier, value]) => `${identifier}: ${value}\n`);
  const base = Buffer.from(`${lines.join("")}"@signature-params": ${input}`);
  const value =
    typeof key === "string"
      ? createHmac("sha256", key).update(base).digest()
      : sign(null, base, key);
  return {
    "Signature-Input": `${label}=${input}`,
    Signature: `${label}=:${value.toString("base64")}:`,
  };
}

export const digestOf = (body: string, algorithm = "sha256") =>
  `${algorithm.replace("sha", "sha-")}=:${createHash(algorithm).update(body).digest("base64")}:`;
