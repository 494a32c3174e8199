// Definition of a type of DNS provider: the schema of its configuration and the factory of its client; knows no provider.
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { Type as t } from "@sinclair/typebox";
import type { DnsProviderType } from "../../model/dns-provider.ts";
import { secretText } from "../../snapshot/plugin-config.ts";
import type { DnsClientParts, DnsProviderClient } from "./provider.ts";

/** Dependencies of a client. */
export interface DnsParts extends DnsClientParts {
  /** Configured zones of the provider; empty: find them at the provider. */
  readonly zones: readonly string[];
  /** Runs tasks with the same key in sequence, for record sets that are written as a whole. */
  readonly inTurn: <T>(key: string, run: () => Promise<T>) => Promise<T>;
  /** Cache that the clients of a provider share, by their own keys. */
  readonly remembered: Map<string, string>;
  /** Programs that the provider exec may run, from the command line. */
  readonly programs: readonly string[];
}

export interface ConfigProblem {
  readonly field: string;
  readonly message: string;
}

export interface DnsProviderDefinition<C extends TObject = TObject> {
  readonly type: DnsProviderType;
  /** Name in the UI. */
  readonly title: string;
  /** Setup at the provider, in one sentence. */
  readonly help: string;
  /** The fixed URL that receives its secrets; absent: settings marked as `destination` name it. */
  readonly sentTo?: string;
  readonly config: C;
  readonly example: Readonly<Record<string, unknown>>;
  /** Checks beyond the schema; null: valid. A secret is a text only in plain text. */
  readonly problem?: (config: Readonly<Record<string, unknown>>) => ConfigProblem | null;
  /** `config` is valid, with its secrets in plain text. Opens no connection. */
  create(config: Static<C>, parts: DnsParts): DnsProviderClient;
}

/** Any definition: the configuration is validated before `create`. */
export interface AnyDnsProvider extends Omit<DnsProviderDefinition, "create"> {
  create(config: unknown, parts: DnsParts): DnsProviderClient;
}

export const defineDnsProvider = <C extends TObject>(
  definition: DnsProviderDefinition<C>,
): AnyDnsProvider => ({
  ...definition,
  create: (config, parts) => definition.create(config as Static<C>, parts),
});

/** The configuration of a provider. */
export const settings = <T extends Record<string, TSchema>>(properties: T) =>
  t.Object(properties, { additionalProperties: false });

/** Write-only, see `secretText`. */
export const secret = (description: string) => secretText({ description, maxLength: 4096 });

/** Printable characters, so that nothing that is sent in a header can end it. */
export const word = (description: string) =>
  t.String({
    minLength: 1,
    maxLength: 512,
    pattern: "^[\\x21-\\x7e]+$",
    errorMessage: "must be printable ASCII without spaces",
    description,
  });

export const ttl = (initial: number, minimum: number) =>
  t.Integer({
    minimum,
    maximum: 86_400,
    default: initial,
    description: "Seconds that resolvers may cache the record",
  });
