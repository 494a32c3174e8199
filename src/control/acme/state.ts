// What is remembered of the ordering of one certificate, also over a restart; knows no table and no authority.
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const time = t.Union([t.String(), t.Null()], { default: null });

const schema = t.Object({
  /** Attempts that failed since the last success. */
  attempts: t.Integer({ default: 0 }),
  last_error: t.Union([t.String(), t.Null()], { default: null }),
  /** Not before this, whatever else is due. */
  next_attempt_at: time,
  /** A limit of the authority is reached until then. */
  limited_until: time,
  /** Somebody asked for a new one now. */
  is_asked_for: t.Boolean({ default: false }),
  /** An order that has been begun; the key belongs to the certificate that comes of it. */
  order: t.Union(
    [
      t.Object({
        url: t.String(),
        account_id: t.String(),
        names: t.Array(t.String()),
        sealed_key: t.String(),
      }),
      t.Null(),
    ],
    { default: null },
  ),
  /** What was issued last, by which account, and where. */
  issued: t.Union(
    [
      t.Object({
        account_id: t.String(),
        fingerprint: t.String(),
        directory_url: t.Optional(t.String()),
        /** When, by our clock. */
        at: t.Optional(t.String()),
      }),
      t.Null(),
    ],
    { default: null },
  ),
  /** When the authority wants it to be renewed, the time in it that was drawn for us, and when to ask again. */
  renewal: t.Union(
    [
      t.Object({
        fingerprint: t.String(),
        start: time,
        end: time,
        at: time,
        ask_again_at: t.String(),
      }),
      t.Null(),
    ],
    { default: null },
  ),
  /** The fewest days before the end that people were warned of, and of which certificate. */
  warned: t.Union([t.Object({ fingerprint: t.String(), days: t.Number() }), t.Null()], {
    default: null,
  }),
});

export type AcmeState = Readonly<Static<typeof schema>>;
export type OpenOrder = NonNullable<AcmeState["order"]>;

export const emptyState: AcmeState = Value.Create(schema);

/** As if nothing had failed yet. */
export const afresh = {
  next_attempt_at: null,
  limited_until: null,
  attempts: 0,
  last_error: null,
} as const satisfies Partial<AcmeState>;

/** A document that an older program wrote, or that makes no sense, is as good as none in what it lacks. */
export function toState(document: Readonly<Record<string, unknown>> | undefined): AcmeState {
  const filled = Value.Default(schema, Value.Clone(document ?? {}));
  return Value.Check(schema, filled) ? filled : emptyState;
}

/** Where states are kept. */
export interface AcmeStore {
  load(): ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  put(certificateId: string, document: Record<string, unknown>): void;
  remove(certificateId: string): void;
}
