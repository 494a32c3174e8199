// What a DNS provider has to be able to do so that names can be proved with TXT records; knows no provider's API.

import type { DnsProvider } from "../../../model/dns-provider.ts";

/** A TXT record: an absolute name in lower case without a final dot, and its text without quotes. */
export interface TxtRecord {
  readonly fqdn: string;
  readonly value: string;
}

/** Access to the zones of one provider. Errors are thrown, in words that a person can act on and without secrets. */
export interface DnsProviderClient {
  /** Creates the record beside others of the name; resolves when the provider has taken it. */
  present(record: TxtRecord): Promise<void>;
  /** Takes this one record away again, and no other of the name; one that is gone already is no error. */
  cleanUp(record: TxtRecord): Promise<void>;
  /** The zones that it may write, where the provider can tell. */
  zones?(): Promise<readonly string[]>;
}

/** A provider whose secrets are readable: every field of `config` holds plain values. */
export type OpenedDnsProvider = Omit<DnsProvider, "config"> & {
  readonly config: Readonly<Record<string, unknown>>;
};

/** Throws an ApiError when the configuration cannot be used. */
export type CreateDnsClient = (
  provider: OpenedDnsProvider,
  parts: DnsClientParts,
) => DnsProviderClient;

/** Resolves when all name servers of the record's zone have it; throws in words when they do not in time. */
export type WaitForPropagation = (
  record: TxtRecord,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<void>;

/** What every provider's client is given beside its own configuration. */
export interface DnsClientParts {
  /** For tests; default: the global fetch. */
  readonly fetch?: typeof fetch;
  readonly signal?: AbortSignal;
}
