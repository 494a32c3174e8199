// How one type of DNS provider declares itself: the schema of its configuration and how its client is made; knows none of them.
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { Type as t } from "@sinclair/typebox";
import type { DnsProviderType } from "../../../model/dns-provider.ts";
import { secretText } from "../../../snapshot/plugin-config.ts";
import type { DnsClientParts, DnsProviderClient } from "./provider.ts";

/** What a client is given beside its own configuration. */
export interface DnsParts extends DnsClientParts {
  /** Zones that the provider was told to be for; empty: those that it finds. */
  readonly zones: readonly string[];
  /** Runs what shares a key one after the other, for records that can only be written as a whole. */
  readonly inTurn: <T>(key: string, run: () => Promise<T>) => Promise<T>;
  /** What clients remember between two of them, by keys of their own. */
  readonly remembered: Map<string, string>;
  /** Programs that may be run, as named on the command line. */
  readonly programs: readonly string[];
}

export interface ConfigProblem {
  readonly field: string;
  readonly message: string;
}

export interface DnsProviderDefinition<C extends TObject = TObject> {
  readonly type: DnsProviderType;
  /** Its name for people. */
  readonly title: string;
  /** What has to be done at the provider first, in a sentence. */
  readonly help: string;
  /** The one address that its secrets are sent to; absent: settings marked as `destination` say where. */
  readonly sentTo?: string;
  readonly config: C;
  readonly example: Readonly<Record<string, unknown>>;
  /** What the schema cannot say; null: nothing is wrong. A secret is a text only where it is in the clear. */
  readonly problem?: (config: Readonly<Record<string, unknown>>) => ConfigProblem | null;
  /** `config` fits the schema, with its secrets in the clear. Opens nothing by itself. */
  create(config: Static<C>, parts: DnsParts): DnsProviderClient;
}

/** Any of them: the configuration was checked before it gets there. */
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
    description: "Seconds that resolvers may remember the record",
  });
