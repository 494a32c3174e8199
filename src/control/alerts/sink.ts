// How one way to send messages declares itself, and where none may lead; knows none of them.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { Type as t } from "@sinclair/typebox";
import type { Issue } from "../../model/error.ts";
import type { AlertType } from "../../model/alert.ts";
import { destination } from "../../model/destination.ts";
import { type ListenAddress, reaches } from "../../snapshot/address-overlap.ts";
import { secretText } from "../../snapshot/plugin-config.ts";
import type { Sent } from "./notice.ts";
import { DeliveryError } from "./outbox.ts";

export interface SinkParts {
  /** Of the management API. */
  readonly managementAddresses: readonly ListenAddress[];
  readonly signal: AbortSignal;
}

export interface SinkDefinition<C extends TObject = TObject> {
  readonly type: AlertType;
  /** Its name for people. */
  readonly title: string;
  readonly config: C;
  readonly example: Readonly<Record<string, unknown>>;
  /** Where it leads, for people: nothing that is secret. */
  destination(config: Static<C>): string;
  /** The host and port that it connects to; null: that cannot be told. */
  address(config: Static<C>): Address | null;
  /** What the schema cannot say; paths are below `config`. */
  problem(config: Static<C>): Pick<Issue, "path" | "message"> | null;
  /** Resolves to what was answered, in words; rejects with a DeliveryError. */
  send(config: Static<C>, sent: Sent, parts: SinkParts): Promise<string>;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Any of them: the configuration was checked before it gets there. */
export type AnySink = SinkDefinition;

export const defineSink = <C extends TObject>(definition: SinkDefinition<C>): AnySink =>
  definition as unknown as AnySink;

export const settings = <T extends Record<string, TSchema>>(properties: T) =>
  t.Object(properties, { additionalProperties: false });

/** Write-only, see `secretText`. */
export const secret = (description: string, maxLength = 4096) =>
  secretText({ description, maxLength });

export const authorities = t.Optional(
  destination(
    t.String({
      maxLength: 262_144,
      pattern: "-----BEGIN CERTIFICATE-----",
      errorMessage: "must be certificates in PEM",
      description:
        "Authorities (PEM) that the server's certificate is trusted by, in the place of the usual ones",
    }),
  ),
);

/** Whether the address is the management API by what it is called. */
export const isManagement = (
  { host, port }: Address,
  addresses: readonly ListenAddress[],
): boolean => addresses.some((bound) => reaches(bare(host), port, bound));

/** Throws a DeliveryError for a name that leads to the management API: nobody may be called there in the gateway's name. */
export async function requireForeign(
  { host, port }: Address,
  addresses: readonly ListenAddress[],
): Promise<void> {
  const name = bare(host);
  const found = isIP(name) === 0 ? await addressesOf(name) : [name];
  for (const each of [name, ...found])
    if (isManagement({ host: each, port }, addresses))
      throw new DeliveryError(`${host} is the management API itself, which is not called`);
}

const bare = (host: string) => host.replace(/^\[|\]$/g, "");

async function addressesOf(name: string): Promise<string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    throw new DeliveryError(`${name} is a name that cannot be resolved`);
  }
}
