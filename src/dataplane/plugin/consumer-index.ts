// Consumers and credentials of one version, found by id, name or what a client shows; knows no request.
import type { CredentialType } from "../../model/credential.ts";
import type { Consumers, ConsumerView, CredentialView } from "../../pdk/context.ts";
import { RecordReader, type RecordTable } from "../../shared-memory/record-reader.ts";
import {
  decodeConsumer,
  decodeCredential,
  keyOf,
  shownFor,
} from "../../snapshot/consumer-records.ts";
import type { ConsumerPlan, CredentialPlan } from "../../snapshot/snapshot.ts";
import { RecentMap } from "./recent-map.ts";

/** Of each kind this many objects are kept beside the shared memory, at least. */
const MAX_RECENT = 2_048;

/** Objects made of records, by where those are; all versions of an epoch share them, so that they stay the same objects. */
interface Decoded {
  readonly epoch: number;
  readonly consumers: RecentMap<number, ConsumerPlan>;
  readonly credentials: RecentMap<number, CredentialPlan>;
  readonly views: RecentMap<number, CredentialView>;
}

const nothingDecoded = (epoch: number): Decoded => ({
  epoch,
  consumers: new RecentMap(MAX_RECENT),
  credentials: new RecentMap(MAX_RECENT),
  views: new RecentMap(MAX_RECENT),
});

/** One version of the records that all workers share. It goes on answering while later versions are written. */
export class ConsumerIndex implements Consumers {
  readonly #version: number;
  /** Null: there is nobody. */
  readonly #reader: RecordReader | null;
  readonly #decoded: Decoded;
  /** What clients have shown lately, by the type of credential. */
  readonly #shown: Readonly<Record<CredentialType, RecentMap<string, CredentialView>>>;

  private constructor(table: RecordTable | null, decoded: Decoded) {
    this.#version = table?.version ?? 0;
    this.#reader = table === null ? null : new RecordReader(table.buffer);
    this.#decoded = decoded;
    const recent = () => new RecentMap<string, CredentialView>(MAX_RECENT);
    this.#shown = { key: recent(), basic: recent(), jwt: recent(), hmac: recent() };
  }

  static readonly empty = new ConsumerIndex(null, nothingDecoded(0));

  /** The version that a change has brought; null: this one. */
  at(table: RecordTable | null): ConsumerIndex {
    if (table === null) return this;
    const isKnown = this.#decoded.epoch === table.epoch;
    return new ConsumerIndex(table, isKnown ? this.#decoded : nothingDecoded(table.epoch));
  }

  byId(id: string): ConsumerView | null {
    return this.#consumer(keyOf.consumer(id), (plan) => plan.id === id);
  }

  byUsername(username: string): ConsumerView | null {
    return this.#consumer(keyOf.username(username), (plan) => plan.username === username);
  }

  byCustomId(customId: string): ConsumerView | null {
    return this.#consumer(keyOf.customId(customId), (plan) => plan.customId === customId);
  }

  credential(type: CredentialType, key: string): CredentialView | null {
    const known = this.#shown[type].get(key);
    if (known !== undefined) return known;
    const record = this.#find(
      keyOf.lookup(type, key),
      this.#decoded.credentials,
      decodeCredential,
      (plan) => plan.type === type && shownFor(plan).includes(key),
    );
    if (record === 0) return null;
    const view = this.#view(record);
    if (view !== null) this.#shown[type].set(key, view);
    return view;
  }

  #view(record: number): CredentialView | null {
    const { credentials, views } = this.#decoded;
    const plan = this.#decode(record, credentials, decodeCredential);
    const consumer = this.byId(plan.consumerId);
    // That of a consumer that is switched off counts as none.
    if (consumer === null) return null;
    const known = views.get(record);
    if (known?.consumer === consumer) return known;
    const view = { ...plan, consumer };
    views.set(record, view);
    return view;
  }

  #consumer(key: string, isMeant: (plan: ConsumerPlan) => boolean): ConsumerView | null {
    const { consumers } = this.#decoded;
    const record = this.#find(key, consumers, decodeConsumer, isMeant);
    return record === 0 ? null : this.#decode(record, consumers, decodeConsumer);
  }
}
