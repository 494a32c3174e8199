// One account at one certificate authority: the protocol's steps, one call each; knows no certificate of ours and no schedule.
import type { Client, Order } from "acme-client";
import { type AcmeAccount, directoryOf } from "../../model/acme-account.ts";
import type { ChallengeType } from "../../model/certificate.ts";
import { hashToken } from "../../crypto/token.ts";
import { type AcmeProblem, AcmeFailure } from "./failure.ts";
import { AcmeTransport } from "./transport.ts";

/** An account with readable secrets. */
export interface OpenedAccount {
  readonly account: AcmeAccount;
  /** PEM. */
  readonly key: string;
  readonly eabKey: string | null;
}

export interface AuthorityOrder {
  readonly url: string;
  readonly status: string;
  readonly authorizations: readonly string[];
  readonly finalize: string;
  readonly error?: AcmeProblem;
}

export interface AuthorityChallenge {
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
  readonly challenges: readonly AuthorityChallenge[];
}

/** Where accounts that have been found or registered are remembered, by key and directory. */
export type KnownAccounts = Map<
  string,
  { readonly url: Promise<string>; /** Of whoever asks. */ readonly signal: AbortSignal }
>;

/** Parts of the library that its types leave out. */
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

export interface AuthorityParts {
  readonly known: KnownAccounts;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Default 30 seconds for each request. */
  readonly timeoutMs?: number;
}

export class Authority {
  readonly account: AcmeAccount;
  /** Where it is. */
  readonly directoryUrl: string;
  readonly #client: Client;
  readonly #inner: InnerClient;
  readonly #transport: AcmeTransport;
  #forget: () => void = () => {};

  private constructor(
    { account, directoryUrl }: Pick<Authority, "account" | "directoryUrl">,
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

  /** The account, registered if the authority does not know it yet. */
  static async open(opened: OpenedAccount, parts: AuthorityParts): Promise<Authority> {
    return await (await Authority.#connect(opened, parts)).#enter(parts, opened.key);
  }

  /** Null: the authority knows no account with this key. */
  static async openExisting(
    opened: OpenedAccount,
    parts: AuthorityParts,
  ): Promise<Authority | null> {
    const authority = await Authority.#connect(opened, parts);
    try {
      await authority.#client.createAccount({ onlyReturnExisting: true });
    } catch (error) {
      if (error instanceof AcmeFailure && error.type === "accountDoesNotExist") return null;
      throw error;
    }
    return await authority.#enter(parts, opened.key);
  }

  static async #connect(opened: OpenedAccount, parts: AuthorityParts): Promise<Authority> {
    const { account, key, eabKey } = opened;
    const { now, signal } = parts;
    const directoryUrl = directoryOf(account);
    if (directoryUrl === null)
      throw new AcmeFailure(`ACME account "${account.name}" needs a staging_directory_url`);
    // Loaded when the first order is made: most starts need none of it.
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
      authorities: account.ca_certificates,
      ...{ timeoutMs, now, signal },
    });
    return new Authority({ account, directoryUrl }, client, transport);
  }

  async #enter({ known, signal }: AuthorityParts, key: string): Promise<Authority> {
    const cacheKey = hashToken(JSON.stringify([this.directoryUrl, key, this.account.email]));
    for (;;) {
      // Fifty certificates that are ordered at once must not register fifty times.
      const held = known.get(cacheKey) ?? { url: this.#register(), signal };
      known.set(cacheKey, held);
      try {
        this.#inner.api.accountUrl = await held.url;
        break;
      } catch (error) {
        if (known.get(cacheKey) === held) known.delete(cacheKey);
        // An order that was called off while it registered is no failure of those that waited for it.
        if (!held.signal.aborted || signal.aborted) throw error;
      }
    }
    this.#forget = () => void known.delete(cacheKey);
    return this;
  }

  /** Has the authority know the account by this key (PEM) from now on, and by the present one no more: RFC 8555 section 7.3.5. */
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

  /** The authority has lost the account: the next one who opens it registers it again. */
  forget(): void {
    this.#forget();
  }

  /** How long the last answer asked to be waited; null: it did not say. */
  get retryAfterMs(): number | null {
    return this.#transport.retryAfterMs;
  }

  /** An account that exists is found by its key: a binding that was used up is not needed again. */
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
        `${this.host}: the authority asks for an external account binding: set eab_key_id and eab_hmac_key`,
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

  /** The e-mail address may have been changed since. One that the authority does not take must not keep anything from being renewed. */
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
  ): Promise<AuthorityOrder> {
    const { profile, replaces } = options;
    const order = {
      identifiers: names.map((value) => ({ type: "dns", value })),
      ...(profile === null ? {} : { profile }),
      ...(replaces === null ? {} : { replaces }),
    };
    try {
      return await this.#client.createOrder(order as Parameters<Client["createOrder"]>[0]);
    } catch (error) {
      // RFC 9773 section 5: somebody, perhaps we before a crash, has replaced it already.
      if (replaces === null || !(error instanceof AcmeFailure)) throw error;
      if (error.type !== "alreadyReplaced" && error.type !== "malformed" && error.status !== 409)
        throw error;
      return await this.newOrder(names, { profile, replaces: null });
    }
  }

  async order(url: string): Promise<AuthorityOrder> {
    return await this.#client.getOrder({ url } as Order);
  }

  async authorizations(urls: readonly string[]): Promise<readonly Authorization[]> {
    const order = { authorizations: [...urls] } as unknown as Order;
    return (await this.#client.getAuthorizations(order)) as unknown as readonly Authorization[];
  }

  /** What proves the name: for dns-01 the text of the record, else the key authorization (RFC 8555 section 8.1). */
  async proofOf(challenge: AuthorityChallenge & { readonly type: ChallengeType }): Promise<string> {
    return await this.#client.getChallengeKeyAuthorization(
      challenge as Parameters<Client["getChallengeKeyAuthorization"]>[0],
    );
  }

  /** Says that the proof is there. */
  async complete(challenge: AuthorityChallenge): Promise<void> {
    await this.#client.completeChallenge(challenge as Parameters<Client["completeChallenge"]>[0]);
  }

  async finalize(order: AuthorityOrder, csr: string): Promise<void> {
    await this.#client.finalizeOrder(order as unknown as Order, csr);
  }

  /** The chain as PEM. `preferred`: common name of the issuer at its end. */
  async download(order: AuthorityOrder, preferred: string | null): Promise<string> {
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
      // Somebody else has, or we before a crash: it must go out of service all the same.
      if (!(error instanceof AcmeFailure) || error.type !== "alreadyRevoked") throw error;
    }
  }

  /** Where the authority tells when it wants which certificate to be renewed (RFC 9773); null: it does not. */
  async renewalInfoUrl(): Promise<string | null> {
    const { renewalInfo } = await this.#inner.http.getDirectory();
    return typeof renewalInfo === "string" ? renewalInfo : null;
  }

  /** An answer that needs no account. */
  async read(url: string): Promise<unknown> {
    return (await this.#transport.request(url, "get")).data;
  }
}
