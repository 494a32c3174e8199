// One account at one CA: the steps of the protocol, one call each; knows no certificate of the gateway and no schedule.
import type { Fetch } from "../dialer/dialer.ts";
import type { Client, Order } from "acme-client";
import { type AcmeAccount, directoryOf } from "../model/acme-account.ts";
import type { ChallengeType } from "../model/certificate.ts";
import { hashToken } from "../crypto/token.ts";
import { type AcmeProblem, AcmeFailure } from "./failure.ts";
import { AcmeTransport } from "./transport.ts";

/** An account with readable secrets. */
export interface OpenedAccount {
  readonly account: AcmeAccount;
  /** PEM. */
  readonly key: string;
  readonly eabKey: string | null;
}

export interface AcmeOrder {
  readonly url: string;
  readonly status: string;
  readonly authorizations: readonly string[];
  readonly finalize: string;
  readonly error?: AcmeProblem;
}

export interface AcmeChallenge {
  readonly type: string;
  readonly url: string;
  readonly status: string;
  readonly token: string;
  readonly error?: AcmeProblem;
}

export interface Authorization {
  readonly url: string;
  readonly status: string;
  readonly identifier: { readonly value: string };
  readonly wildcard?: boolean;
  readonly challenges: readonly AcmeChallenge[];
}

/** Cache of accounts that were found or registered, by key and directory. */
export type KnownAccounts = Map<
  string,
  { readonly url: Promise<string>; /** Of the first caller. */ readonly signal: AbortSignal }
>;

/** Parts of the library that are missing in its types. */
interface InnerClient {
  readonly http: {
    request: AcmeTransport["request"];
    getDirectory(): Promise<Readonly<Record<string, unknown>>>;
    getMetaField(field: string): Promise<unknown>;
    getResourceUrl(name: "keyChange"): Promise<string>;
    getJwk(): object;
    createSignedBody(url: string, payload: object): object;
  };
  readonly api: { accountUrl: string | null; updateAccountKey(signed: object): Promise<unknown> };
}

const TIMEOUT_MS = 30_000;

export interface CaClientParts {
  readonly known: KnownAccounts;
  readonly fetch: Fetch;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Default 30 seconds for each request. */
  readonly timeoutMs?: number;
}

export class CaClient {
  readonly account: AcmeAccount;
  /** Host of the CA. */
  readonly directoryUrl: string;
  readonly #client: Client;
  readonly #inner: InnerClient;
  readonly #transport: AcmeTransport;
  #forget: () => void = () => {};

  private constructor(
    { account, directoryUrl }: Pick<CaClient, "account" | "directoryUrl">,
    client: Client,
    transport: AcmeTransport,
  ) {
    this.account = account;
    this.directoryUrl = directoryUrl;
    this.#client = client;
    this.#transport = transport;
    this.#inner = client as unknown as InnerClient;
    this.#inner.http.request = (url, method, options) => transport.request(url, method, options);
  }

  /** The account, registered at the CA if needed. */
  static async open(opened: OpenedAccount, parts: CaClientParts): Promise<CaClient> {
    return await (await CaClient.#connect(opened, parts)).#enter(parts, opened.key);
  }

  /** Null: the CA knows no account with this key. */
  static async openExisting(opened: OpenedAccount, parts: CaClientParts): Promise<CaClient | null> {
    const ca = await CaClient.#connect(opened, parts);
    try {
      await ca.#client.createAccount({ onlyReturnExisting: true });
    } catch (error) {
      if (error instanceof AcmeFailure && error.type === "accountDoesNotExist") return null;
      throw error;
    }
    return await ca.#enter(parts, opened.key);
  }

  static async #connect(opened: OpenedAccount, parts: CaClientParts): Promise<CaClient> {
    const { account, key, eabKey } = opened;
    const { fetch, now, signal } = parts;
    const directoryUrl = directoryOf(account);
    if (directoryUrl === null)
      throw new AcmeFailure(`ACME account "${account.name}" needs a staging_directory_url`);
    // Loaded with the first order: most starts do not need it.
    const acme = await import("acme-client");
    const client = new acme.Client({
      directoryUrl,
      accountKey: key,
      ...(account.eab_key_id === null || eabKey === null
        ? {}
        : { externalAccountBinding: { kid: account.eab_key_id, hmacKey: eabKey } }),
    });
    const timeoutMs = parts.timeoutMs ?? TIMEOUT_MS;
    const transport = new AcmeTransport({
      cas: account.ca_certificates,
      fetch,
      timeoutMs,
      now,
      signal,
    });
    return new CaClient({ account, directoryUrl }, client, transport);
  }

  async #enter({ known, signal }: CaClientParts, key: string): Promise<CaClient> {
    const cacheKey = hashToken(JSON.stringify([this.directoryUrl, key, this.account.email]));
    for (;;) {
      // Concurrent orders must register once.
      const held = known.get(cacheKey) ?? { url: this.#register(), signal };
      known.set(cacheKey, held);
      try {
        this.#inner.api.accountUrl = await held.url;
        break;
      } catch (error) {
        if (known.get(cacheKey) === held) known.delete(cacheKey);
        // A canceled registration is no failure of other orders that waited for it.
        if (!held.signal.aborted || signal.aborted) throw error;
      }
    }
    this.#forget = () => void known.delete(cacheKey);
    return this;
  }

  /** Replaces the account key at the CA by this one (PEM): RFC 8555 section 7.3.5. */
  async changeKey(key: string): Promise<void> {
    const acme = await import("acme-client");
    const next = new acme.Client({ directoryUrl: this.directoryUrl, accountKey: key });
    const { http, api } = this.#inner;
    const url = await http.getResourceUrl("keyChange");
    const inner = { account: this.#client.getAccountUrl(), oldKey: http.getJwk() };
    const signed = (next as unknown as InnerClient).http.createSignedBody(url, inner);
    await api.updateAccountKey(signed);
    this.#forget();
  }

  /** The CA has lost the account: the next caller registers it again. */
  forget(): void {
    this.#forget();
  }

  /** Retry-After of the last response; null: none. */
  get retryAfterMs(): number | null {
    return this.#transport.retryAfterMs;
  }

  /** Looks an existing account up by its key, which needs no external account binding. */
  async #register(): Promise<string> {
    try {
      const known = await this.#client.createAccount({ onlyReturnExisting: true });
      await this.#tellContact(known.contact ?? []);
      return this.#client.getAccountUrl();
    } catch (error) {
      if (!(error instanceof AcmeFailure) || error.status === 0 || error.status >= 500) throw error;
      if (error.type === "rateLimited") throw error;
    }
    const isBindingAsked =
      (await this.#inner.http.getMetaField("externalAccountRequired")) === true;
    if (isBindingAsked && this.account.eab_key_id === null)
      throw new AcmeFailure(
        `${this.host}: the CA requires an external account binding: set eab_key_id and eab_hmac_key`,
        { type: "externalAccountRequired", status: 403 },
      );
    await this.#client.createAccount({
      termsOfServiceAgreed: true,
      ...(this.#contact.length === 0 ? {} : { contact: this.#contact }),
    });
    return this.#client.getAccountUrl();
  }

  get #contact(): string[] {
    const { email } = this.account;
    return email === null ? [] : [`mailto:${email}`];
  }

  /** Updates a changed e-mail address. One that the CA rejects must not prevent renewals. */
  async #tellContact(known: readonly string[]): Promise<void> {
    const contact = this.#contact;
    if (!Bun.deepEquals(known, contact))
      await this.#client.updateAccount({ contact }).catch(() => undefined);
  }

  get host(): string {
    return new URL(this.directoryUrl).host;
  }

  async newOrder(
    names: readonly string[],
    options: { readonly profile: string | null; readonly replaces: string | null },
  ): Promise<AcmeOrder> {
    const { profile, replaces } = options;
    const order = {
      identifiers: names.map((value) => ({ type: "dns", value })),
      ...(profile === null ? {} : { profile }),
      ...(replaces === null ? {} : { replaces }),
    };
    try {
      return await this.#client.createOrder(order as Parameters<Client["createOrder"]>[0]);
    } catch (error) {
      // RFC 9773 section 5: an order, perhaps ours before a crash, has replaced it already.
      if (replaces === null || !(error instanceof AcmeFailure)) throw error;
      if (error.type !== "alreadyReplaced" && error.type !== "malformed" && error.status !== 409)
        throw error;
      return await this.newOrder(names, { profile, replaces: null });
    }
  }

  async order(url: string): Promise<AcmeOrder> {
    return await this.#client.getOrder({ url } as Order);
  }

  async authorizations(urls: readonly string[]): Promise<readonly Authorization[]> {
    const order = { authorizations: [...urls] } as unknown as Order;
    return (await this.#client.getAuthorizations(order)) as unknown as readonly Authorization[];
  }

  /** The challenge response: for dns-01 the text of the record, else the key authorization (RFC 8555 section 8.1). */
  async proofOf(challenge: AcmeChallenge & { readonly type: ChallengeType }): Promise<string> {
    return await this.#client.getChallengeKeyAuthorization(
      challenge as Parameters<Client["getChallengeKeyAuthorization"]>[0],
    );
  }

  /** Tells the CA that the challenge is ready. */
  async complete(challenge: AcmeChallenge): Promise<void> {
    await this.#client.completeChallenge(challenge as Parameters<Client["completeChallenge"]>[0]);
  }

  async finalize(order: AcmeOrder, csr: string): Promise<void> {
    await this.#client.finalizeOrder(order as unknown as Order, csr);
  }

  /** The chain as PEM. `preferred`: common name of its topmost issuer. */
  async download(order: AcmeOrder, preferred: string | null): Promise<string> {
    const { getCertificate } = this.#client;
    const chain = order as unknown as Order;
    return preferred === null
      ? await getCertificate.call(this.#client, chain)
      : await getCertificate.call(this.#client, chain, preferred);
  }

  /** `reason`: the number of RFC 5280 section 5.3.1. */
  async revoke(certificate: string, reason: number): Promise<void> {
    const data = { reason } as Parameters<Client["revokeCertificate"]>[1];
    try {
      await this.#client.revokeCertificate(certificate, data);
    } catch (error) {
      // Revoked already, perhaps by us before a crash: it must go out of service anyway.
      if (!(error instanceof AcmeFailure) || error.type !== "alreadyRevoked") throw error;
    }
  }

  /** URL of renewal information (RFC 9773); null: the CA has none. */
  async renewalInfoUrl(): Promise<string | null> {
    const { renewalInfo } = await this.#inner.http.getDirectory();
    return typeof renewalInfo === "string" ? renewalInfo : null;
  }

  /** A response that needs no account. */
  async read(url: string): Promise<unknown> {
    return (await this.#transport.request(url, "get")).data;
  }
}
