// A data plane with the plugin jwt, three keys that it knows, and consumers with keys of their own.
import { afterAll, beforeAll } from "bun:test";
import { createPublicKey } from "node:crypto";
import { pluginScene, type PluginScene, type SceneAnswer } from "../../support/plugin-scene.ts";
import { createKey, type SigningKey, signToken, type TokenParts } from "./issuer.ts";

export const SECRET = "a shared secret of forty characters.....";

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
export const seconds = () => Math.floor(Date.now() / 1000);

interface Made {
  readonly scene: PluginScene;
  readonly rsa: SigningKey;
  readonly ec: SigningKey;
  readonly ed: SigningKey;
  /** Calls itself like `rsa` and is not known. */
  readonly foreign: SigningKey;
  /** Public half of `rsa`. */
  readonly rsaPem: string;
}

export interface JwtScene extends Made {
  /** The plugin with the three keys, and what differs. */
  use(own?: Record<string, unknown>): Promise<void>;
  /** With a token signed by `rsa` or another key. */
  get(parts?: TokenParts, key?: SigningKey): Promise<SceneAnswer>;
}

async function make(): Promise<Made> {
  const [rsa, ec, ed, foreign] = await Promise.all([
    createKey("RS256", "r1"),
    createKey("ES256", "e1"),
    createKey("EdDSA", "d1"),
    createKey("RS256", "r1"),
  ]);
  const rsaPem = createPublicKey({ key: rsa.jwk, format: "jwk" } as never)
    .export({ type: "spki", format: "pem" })
    .toString();
  const ofAlice = { type: "jwt" as const, consumerId: "alice" };
  const symmetric = { ...ofAlice, algorithm: "HS256" as const, secret: SECRET };
  const until = Date.now() + 3_600_000;
  const scene = await pluginScene({
    consumers: [
      { username: "alice", customId: "user-1" },
      { username: "bob" },
      { username: "guest" },
    ],
    credentials: [
      { ...symmetric, identifier: "alice-hs" },
      { ...ofAlice, identifier: "alice-rs", algorithm: "RS256", publicKey: rsaPem },
      { ...symmetric, identifier: "expired", expiresAt: Date.now() - 1 },
      {
        ...symmetric,
        identifier: "rotated",
        secret: "another secret",
        previous: { hash: null, secret: SECRET, until },
      },
    ],
  });
  return { scene, rsa, ec, ed, foreign, rsaPem };
}

/** Starts it before the tests of the file and stops it after them. */
export function useJwt(): JwtScene {
  const holder: { made?: Made } = {};
  beforeAll(async () => {
    holder.made = await make();
  });
  afterAll(() => holder.made?.scene.stop());
  const made = () => holder.made as Made;
  return {
    get scene() {
      return made().scene;
    },
    get rsa() {
      return made().rsa;
    },
    get ec() {
      return made().ec;
    },
    get ed() {
      return made().ed;
    },
    get foreign() {
      return made().foreign;
    },
    get rsaPem() {
      return made().rsaPem;
    },
    use: (own = {}) => {
      const { scene, rsa, ec, ed } = made();
      const jwks = { keys: [rsa.jwk, ec.jwk, ed.jwk] };
      return scene.apply({ plugins: [{ name: "jwt", config: { jwks, ...own } }] });
    },
    get: async (parts = {}, key = made().rsa) =>
      made().scene.get("/x", bearer(await signToken(key, parts))),
  };
}
