// Merged event streams at their bounds: events that wait, streams that are open, kinds that other nodes may send.
import { expect, test } from "bun:test";
import { type NodeReads, type NodeStream, UnreadNode } from "../../../src/control/node-reads.ts";
import { eventually } from "../../support/poll.ts";
import { type MergedReader, NodeStreams } from "../../../src/control/node-streams.ts";

/** Much longer than the machine may pause between two lines of a test. */
const RETRY_MS = 400;

/** A fleet of n1, which is this node, and n2, whose stream is in the hands of the test. */
function scene() {
  const followed: NodeStream[] = [];
  const endings: ((error: UnreadNode) => void)[] = [];
  const reads: NodeReads = {
    nodes: () => [
      { id: "1", name: "n1" },
      { id: "2", name: "n2" },
    ],
    read: () => Promise.reject(new UnreadNode("not here")),
    follow: (_id, _read, stream) => {
      followed.push(stream);
      return new Promise((_, reject) => {
        endings.push(reject);
        stream.signal.addEventListener("abort", () => reject(new UnreadNode("aborted")));
      });
    },
    verify: () => null,
  };
  const streams = new NodeStreams({ id: "1", name: "n1", reads, retryMs: RETRY_MS });
  const own: { id: string; kind: string; data: string }[] = [];
  const open = () =>
    streams.subscribe(
      {
        asked: "all",
        path: "/api/v1/events",
        role: "viewer",
        kinds: ["request"],
        own: () => ({ next: () => own.shift() ?? null, close: () => undefined }),
      },
      () => undefined,
    );
  return { followed, endings, own, open };
}

function rest(reader: MergedReader): string[] {
  const all: string[] = [];
  for (let event = reader.next(); event !== null; event = reader.next())
    all.push(`${event.kind} ${event.data}`);
  return all;
}

test("events of all nodes have their node, and none has an id", () => {
  const { followed, own, open } = scene();
  const reader = open();
  followed[0]?.onOpen();
  expect(rest(reader)).toEqual(['nodes {"partial":false,"missing":[]}']);
  own.push({ id: "7", kind: "request", data: '{"path":"/"}' });
  followed[0]?.onEvent("request", "{}");
  followed[0]?.onEvent("request", '{"node":"n9"}');
  expect(reader.next()).toEqual({ id: null, kind: "request", data: '{"path":"/","node":"n1"}' });
  expect(rest(reader).map((text) => JSON.parse(text.slice(8)))).toEqual([
    { node: "n2" },
    { node: "n2" },
  ]);
  reader.close();
  expect(followed[0]?.signal.aborted).toBe(true);
});

test("kinds that were not asked for, and what is no object, is dropped", () => {
  const { followed, open } = scene();
  const reader = open();
  for (const [kind, data] of [
    ["audit", "{}"],
    ["nodes", "{}"],
    ["request", "[]"],
    ["request", "null"],
    ["request", "{"],
    ["request", ' {"a":1}'],
  ] as const)
    followed[0]?.onEvent(kind, data);
  expect(rest(reader)).toEqual([]);
  reader.close();
});

test("a thousand events wait for a slow client; of more, the number arrives", () => {
  const { followed, open } = scene();
  const reader = open();
  for (let sent = 0; sent < 1000; sent++) followed[0]?.onEvent("request", "{}");
  expect(rest(reader)).toHaveLength(1000);
  for (let sent = 0; sent < 1003; sent++) followed[0]?.onEvent("request", "{}");
  expect(rest(reader)[0]).toBe('dropped {"count":3}');
  reader.close();
});

test("32 streams may be open", () => {
  const { open } = scene();
  const readers = Array.from({ length: 32 }, open);
  expect(open).toThrow("too many event streams of several nodes are open");
  readers.pop()?.close();
  readers.push(open());
  for (const reader of readers) reader.close();
});

test("a stream that was open for a while is opened again at once; one that ends early makes the node a missing one", async () => {
  const { followed, endings, open } = scene();
  const reader = open();
  followed[0]?.onOpen();
  await Bun.sleep(RETRY_MS + 5);
  endings[0]?.(new UnreadNode("its stream has ended"));
  await eventually(() => followed.length === 2, { intervalMs: 1 });
  expect(rest(reader)).toEqual(['nodes {"partial":false,"missing":[]}']);
  followed[1]?.onOpen();
  endings[1]?.(new UnreadNode("it refused the connection"));
  const missing = [{ name: "n2", why: "it refused the connection" }];
  await eventually(() =>
    rest(reader).includes(`nodes ${JSON.stringify({ partial: true, missing })}`),
  );
  await eventually(() => followed.length === 3);
  reader.close();
});
