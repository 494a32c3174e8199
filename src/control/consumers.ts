// Consumers: users of the proxied APIs; no HTTP words.
import { type Consumer, consumerInput } from "../model/consumer.ts";
import { decode } from "../model/decode.ts";
import type { Changes } from "./change.ts";
import { Resource, type ResourceKind } from "./resource.ts";

export function createConsumers(changes: Changes): Resource<"consumers", Consumer> {
  return new Resource(changes, kind);
}

const kind: ResourceKind<"consumers", Consumer> = {
  collection: "consumers",
  word: "consumer",
  readOnly: [],
  takesLimit: true,
  parents: {},
  decode: (document) => {
    const { groups, ...fields } = decode(consumerInput, document);
    return { fields: { ...fields, groups: [...new Set(groups)] } };
  },
  viewer: () => (consumer) => consumer,
  content: () => (consumer) => consumer,
};
