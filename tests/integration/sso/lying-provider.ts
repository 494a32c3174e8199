// An identity provider of our own that signs with real keys and can lie in every field.
import { exportJWK, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from "jose";

type Key = Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];

/** What one sign-in comes out as; everything may be bent by a test. */
export interface Lie {
  /** Replaced or, when undefined, removed from the id token. */
  claims?: Record<string, unknown>;
  /** Default: the key in the key set, ES256. */
  sign?: (claims: Record<string, unknown>, provider: LyingProvider) => Promise<string> | string;
  userinfo?: Record<string, unknown>;
  /** Merged into the response of the token endpoint. */
  answer?: Record<string, unknown>;
  /** Also gives refresh tokens, each of which works once. */
  refreshes?: boolean;
}

/** What the token endpoint was asked. */
export interface TokenRequest {
  readonly authorization: string | null;
  readonly form: URLSearchParams;
}

export const clientId = "sluice";
/** Found nowhere but where it is stored encrypted and where it is sent to. */
export const clientSecret = "canary-secret:with/strange+characters and ü";

export class LyingProvider {
  lie: Lie = {};
  /** Milliseconds since the Unix epoch. */
  now: () => number = Date.now;
  /** Merged into the discovery document. */
  document: Record<string, unknown> = {};
  /** Responds instead of the provider where it returns something. */
  intercept: (path: string) => Response | Promise<Response> | null = () => null;
  /** Paths asked for, in order. */
  readonly asked: string[] = [];
  readonly tokenRequests: TokenRequest[] = [];
  readonly #codes = new Map<string, URLSearchParams>();
  readonly #refreshTokens = new Set<string>();
  #keys: { jwk: JWK; key: Key }[] = [];
  readonly #server: Bun.Server<undefined>;

  private constructor() {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      development: false,
      fetch: (request) => this.#answer(request),
    });
  }

  static async start(): Promise<LyingProvider> {
    const provider = new LyingProvider();
    await provider.rotateKeys("first");
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  get signing() {
    return this.#keys[0]!;
  }

  /** From now on only this key is published and signs. */
  async rotateKeys(kid: string): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwk = { ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" };
    this.#keys = [{ jwk, key: privateKey }];
  }

  /** Publishes one more key, which signs nothing, without ids on any of them. */
  async publishWithoutIds(): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    this.#keys.push({ jwk: await exportJWK(publicKey), key: privateKey });
    this.#keys = this.#keys.map(({ jwk: { kid: _, ...jwk }, key }) => ({ jwk, key }));
  }

  /** What the person's browser is sent back with after having agreed at the address. */
  agree(url: string): URLSearchParams {
    const asked = new URL(url).searchParams;
    const code = `canary-code-${crypto.randomUUID()}`;
    this.#codes.set(code, asked);
    return new URLSearchParams({ code, state: asked.get("state") ?? "" });
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    this.asked.push(pathname);
    const other = await this.intercept(pathname);
    if (other !== null) return other;
    switch (pathname) {
      case "/.well-known/openid-configuration":
        return Response.json({ ...this.#plainDocument(), ...this.document });
      case "/keys":
        return Response.json({ keys: this.#keys.map(({ jwk }) => jwk) });
      case "/token":
        return await this.#token(request);
      case "/userinfo":
        return Response.json(this.lie.userinfo ?? { sub: "subject-1" });
      default:
        return new Response("nothing here", { status: 404 });
    }
  }

  #plainDocument() {
    const { issuer } = this;
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      userinfo_endpoint: `${issuer}/userinfo`,
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
    };
  }

  async #token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    this.tokenRequests.push({ authorization: request.headers.get("authorization"), form });
    const code = form.get("code") ?? "";
    const asked = this.#codes.get(code);
    const refuse = (error: string, status = 400) =>
      Response.json({ error, error_description: `${error} of ${code}` }, { status });
    if (!isClient(request.headers.get("authorization"), form)) return refuse("invalid_client", 401);
    if (form.get("grant_type") === "refresh_token") {
      if (!this.#refreshTokens.delete(form.get("refresh_token") ?? ""))
        return refuse("invalid_grant");
      return await this.#give("");
    }
    if (asked === undefined || !this.#codes.delete(code)) return refuse("invalid_grant");
    if (asked.get("redirect_uri") !== form.get("redirect_uri")) return refuse("invalid_grant");
    const verifier = form.get("code_verifier") ?? "";
    const challenge = new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
    if (asked.get("code_challenge") !== challenge) return refuse("invalid_grant");
    return await this.#give(asked.get("nonce") ?? "");
  }

  async #give(nonce: string): Promise<Response> {
    const id_token = await this.#sign(nonce);
    const tokens = { access_token: "canary-access-token", token_type: "Bearer", id_token };
    const more: Record<string, unknown> = {};
    if (this.lie.refreshes === true) {
      more["refresh_token"] = `canary-refresh-${crypto.randomUUID()}`;
      this.#refreshTokens.add(String(more["refresh_token"]));
    }
    return Response.json({ ...tokens, ...more, ...this.lie.answer });
  }

  async #sign(nonce: string): Promise<string> {
    const now = Math.floor(this.now() / 1000);
    const claims: Record<string, unknown> = {
      iss: this.issuer,
      aud: clientId,
      sub: "subject-1",
      iat: now,
      exp: now + 300,
      nonce,
      email: "ann@example.com",
      email_verified: true,
      name: "Ann",
      ...this.lie.claims,
    };
    for (const [name, value] of Object.entries(claims))
      if (value === undefined) delete claims[name];
    return await (this.lie.sign ?? signProperly)(claims, this);
  }
}

function isClient(authorization: string | null, form: URLSearchParams): boolean {
  if (authorization === null) {
    const secret = form.get("client_secret");
    return form.get("client_id") === clientId && (secret === null || secret === clientSecret);
  }
  const [id = "", secret = ""] = atob(authorization.replace("Basic ", ""))
    .split(":")
    .map((part) => new URLSearchParams(`x=${part}`).get("x") ?? "");
  return id === clientId && secret === clientSecret;
}

export async function signProperly(
  claims: Record<string, unknown>,
  { signing: { jwk, key } }: LyingProvider,
): Promise<string> {
  const header = { alg: "ES256", ...(jwk.kid === undefined ? {} : { kid: jwk.kid }) };
  return await new SignJWT(claims).setProtectedHeader(header).sign(key);
}

/** It has no signature. */
export const signNothing = (claims: Record<string, unknown>) => new UnsecuredJWT(claims).encode();

/** With what the provider publishes as if it were a shared secret: the oldest trick with tokens. */
export async function signWithPublicKey(
  claims: Record<string, unknown>,
  { signing: { jwk } }: LyingProvider,
): Promise<string> {
  const secret = new TextEncoder().encode(JSON.stringify(jwk));
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: "HS256", ...(jwk.kid === undefined ? {} : { kid: jwk.kid }) })
    .sign(secret);
}

/** With the client secret, which the client might leak. */
export async function signWithClientSecret(claims: Record<string, unknown>): Promise<string> {
  const secret = new TextEncoder().encode(clientSecret.padEnd(64));
  return await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(secret);
}

/** With a foreign key that claims to be the provider's, or under an id of its own. */
export const signWithForeignKey =
  (kid?: string) =>
  async (claims: Record<string, unknown>, { signing: { jwk } }: LyingProvider) => {
    const { privateKey } = await generateKeyPair("ES256");
    return await new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: kid ?? jwk.kid ?? "" })
      .sign(privateKey);
  };
