// What is told about listeners when a change is served: which were opened, closed and changed; knows no socket.
import type { Listener } from "../model/listener.ts";
import { diffMaps } from "../snapshot/diff.ts";
import type { ChangeEvent } from "./change.ts";

/** Every worker does so by the time that it is told. */
export interface ListenerEvent {
  readonly event: "opened" | "closed" | "changed";
  readonly listener_id: string;
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly protocol: Listener["protocol"];
  readonly revision: number;
}

/** One that moved to another address or port was closed there and opened here. */
export function listenerEventsOf({ before, after, revision }: ChangeEvent): ListenerEvent[] {
  const { upserts, removals } = diffMaps(before.listeners, after.listeners);
  const events: ListenerEvent[] = [];
  const tell = (event: ListenerEvent["event"], listener: Listener) => {
    const { id, name, address, port, protocol } = listener;
    events.push({ event, listener_id: id, name, address, port, protocol, revision });
  };
  for (const id of [...upserts.map((listener) => listener.id), ...removals]) {
    const [was, is] = [openOf(before.listeners.get(id)), openOf(after.listeners.get(id))];
    if (was !== null && is !== null && placeOf(was) === placeOf(is)) tell("changed", is);
    else {
      if (was !== null) tell("closed", was);
      if (is !== null) tell("opened", is);
    }
  }
  return events;
}

const openOf = (listener: Listener | undefined) => (listener?.enabled === true ? listener : null);

const placeOf = ({ address, port }: Listener) => `${address} ${port}`;
