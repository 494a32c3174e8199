// The persistent ACME state of one certificate; knows no table and no CA.
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Fact } from "../model/fact.ts";

const time = t.Union([t.String(), t.Null()], { default: null });

const schema = t.Object({
  /** Failed attempts since the last success. */
  attempts: t.Integer({ default: 0 }),
  last_error: t.Union([t.String(), t.Null()], { default: null }),
  /** No attempt before this time. */
  next_attempt_at: time,
  /** End of the CA's rate limit. */
  limited_until: time,
  /** A user requested a renewal. */
  is_asked_for: t.Boolean({ default: false }),
  /** The open order, with the key of its certificate. */
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
  /** The last issued certificate, its account and CA. */
  issued: t.Union(
    [
      t.Object({
        account_id: t.String(),
        fingerprint: t.String(),
        directory_url: t.Optional(t.String()),
        /** Time of the issue, by our clock. */
        at: t.Optional(t.String()),
      }),
      t.Null(),
    ],
    { default: null },
  ),
  /** The CA's renewal window, the selected time in it, and the time of the next request. */
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
  /** The last expiry threshold with a warning, and its certificate. */
  warned: t.Union([t.Object({ fingerprint: t.String(), days: t.Number() }), t.Null()], {
    default: null,
  }),
});

export type AcmeState = Readonly<Static<typeof schema>>;
export type OpenOrder = NonNullable<AcmeState["order"]>;

export const emptyState: AcmeState = Value.Create(schema);

/** The state without failures. */
export const afresh = {
  next_attempt_at: null,
  limited_until: null,
  attempts: 0,
  last_error: null,
} as const satisfies Partial<AcmeState>;

/** Fills in what an older or invalid document lacks. */
export function toState(document: Readonly<Record<string, unknown>> | undefined): AcmeState {
  const filled = Value.Default(schema, Value.Clone(document ?? {}));
  return Value.Check(schema, filled) ? filled : emptyState;
}

/** The storage of states. */
export interface AcmeStore {
  load(): ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /**
   * A promise resolves when it is stored and the other nodes can get it, or cannot for now. It does not reject. `asLeader`: it is of
   * the work that only one node of a fleet does.
   */
  put(
    certificateId: string,
    document: Record<string, unknown>,
    asLeader: boolean,
  ): void | Promise<void>;
  remove(certificateId: string): void;
  /** Another node does the work now: what was put for it and is not stored yet is void. Absent: there are no other nodes. */
  dropUnsent?(): void;
  /** Whether this node has a newer state than the one in the log. Absent: there are no other nodes. */
  isBehind?(fact: Fact): boolean;
}
