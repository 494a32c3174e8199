// An issuer of tokens on a real socket that a test controls: publishes keys, fails, lies, and counts who asks.
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

export interface SigningKey {
  readonly id: string;
  readonly algorithm: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

/** A key pair; `jwk` is its public half as it is published. */
export async function createKey(algorithm: string, id: string): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: id, alg: algorithm, use: "sig" };
  return { id, algorithm, privateKey, jwk };
}

export interface TokenParts {
  /** What differs from a good token; undefined leaves a claim out. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
}

const seconds = () => Math.floor(Date.now() / 1000);

/** Signed, valid for five minutes, unless the parts say otherwise. */
export function signToken(
  key: Pick<SigningKey, "id" | "algorithm"> & { readonly privateKey: CryptoKey | Uint8Array },
  { claims = {}, header = {} }: TokenParts = {},
): Promise<string> {
  const payload = { iss: "https://issuer.test", sub: "user-1", exp: seconds() + 300, ...claims };
  return new SignJWT(JSON.parse(JSON.stringify(payload)) as Record<string, unknown>)
    .setProtectedHeader({
      ...(JSON.parse(JSON.stringify({ alg: key.algorithm, kid: key.id, ...header })) as {
        alg: string;
      }),
    })
    .sign(key.privateKey);
}

export class Issuer {
  /** What is published. */
  keys: readonly JWK[] = [];
  /** The response in the place of the keys. */
  answer: (() => Response | Promise<Response>) | null = null;
  /** What the discovery document says beside the truth. */
  lies: Readonly<Record<string, unknown>> = {};
  /** Paths that were asked for. */
  readonly asked: string[] = [];
  readonly #server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => this.#respond(new URL(request.url).pathname),
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  get keysUrl(): string {
    return `${this.url}/keys`;
  }

  /** How often the keys were asked for. */
  get fetches(): number {
    return this.asked.filter((path) => path === "/keys").length;
  }

  #respond(path: string): Response | Promise<Response> {
    this.asked.push(path);
    if (path === "/.well-known/openid-configuration")
      return Response.json({ issuer: this.url, jwks_uri: this.keysUrl, ...this.lies });
    return this.answer?.() ?? Response.json({ keys: this.keys });
  }

  stop(): Promise<void> {
    return this.#server.stop(true);
  }
}
