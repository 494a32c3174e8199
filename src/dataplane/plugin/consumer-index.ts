// Consumers and credentials of one version, found by id, name or what a client shows; knows no request.
import type { CredentialType } from "../../model/credential.ts";
import type { Consumers, ConsumerView, CredentialView } from "../../pdk/context.ts";
import {
  type RecordKey,
  RecordReader,
  type RecordTable,
} from "../../shared-memory/record-reader.ts";
import {
  decodeConsumer,
  decodeCredential,
  isShownFor,
  keyOf,
} from "../../snapshot/consumer-records.ts";
import type { ConsumerPlan, CredentialPlan } from "../../snapshot/snapshot.ts";
import { RecentMap } from "../../pdk/recent-map.ts";

/** Of each kind this many objects are kept beside the shared memory, at least. */
const MAX_RECENT = 4_096;

/** Objects made of records, by where those are: the same object for the same record, as long as it is remembered. */
class Decoded<T> {
  readonly #recent = new RecentMap<number, T>(MAX_RECENT);
  readonly #decode: (text: string) => T;

  constructor(decode: (text: string) => T) {
    this.#decode = decode;
  }

  of(record: number, reader: RecordReader): T {
    const known = this.#recent.get(record);
    if (known !== undefined) return known;
    const made = this.#decode(reader.text(record));
    this.#recent.set(record, made);
    return made;
  }
}

/** What all versions of an epoch share, so that what did not change stays the same object. */
class Epoch {
  readonly number: number;
  readonly consumers = new Decoded(decodeConsumer);
  readonly views = new RecentMap<number, CredentialPlan & CredentialView>(MAX_RECENT);

  constructor(number: number) {
    this.number = number;
  }
}

/** One version of the records that all workers share. It goes on answering while later versions are written. */
export class ConsumerIndex implements Consumers {
  readonly #version: number;
  /** Null: there is nobody. */
  readonly #reader: RecordReader | null;
  readonly #epoch: Epoch;
  /** What clients have shown lately, by the type of credential. */
  readonly #shown: Readonly<Record<CredentialType, RecentMap<string, CredentialView>>>;

  private constructor(table: RecordTable | null, epoch: Epoch) {
    this.#version = table?.version ?? 0;
    this.#reader = table === null ? null : new RecordReader(table.buffer);
    this.#epoch = epoch;
    const recent = () => new RecentMap<string, CredentialView>(MAX_RECENT);
    this.#shown = { key: recent(), basic: recent(), jwt: recent(), hmac: recent() };
  }

  static readonly empty = new ConsumerIndex(null, new Epoch(0));

  /** The version that a change has brought; null: this one. */
  at(table: RecordTable | null): ConsumerIndex {
    if (table === null) return this;
    const isSame = this.#epoch.number === table.epoch;
    return new ConsumerIndex(table, isSame ? this.#epoch : new Epoch(table.epoch));
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
    const reader = this.#reader;
    if (reader === null) return null;
    let meant: CredentialView | null = null;
    reader.find(keyOf.lookup(type, key), this.#version, (found) => {
      const view = this.#view(found, reader);
      if (view === null || view.type !== type || !isShownFor(view, key)) return false;
      meant = view;
      return true;
    });
    if (meant !== null) this.#shown[type].set(key, meant);
    return meant;
  }

  /** Null: that of a consumer that is switched off counts as none. */
  #view(record: number, reader: RecordReader): CredentialView | null {
    const { views } = this.#epoch;
    const known = views.get(record);
    const plan = known ?? decodeCredential(reader.text(record));
    const consumer = this.byId(plan.consumerId);
    if (consumer === null) return null;
    // Its consumer may have changed without it.
    if (known?.consumer === consumer) return known;
    const view = { ...plan, consumer };
    views.set(record, view);
    return view;
  }

  #consumer(key: RecordKey, isMeant: (plan: ConsumerPlan) => boolean): ConsumerView | null {
    const reader = this.#reader;
    if (reader === null) return null;
    const { consumers } = this.#epoch;
    let meant: ConsumerPlan | null = null;
    reader.find(key, this.#version, (found) => {
      const plan = consumers.of(found, reader);
      if (!isMeant(plan)) return false;
      meant = plan;
      return true;
    });
    return meant;
  }
}
