// Interface of DNS providers for DNS-01 challenges; knows no provider's API.

import type { Dialer } from "../../dialer/dialer.ts";
import type { DnsProvider } from "../../model/dns-provider.ts";

/** A TXT record: an absolute name in lower case without a final dot, and its text without quotes. */
export interface TxtRecord {
  readonly fqdn: string;
  readonly value: string;
}

/** Access to the zones of one provider. Errors say what to do, and contain no secrets. */
export interface DnsProviderClient {
  /** Adds the record to others of the name; resolves when the provider has accepted it. */
  present(record: TxtRecord): Promise<void>;
  /** Deletes this record only; a missing record is no error. */
  cleanUp(record: TxtRecord): Promise<void>;
  /** The writable zones, if the provider can list them. */
  zones?(): Promise<readonly string[]>;
}

/** A provider with decrypted secrets in `config`. */
export type OpenedDnsProvider = Omit<DnsProvider, "config"> & {
  readonly config: Readonly<Record<string, unknown>>;
};

/** Throws an ApiError for an invalid configuration. */
export type CreateDnsClient = (
  provider: OpenedDnsProvider,
  parts: Pick<DnsClientParts, "signal">,
) => DnsProviderClient;

/** Resolves when all name servers of the zone return the record; throws a DnsError on timeout. */
export type WaitForPropagation = (
  record: TxtRecord,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<void>;

/** Options of all provider clients. */
export interface DnsClientParts {
  readonly dialer: Pick<Dialer, "fetch" | "addressesOf">;
  readonly signal?: AbortSignal;
}
