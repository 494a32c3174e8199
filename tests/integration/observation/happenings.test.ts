// Events of listeners in the event stream, and 500 readers of it at a time.
import { afterEach, describe, expect, test } from "bun:test";
import { type EventClient, openEvents } from "../../support/event-client.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { connectRaw, type RawConnection } from "../../support/raw-http.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();
const open: EventClient[] = [];

async function follow(query: string, headers: Record<string, string> = {}): Promise<EventClient> {
  const client = await openEvents(`${api.url}/api/v1/events${query}`, headers);
  open.push(client);
  await eventually(() => client.lastId);
  return client;
}

afterEach(() => {
  for (const client of open.splice(0)) client.close();
});

describe("a listener", () => {
  test("causes events when it is opened, changed, moved, switched off and on, and deleted", async () => {
    const stream = await follow("?kinds=listener");
    const [first, second] = [quietPort(), quietPort()];
    const { id } = await api.create("/listeners", {
      name: "extra",
      address: "127.0.0.1",
      port: first,
      protocol: "http",
    });
    const patch = (body: object) => api.call(`PATCH /listeners/${id}`, { body });
    await patch({ idle_timeout: 30 });
    await patch({ port: second });
    await patch({ enabled: false });
    await patch({ idle_timeout: 40 });
    await patch({ enabled: true });
    await api.call(`DELETE /listeners/${id}`);
    const told = await stream.receives(7);
    expect(told.map(({ data }) => [data.event, data.port])).toEqual([
      ["opened", first],
      ["changed", first],
      ["closed", first],
      ["opened", second],
      ["closed", second],
      ["opened", second],
      ["closed", second],
    ]);
    expect(told[0]!.data).toEqual({
      event: "opened",
      listener_id: id,
      name: "extra",
      address: "127.0.0.1",
      port: first,
      protocol: "http",
      revision: expect.any(Number),
    });
  });

  test("is usable by the time of its event", async () => {
    const stream = await follow("?kinds=listener");
    const port = quietPort();
    const made = api.create("/listeners", {
      name: "at-once",
      address: "127.0.0.1",
      port,
      protocol: "http",
    });
    await stream.receives(1);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    await api.call(`DELETE /listeners/${(await made).id}`);
  });

  test("causes no event when something else changes", async () => {
    const stream = await follow("?kinds=listener,config");
    await api.create("/services", { name: "something-else" });
    await stream.receives(1);
    await api.create("/services", { name: "something-more" });
    const told = await stream.receives(2);
    expect(told.map(({ kind }) => kind)).toEqual(["config", "config"]);
  });
});

describe("500 readers", () => {
  const sockets: RawConnection[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.close();
  });

  /** On sockets of their own: Bun's fetch makes no more than 256 requests at once. */
  async function read(lastId = ""): Promise<RawConnection> {
    const socket = await connectRaw({ port: api.port });
    sockets.push(socket);
    const place = lastId === "" ? "" : `Last-Event-ID: ${lastId}\r\n`;
    socket.write(`GET /api/v1/events?kinds=config HTTP/1.1\r\nHost: localhost\r\n${place}\r\n`);
    await socket.until("retry: 3000");
    return socket;
  }

  const all = <T>(make: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: 500 }, (_, index) => make(index)));
  const namesIn = ({ received }: RawConnection) =>
    [...received.matchAll(/"changes":\[\{[^}]*"name":"([^"]+)"/g)].map(([, name]) => name);
  const create = async (names: readonly string[]) => {
    for (const name of names) await api.create("/services", { name });
  };

  test("receive every event once and in order, beside one that does not read", async () => {
    const silent = await read();
    silent.pause();
    const readers = await all(() => read());
    const wanted = Array.from({ length: 20 }, (_, n) => `reader-${n}`);
    await create(wanted);
    for (const reader of readers) {
      await eventually(() => namesIn(reader).length >= wanted.length);
      expect(namesIn(reader)).toEqual(wanted);
    }
  });

  test("that were disconnected and reconnect receive the missed events", async () => {
    const readers = await all(() => read());
    await create(["seen"]);
    const places: string[] = [];
    for (const reader of readers) {
      await eventually(() => namesIn(reader).length === 1);
      places.push([...reader.received.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1] ?? "");
      reader.close();
    }
    await create(["missed-1", "missed-2"]);
    const again = await all((index) => read(places[index]));
    await create(["then"]);
    for (const reader of again) {
      await eventually(() => namesIn(reader).length >= 3);
      expect(namesIn(reader)).toEqual(["missed-1", "missed-2", "then"]);
    }
  });
});
