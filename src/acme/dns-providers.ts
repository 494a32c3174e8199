// DNS providers for dns-01 challenges and their credentials; knows no provider's API and no HTTP.
import { type Static, Type as t } from "@sinclair/typebox";
import type { SecretBox } from "../crypto/secret-box.ts";
import { decode } from "../model/decode.ts";
import { type DnsProvider, dnsProviderTypes } from "../model/dns-provider.ts";
import { ApiError, invalid } from "../model/error.ts";
import type { DnsClients } from "./dns/clients.ts";
import type { AnyDnsProvider } from "./dns/definition.ts";
import type { DnsLookup } from "./dns/lookup.ts";
import { normalName } from "./dns/names.ts";
import { type TrialReport, tryProvider } from "./dns/trial.ts";
import { needsAdmin } from "../control/admin-dns-providers.ts";
import type { Changes } from "../control/change.ts";
import { ConfiguredResource } from "../control/configured-resource.ts";
import { type Actor, roleOf } from "../control/principal.ts";
import type { FieldsOf } from "../control/resource.ts";
import { asHostName } from "../model/host-name.ts";

export interface DnsProvidersOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly definitions: Readonly<Record<DnsProvider["type"], AnyDnsProvider>>;
  readonly clients: DnsClients;
  readonly lookup: DnsLookup;
  /** Programs of --dns-exec. */
  readonly programs: readonly string[];
}

/** A type of DNS provider, to choose from. */
export interface DnsProviderTypeView {
  readonly type: DnsProvider["type"];
  readonly title: string;
  readonly help: string;
  /** JSON Schema of `config`; `writeOnly` marks secrets. */
  readonly schema: unknown;
  readonly example: unknown;
  readonly needs_admin: boolean;
}

const name = t.String({
  minLength: 1,
  maxLength: 230,
  pattern:
    "^(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\\.?$",
  errorMessage: "must be a domain name",
  description: "Zone to write and delete a record in; absent: list the zones",
});

/** The body of a test. */
export const dnsTestInput = t.Object(
  { zone: t.Optional(asHostName(name)) },
  { additionalProperties: false, title: "DNS provider test" },
);
export type DnsTestInput = Static<typeof dnsTestInput>;

export class DnsProviders extends ConfiguredResource<"dns_providers", DnsProvider> {
  readonly #options: DnsProvidersOptions;

  constructor(options: DnsProvidersOptions) {
    super(options.changes, {
      collection: "dns_providers",
      box: options.box,
      configurableOf: (type) => options.definitions[type as DnsProvider["type"]],
      complete: (fields, { old, sent }) => {
        checkConfig(fields, { ...options, old, sent });
        return { ...fields, zones: [...new Set(fields.zones.map(zoneName))] };
      },
    });
    this.#options = options;
  }

  types(): readonly DnsProviderTypeView[] {
    const { definitions } = this.#options;
    return dnsProviderTypes.map((type) => {
      const { title, help, config: schema, example } = definitions[type];
      return { type, title, help, schema, example, needs_admin: needsAdmin({ type }) };
    });
  }

  /** Tests the stored provider. Throws a 403 when it runs a program and the client is no admin. */
  async test(key: string, body: unknown, by: Actor): Promise<TrialReport> {
    const { id } = this.get(key).view;
    const { changes, clients, lookup } = this.#options;
    const provider = changes.config.dns_providers.get(id);
    if (provider === undefined) throw new ApiError(404, `DNS provider "${key}" does not exist`);
    if (needsAdmin(provider) && roleOf(by) !== "admin")
      throw new ApiError(403, "only an admin may run the program of a DNS provider");
    const { zone } = decode(dnsTestInput, body ?? {});
    const named = zone === undefined ? null : normalName(zone);
    return await tryProvider({ provider, zone: named, clients, lookup });
  }
}

function checkConfig(
  { type, config }: FieldsOf<"dns_providers">,
  {
    definitions,
    programs,
    old,
    sent,
  }: Pick<DnsProvidersOptions, "definitions" | "programs"> & {
    readonly old: DnsProvider | null;
    readonly sent: object;
  },
): void {
  const inTheClear = Object.entries(sent).filter(([, value]) => typeof value === "string");
  const wrong = definitions[type].problem?.({ ...config, ...Object.fromEntries(inTheClear) });
  if (wrong) throw invalid(`config.${wrong.field}`, wrong.message);
  const { program } = config;
  if (type === "exec" && !programs.includes(String(program)) && program !== old?.config["program"])
    throw invalid(
      "config.program",
      "must be a program that the gateway was started with: --dns-exec PATH",
    );
}

function zoneName(zone: string, index: number): string {
  const normal = normalName(zone);
  if (!new RegExp(name.pattern ?? "").test(normal))
    throw invalid(`zones[${index}]`, "must be a domain name");
  return normal;
}
