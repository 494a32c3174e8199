// The definition of a notification sink; knows no sink.
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { Type as t } from "@sinclair/typebox";
import type { Issue } from "../../model/error.ts";
import type { AlertType } from "../../model/alert.ts";
import { destination } from "../../model/destination.ts";
import type { FieldForm } from "../../model/fields.ts";
import type { Dialer } from "../../dialer/dialer.ts";
import { secretText } from "../../snapshot/plugin-config.ts";
import type { Sent } from "./notice.ts";

export interface SinkParts {
  readonly dialer: Dialer;
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
