// The fields of the DNS provider form, with the schema of its type; renders nothing.
import type { Read, Schemas, Write } from "../../api/resources.ts";

/** One of `/dns-providers/types`. */
export type ProviderType = Omit<Schemas["DnsProviderType"], "schema"> & {
  readonly schema: {
    readonly required?: readonly string[];
    readonly properties: Readonly<Record<string, SettingSchema>>;
  };
};

/** The subset of JSON Schema that provider settings use. */
export interface SettingSchema {
  readonly type?: "string" | "integer" | "array";
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly description?: string;
  readonly writeOnly?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly errorMessage?: string;
}

export type Settings = Readonly<Record<string, unknown>>;

export interface ProviderValues extends Pick<
  Read<"dns-providers">,
  "name" | "type" | "zones" | "propagation_timeout" | "enabled" | "tags" | "description"
> {
  /** Without secrets. */
  readonly config: Settings;
  /** Entered secrets; the others stay unchanged. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** All settings of a type, empty, so that each API error has a field. */
export function emptySettings(
  type: ProviderType | undefined,
): Pick<ProviderValues, "config" | "secrets"> {
  const all = Object.entries(type?.schema.properties ?? {});
  const named = (isSecret: boolean) =>
    Object.fromEntries(
      all.filter(([, { writeOnly = false }]) => writeOnly === isSecret).map(([name]) => [name, ""]),
    );
  return { config: named(false), secrets: named(true) };
}

export const createToValues =
  (types: readonly ProviderType[]) =>
  (provider: Partial<Read<"dns-providers">>): ProviderValues => {
    const { config = {}, type = "cloudflare" } = provider;
    const empty = emptySettings(types.find((one) => one.type === type));
    const given = Object.entries(config);
    return {
      name: provider.name ?? type,
      type,
      zones: provider.zones ?? [],
      propagation_timeout: provider.propagation_timeout ?? 120,
      enabled: provider.enabled ?? true,
      tags: provider.tags ?? [],
      description: provider.description ?? "",
      config: {
        ...empty.config,
        ...Object.fromEntries(given.filter(([, value]) => !isReference(value))),
      },
      secrets: {
        ...empty.secrets,
        ...Object.fromEntries(
          given
            .filter(([, value]) => isReference(value))
            .map(([name, value]) => [name, toText(value as Reference)]),
        ),
      },
    };
  };

interface Reference {
  readonly $secret: string;
}

const isReference = (value: unknown): value is Reference =>
  typeof value === "object" && value !== null && "$secret" in value;
const toText = ({ $secret }: Reference): string => `$secret:${$secret}`;

/** Omits empty values: the gateway uses the default, or the stored secret. */
export function toBody(values: ProviderValues): Write<"dns-providers"> {
  const { config, secrets, ...rest } = values;
  const given = Object.entries(config).filter(([, value]) => value !== "" && value !== undefined);
  const entered = Object.entries(secrets)
    .filter(([, text]) => text !== "")
    .map(([name, text]) => [name, toSecret(text)] as const);
  return { ...rest, config: Object.fromEntries([...given, ...entered]) };
}

const toSecret = (text: string): string | Reference =>
  text.startsWith("$secret:") ? { $secret: text.slice("$secret:".length).trim() } : text;

/** Maps `config.api_token` to the form's `secrets.api_token`. */
export const createFieldOf =
  (types: readonly ProviderType[], typeOf: () => string) =>
  (field: string): string => {
    const name = /^config\.(\w+)/.exec(field)?.[1];
    if (name === undefined) return field;
    const schema = types.find(({ type }) => type === typeOf())?.schema.properties[name];
    return schema?.writeOnly === true ? `secrets.${name}` : `config.${name}`;
  };

export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
};

/** The error of one setting by its schema; null: valid. */
export function settingProblem(schema: SettingSchema, value: unknown): string | null {
  if (typeof value !== "string" || value === "" || schema.pattern === undefined) return null;
  return new RegExp(schema.pattern).test(value)
    ? null
    : (schema.errorMessage ?? "does not match the provider's format");
}

const labels: Readonly<Record<string, string>> = {
  api_token: "API token",
  access_token: "Access token",
  ttl: "TTL",
  url: "Address",
  api: "API",
  access_key_id: "Access key id",
  secret_access_key: "Secret access key",
  tsig_key_name: "TSIG key name",
  tsig_algorithm: "TSIG algorithm",
  tsig_secret: "TSIG key",
  fulldomain: "Full domain",
  hosted_zone_id: "Hosted zone id",
};

/** `session_token` is `Session token`. */
export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return labels[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}
