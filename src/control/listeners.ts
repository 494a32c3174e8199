// Listeners: where clients connect; knows no HTTP.
import { decode } from "../model/decode.ts";
import { type Listener, listenerInput } from "../model/listener.ts";
import type { Changes } from "./change.ts";
import { Resource, type ResourceKind } from "./resource.ts";

export function createListeners(changes: Changes): Resource<"listeners", Listener> {
  return new Resource(changes, kind);
}

const kind: ResourceKind<"listeners", Listener> = {
  collection: "listeners",
  word: "listener",
  readOnly: [],
  parents: {},
  decode: (document) => ({ fields: decode(listenerInput, document) }),
  viewer: () => (listener) => listener,
  content: () => (listener) => listener,
};
