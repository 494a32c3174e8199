// Events of listeners after a change: opened, closed and changed; knows no socket.
import type { Listener } from "../model/listener.ts";
import { diffMaps } from "../snapshot/diff.ts";
import type { ChangeEvent } from "./change-contract.ts";

/** Sent when every worker has applied it. */
export interface ListenerEvent {
  readonly event: "opened" | "closed" | "changed";
  readonly listener_id: string;
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly protocol: Listener["protocol"];
  readonly revision: number;
}

/** A listener with a new address or port is closed and opened. */
export function listenerEventsOf({ before, after, revision }: ChangeEvent): ListenerEvent[] {
  const { upserts, removals } = diffMaps(before.listeners, after.listeners);
  const events: ListenerEvent[] = [];
  const emit = (event: ListenerEvent["event"], listener: Listener) => {
    const { id, name, address, port, protocol } = listener;
    events.push({ event, listener_id: id, name, address, port, protocol, revision });
  };
  for (const id of [...upserts.map((listener) => listener.id), ...removals]) {
    const [was, is] = [openOf(before.listeners.get(id)), openOf(after.listeners.get(id))];
    if (was !== null && is !== null && endpointOf(was) === endpointOf(is)) emit("changed", is);
    else {
      if (was !== null) emit("closed", was);
      if (is !== null) emit("opened", is);
    }
  }
  return events;
}

const openOf = (listener: Listener | undefined) => (listener?.enabled === true ? listener : null);

const endpointOf = ({ address, port }: Listener) => `${address} ${port}`;
