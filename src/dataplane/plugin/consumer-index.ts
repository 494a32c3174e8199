// Finds consumers and credentials of one version by id, name or key; knows no request.
import type { CredentialType } from "../../model/credential.ts";
import type { Consumers, ConsumerView, CredentialView } from "../../pdk/context.ts";
import {
  type RecordKey,
  type RecordReader,
  type RecordTable,
  readerOf,
} from "../../shared-memory/record-reader.ts";
import {
  decodeConsumer,
  decodeCredential,
  isShownFor,
  keyOf,
} from "../../snapshot/consumer-records.ts";
import type { ConsumerPlan, CredentialPlan } from "../../snapshot/snapshot.ts";
import { RecentMap } from "../../pdk/recent-map.ts";

/** Minimum number of decoded objects of each kind to cache outside of the shared memory. */
const MAX_RECENT = 4_096;

/** Decoded objects by record offset: the same object for the same record while it is cached. */
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

/** Caches shared by all versions of an epoch, so that unchanged records keep their objects. */
class Epoch {
  readonly number: number;
  readonly consumers = new Decoded(decodeConsumer);
  readonly views = new RecentMap<number, CredentialPlan & CredentialView>(MAX_RECENT);

  constructor(number: number) {
    this.number = number;
  }
}

/** One version of the records that all workers share. It stays readable while later versions are written. */
export class ConsumerIndex implements Consumers {
  readonly #version: number;
  /** Null: there are no consumers. */
  readonly #reader: RecordReader | null;
  readonly #epoch: Epoch;
  /** Recently used credentials by type. */
  readonly #recent: Readonly<Record<CredentialType, RecentMap<string, CredentialView>>>;

  private constructor(version: number, reader: RecordReader | null, epoch: Epoch) {
    this.#version = version;
    this.#reader = reader;
    this.#epoch = epoch;
    const recent = () => new RecentMap<string, CredentialView>(MAX_RECENT);
    this.#recent = { key: recent(), basic: recent(), jwt: recent(), hmac: recent() };
  }

  static readonly empty = new ConsumerIndex(0, null, new Epoch(0));

  /** The version after a change; null: this one. */
  at(table: RecordTable | null): ConsumerIndex {
    if (table === null) return this;
    const isSame = this.#epoch.number === table.epoch;
    const epoch = isSame ? this.#epoch : new Epoch(table.epoch);
    return new ConsumerIndex(table.version, readerOf(table, this.#reader), epoch);
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
    const known = this.#recent[type].get(key);
    if (known !== undefined) return known;
    const reader = this.#reader;
    if (reader === null) return null;
    let match: CredentialView | null = null;
    reader.find(keyOf.lookup(type, key), this.#version, (found) => {
      const view = this.#view(found, reader);
      if (view === null || view.type !== type || !isShownFor(view, key)) return false;
      match = view;
      return true;
    });
    if (match !== null) this.#recent[type].set(key, match);
    return match;
  }

  /** Null: the consumer is disabled. */
  #view(record: number, reader: RecordReader): CredentialView | null {
    const { views } = this.#epoch;
    const known = views.get(record);
    const plan = known ?? decodeCredential(reader.text(record));
    const consumer = this.byId(plan.consumerId);
    if (consumer === null) return null;
    // The consumer may have changed while the credential has not.
    if (known?.consumer === consumer) return known;
    const view = { ...plan, consumer };
    views.set(record, view);
    return view;
  }

  #consumer(key: RecordKey, isMatch: (plan: ConsumerPlan) => boolean): ConsumerView | null {
    const reader = this.#reader;
    if (reader === null) return null;
    const { consumers } = this.#epoch;
    let match: ConsumerPlan | null = null;
    reader.find(key, this.#version, (found) => {
      const plan = consumers.of(found, reader);
      if (!isMatch(plan)) return false;
      match = plan;
      return true;
    });
    return match;
  }
}
