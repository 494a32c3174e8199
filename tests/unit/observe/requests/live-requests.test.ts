// Live requests for readers at different speeds: each gets the matching ones, or the number of skipped ones.
import { afterEach, describe, expect, test } from "bun:test";
import { type LiveReader, LiveRequests } from "../../../../src/observe/requests/live-requests.ts";
import type { RequestFilter } from "../../../../src/observe/requests/request-filter.ts";
import type { RequestView } from "../../../../src/observe/requests/request-view.ts";
import { RequestRing } from "../../../../src/shared-memory/request-ring.ts";
import { eventually } from "../../../support/poll.ts";
import { factsOf } from "../../shared-memory/request-facts.ts";

const readers: LiveReader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

function scene(capacity = 10_000) {
  const ring = RequestRing.create(capacity);
  const live = new LiveRequests({
    ring: () => ring,
    view: (entry) => ({ id: entry.id, attempts: entry.attempts }) as unknown as RequestView,
  });
  const open = (filter: Partial<RequestFilter> = {}) => {
    const state = { wakes: 0 };
    const all = { key: "", matchesStatus: () => true, matches: () => true, ...filter };
    const reader = live.subscribe(all, () => state.wakes++);
    readers.push(reader);
    return { reader, state };
  };
  const write = (count: number, worker = 0) => {
    for (let request = 0; request < count; request++) ring.write(factsOf(worker, request), worker);
  };
  return { ring, live, open, write };
}

function readAll(reader: LiveReader) {
  const found = { requests: [] as string[], dropped: 0 };
  for (let event = reader.next(); event !== null; event = reader.next()) {
    const data = JSON.parse(event.data);
    if (event.kind === "dropped") found.dropped += data.count;
    else found.requests.push(data.id);
  }
  return found;
}

test("a reader gets the requests that end after it subscribed, in order", async () => {
  const { open, write } = scene();
  write(5);
  const { reader, state } = open();
  write(3, 1);
  await eventually(() => state.wakes > 0);
  expect(readAll(reader)).toEqual({ requests: ["1-0", "1-1", "1-2"], dropped: 0 });
});

test("a reader gets only requests that match its filter, and statuses are checked first", async () => {
  const { open, write } = scene();
  const asked: number[] = [];
  const { reader, state } = open({
    key: "odd",
    matchesStatus: (status) => status === 201,
    matches: (view) => {
      asked.push(view.attempts);
      return view.attempts % 2 === 1;
    },
  });
  write(4, 0);
  write(4, 1);
  await eventually(() => state.wakes > 0);
  expect(readAll(reader).requests).toEqual(["1-1", "1-3"]);
  expect(asked).toEqual([0, 1, 2, 3]);
});

describe("skipped requests are counted", () => {
  test("when it reads too slowly: sent and dropped are all that there were", async () => {
    const { open, write } = scene();
    const { reader, state } = open();
    for (let round = 1; round <= 4; round++) {
      write(700);
      await eventually(() => state.wakes >= round);
    }
    const { requests, dropped } = readAll(reader);
    expect(requests.length).toBe(1000);
    expect(requests.length + dropped).toBe(2800);
    write(1);
    await eventually(() => state.wakes >= 5);
    expect(readAll(reader)).toEqual({ requests: ["0-0"], dropped: 0 });
  });

  test("when there are more at once than are read", async () => {
    const { open, write } = scene();
    const { reader, state } = open();
    write(5000);
    await eventually(() => state.wakes > 0);
    const { requests, dropped } = readAll(reader);
    expect(requests.length + dropped).toBe(5000);
    expect(dropped).toBe(4000);
  });

  test("when the ring has overwritten them", async () => {
    const { open, write } = scene(100);
    const { reader, state } = open();
    write(250);
    await eventually(() => state.wakes > 0);
    expect(readAll(reader)).toMatchObject({ dropped: 150, requests: { length: 100 } });
  });

  test("and do not delay other readers", async () => {
    const { open, write } = scene();
    const [slow, fast] = [open(), open()];
    let read = 0;
    for (let round = 1; round <= 3; round++) {
      write(600);
      await eventually(() => fast.state.wakes >= round);
      read += readAll(fast.reader).requests.length;
    }
    expect(read).toBe(1800);
    expect(readAll(slow.reader)).toMatchObject({ dropped: 800, requests: { length: 1000 } });
  });
});

test("500 readers get the same", async () => {
  const { open, write } = scene();
  const all = Array.from({ length: 500 }, () => open());
  write(20);
  await eventually(() => all.every(({ state }) => state.wakes > 0));
  for (const { reader } of all) expect(readAll(reader).requests.length).toBe(20);
});

test("a reader after a time without readers gets no earlier requests", async () => {
  const { open, write } = scene();
  open().reader.close();
  write(10);
  const { reader, state } = open();
  write(1, 2);
  await eventually(() => state.wakes > 0);
  expect(readAll(reader).requests).toEqual(["2-0"]);
});
