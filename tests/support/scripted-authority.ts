// A scripted CA: accepts orders without a challenge, suggests renewal times, rejects on demand.
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { Authority } from "./authority.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;
const URN = "urn:ietf:params:acme:error:";

export interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly detail?: string;
  readonly headers?: Record<string, string>;
}

interface Order {
  readonly names: readonly string[];
  status: string;
  chain: string;
}

export class ScriptedAuthority {
  /** Payloads of new orders. */
  readonly orders: Record<string, unknown>[] = [];
  /** Payloads of new accounts. */
  readonly accounts: Record<string, unknown>[] = [];
  /** Certificates of revocation requests. */
  readonly revoked: string[] = [];
  /** Certificate ids of requests for renewal information. */
  readonly asked: string[] = [];
  /** Responses to the next new orders, before any is accepted. */
  readonly refusals: Refusal[] = [];
  /** Days that certificates live. */
  lifeDays = 90;
  /** How far its clock is behind. */
  behindMs = 0;
  /** A name that it omits from certificates. */
  forgotten = "";
  /** Renewal information; null: not supported. */
  renewal: { start: string; end: string } | null = null;
  renewalRetryAfter = "21600";
  /** Awaited before an account is registered. */
  accountGate: Promise<void> = Promise.resolve();
  /** Awaited before an order is accepted. */
  gate: Promise<void> = Promise.resolve();
  /** Awaited between the head and the end of the response to a new order; null: the response is sent at once. */
  bodyGate: Promise<void> | null = null;
  /** Awaited before a certificate is issued. */
  issueGate: Promise<void> = Promise.resolve();
  /** PEM of the CA of its own certificate. */
  readonly trusted: string;
  readonly #server: ReturnType<typeof Bun.serve>;
  readonly #keys: CryptoKeyPair;
  readonly #now: () => number;
  readonly #orders: Order[] = [];
  #serial = 0;

  private constructor(parts: {
    readonly keys: CryptoKeyPair;
    readonly now: () => number;
    readonly trusted: string;
    readonly tls: { readonly cert: string; readonly key: string };
  }) {
    this.#keys = parts.keys;
    this.#now = parts.now;
    this.trusted = parts.trusted;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: parts.tls,
      fetch: (request) => this.#answer(request),
    });
  }

  /** `now`: the start of validity of certificates. */
  static async start(now: () => number, name = "scripted"): Promise<ScriptedAuthority> {
    const own = await Authority.create(`${name} authority`);
    const tls = await own.sign({ addresses: ["127.0.0.1"] });
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    return new ScriptedAuthority({ keys, now, trusted: own.cert, tls });
  }

  get directoryUrl(): string {
    return `${this.#url}/directory`;
  }

  get #url(): string {
    return `https://127.0.0.1:${this.#server.port}`;
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const [, what = "", id = ""] = pathname.split("/");
    if (what === "directory") return Response.json(this.#directory());
    if (what === "nonce") return new Response(null, { headers: nonce() });
    if (what === "renewal") return this.#tellRenewal(id);
    const { payload } = (await request.json()) as { payload: string };
    const text = Buffer.from(payload, "base64url").toString();
    const data = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
    switch (what) {
      case "account":
        this.accounts.push(data);
        await this.accountGate;
        return reply({ status: "valid" }, { location: `${this.#url}/account/1` });
      case "new-order":
        return await this.#takeOrder(data);
      case "order":
        return reply(this.#view(Number(id)));
      case "finalize":
        return await this.#finalize(Number(id), String(data["csr"]));
      case "revoke":
        this.revoked.push(String(data["certificate"]));
        return reply({});
      case "chain":
        return new Response(this.#orders[Number(id)]?.chain, { headers: nonce() });
      default:
        return reply({ type: `${URN}malformed` }, {}, 404);
    }
  }

  #directory() {
    const url = this.#url;
    return {
      newNonce: `${url}/nonce`,
      newAccount: `${url}/account`,
      newOrder: `${url}/new-order`,
      revokeCert: `${url}/revoke`,
      ...(this.renewal === null ? {} : { renewalInfo: `${url}/renewal` }),
      meta: {},
    };
  }

  #tellRenewal(id: string): Response {
    this.asked.push(id);
    const headers = { "retry-after": this.renewalRetryAfter };
    return Response.json({ suggestedWindow: this.renewal }, { headers });
  }

  async #takeOrder(data: Record<string, unknown>): Promise<Response> {
    this.orders.push(data);
    await this.gate;
    const refusal = this.refusals.shift();
    if (refusal !== undefined) {
      const { status, type, detail, headers = {} } = refusal;
      return reply({ type: `${URN}${type}`, detail }, headers, status);
    }
    const identifiers = data["identifiers"] as { value: string }[];
    const names = identifiers.map(({ value }) => value);
    const id = this.#orders.push({ names, status: "ready", chain: "" }) - 1;
    const whole = reply(this.#view(id), { location: `${this.#url}/order/${id}` }, 201);
    return this.bodyGate === null ? whole : slowly(whole, this.bodyGate);
  }

  #view(id: number) {
    const url = this.#url;
    const status = this.#orders[id]?.status;
    return {
      status,
      identifiers: [],
      authorizations: [],
      finalize: `${url}/finalize/${id}`,
      ...(status === "valid" ? { certificate: `${url}/chain/${id}` } : {}),
    };
  }

  async #finalize(id: number, csr: string): Promise<Response> {
    await this.issueGate;
    const order = this.#orders[id];
    if (order === undefined) return reply({ type: `${URN}malformed` }, {}, 404);
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr, "base64url"));
    const certificate = await x509.X509CertificateGenerator.create({
      subject: `CN=${order.names[0] ?? ""}`,
      issuer: "CN=scripted",
      serialNumber: `0${++this.#serial}`,
      notBefore: new Date(this.#now() - this.behindMs),
      notAfter: new Date(this.#now() - this.behindMs + this.lifeDays * DAY_MS),
      publicKey: await request.publicKey.export(),
      signingKey: this.#keys.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.SubjectAlternativeNameExtension(
          order.names
            .filter((value) => value !== this.forgotten)
            .map((value) => ({ type: "dns" as const, value })),
        ),
        await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
      ],
    });
    order.chain = `${certificate.toString("pem")}\n`;
    order.status = "valid";
    return reply(this.#view(id));
  }
}

/** The same response with a delayed end. */
function slowly(whole: Response, gate: Promise<void>): Response {
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(" "));
      await gate;
      controller.enqueue(new Uint8Array(await whole.arrayBuffer()));
      controller.close();
    },
  });
  return new Response(body, { status: whole.status, headers: whole.headers });
}

const nonce = () => ({ "replay-nonce": crypto.randomUUID() });

function reply(body: object, headers: Record<string, string> = {}, status = 200): Response {
  const type = status < 400 ? "application/json" : "application/problem+json";
  const all = { "content-type": type, ...nonce(), ...headers };
  return new Response(JSON.stringify(body), { status, headers: all });
}
