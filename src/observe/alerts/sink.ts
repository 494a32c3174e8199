// The definition of a notification sink, and forbidden destinations; knows no sink.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { Type as t } from "@sinclair/typebox";
import type { Issue } from "../../model/error.ts";
import type { AlertType } from "../../model/alert.ts";
import { destination } from "../../model/destination.ts";
import type { FieldForm } from "../../model/fields.ts";
import { type ListenAddress, reaches } from "../../snapshot/address-overlap.ts";
import { secretText } from "../../snapshot/plugin-config.ts";
import type { Sent } from "./notice.ts";
import { DeliveryError } from "./outbox.ts";

export interface SinkParts {
  /** Addresses of the management API. */
  readonly managementAddresses: readonly ListenAddress[];
  readonly signal: AbortSignal;
}

export interface SinkDefinition<C extends TObject = TObject> {
  readonly type: AlertType;
  /** Display name. */
  readonly title: string;
  readonly config: C;
  readonly example: Readonly<Record<string, unknown>>;
  /** The destination for display, without secrets. */
  destination(config: Static<C>): string;
  /** The host and port that it connects to; null: unknown. */
  address(config: Static<C>): Address | null;
  /** Validation beyond the schema; paths are below `config`. */
  problem(config: Static<C>): Pick<Issue, "path" | "message"> | null;
  /** Resolves to the result in one sentence; rejects with a DeliveryError. */
  send(config: Static<C>, sent: Sent, parts: SinkParts): Promise<string>;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Any sink: its configuration is validated before. */
export type AnySink = SinkDefinition;

export const defineSink = <C extends TObject>(definition: SinkDefinition<C>): AnySink =>
  definition as unknown as AnySink;

export const settings = <T extends Record<string, TSchema>>(properties: T, form: FieldForm = {}) =>
  t.Object(properties, { additionalProperties: false, form });

/** What few destinations need. */
export const advanced = (text: string): FieldForm => ({
  groups: [
    { id: "main", title: "" },
    { id: "advanced", title: "Advanced", text, folded: true },
  ],
});

/** Write-only, see `secretText`. */
export const secret = (description: string, form: FieldForm = {}, maxLength = 4096) =>
  secretText({ description, maxLength, form });

export const caCertificates = t.Optional(
  destination(
    t.String({
      maxLength: 262_144,
      pattern: "-----BEGIN CERTIFICATE-----",
      errorMessage: "must be certificates in PEM",
      description: "CAs (PEM) to trust for the server's certificate, instead of the system's",
      form: {
        title: "Trusted CAs",
        help: "PEM certificates that replace the system's CAs, for a server with a private certificate",
        example: "-----BEGIN CERTIFICATE-----",
        input: "code",
        group: "advanced",
        order: 1,
      },
    }),
  ),
);

/** Whether the address is a literal address of the management API. */
export const isManagement = (
  { host, port }: Address,
  addresses: readonly ListenAddress[],
): boolean => addresses.some((bound) => reaches(bare(host), port, bound));

/** Throws a DeliveryError for a name that resolves to the management API, which alerts must not call. */
export async function requireForeign(
  { host, port }: Address,
  addresses: readonly ListenAddress[],
): Promise<void> {
  const name = bare(host);
  const found = isIP(name) === 0 ? await addressesOf(name) : [name];
  for (const each of [name, ...found])
    if (isManagement({ host: each, port }, addresses))
      throw new DeliveryError(`${host} is the management API itself, which alerts must not call`);
}

const bare = (host: string) => host.replace(/^\[|\]$/g, "");

async function addressesOf(name: string): Promise<string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    throw new DeliveryError(`${name} cannot be resolved`);
  }
}
