// What a node keeps of the notifications that another node of its fleet sends.
import { expect, test } from "bun:test";
import { noticeKey, PendingNotices } from "../../../../src/observe/alerts/pending-notices.ts";
import { type Notice, testNotice } from "../../../../src/observe/alerts/notice.ts";

const MINUTE = 60_000;

const noticeOf = (id: string, status: Notice["status"] = "firing"): Notice => ({
  ...testNotice("2026-01-01T00:00:00.000Z"),
  event: status === "firing" ? "target_down" : "target_up",
  status,
  object: { kind: "target", id, name: id },
});

const idsOf = (notices: readonly Notice[]) =>
  notices.map(({ object: { id }, status }) => `${id} ${status}`);

test("what was not sent is taken once, in order", () => {
  const pending = new PendingNotices();
  for (const id of ["a", "b", "c"]) pending.put(noticeOf(id), 0);
  pending.put(noticeOf("a", "resolved"), 0);
  pending.sent(noticeKey(noticeOf("b")), 1);
  expect(idsOf(pending.take(2))).toEqual(["a firing", "c firing", "a resolved"]);
  expect(pending.take(2)).toEqual([]);
});

test("of two equal ones each needs to be sent", () => {
  const pending = new PendingNotices();
  const notice = noticeOf("a");
  pending.put(notice, 0);
  pending.put(notice, 1);
  pending.sent(noticeKey(notice), 2);
  expect(idsOf(pending.take(3))).toEqual(["a firing"]);
});

test("what was sent before this node saw it is not kept, unless that was long ago", () => {
  const pending = new PendingNotices();
  const notice = noticeOf("a");
  pending.sent(noticeKey(notice), 0);
  pending.put(notice, MINUTE - 1);
  expect(pending.take(MINUTE)).toEqual([]);
  pending.sent(noticeKey(notice), 0);
  pending.put(notice, MINUTE);
  expect(idsOf(pending.take(MINUTE))).toEqual(["a firing"]);
});

test("it is kept as long as another node may try to send it", () => {
  const pending = new PendingNotices();
  pending.put(noticeOf("a"), 0);
  pending.put(noticeOf("b"), 1);
  expect(idsOf(pending.take(15 * MINUTE))).toEqual(["b firing"]);
});

test("the newest 100 are kept", () => {
  const pending = new PendingNotices();
  for (let number = 0; number <= 100; number++) pending.put(noticeOf(String(number)), 0);
  const ids = idsOf(pending.take(0));
  expect([ids.length, ids[0]]).toEqual([100, "1 firing"]);
});
