// The message history of an alert: the last messages and the result of each.
import { expect, test } from "bun:test";
import { MessageHistory } from "../../../../src/observe/alerts/message-history.ts";
import { testNotice } from "../../../../src/observe/alerts/notice.ts";

const notice = (id: string) => ({ ...testNotice("2026-01-01T00:00:00.000Z"), id });

test("messages are listed with their results, the newest first", () => {
  const history = new MessageHistory();
  for (const id of ["a", "b", "c"]) history.put(notice(id));
  history.delivered("a");
  history.lost("b", "nobody answers");
  history.delivered("forgotten");
  expect(history.list().map(({ id, delivery, detail }) => [id, delivery, detail])).toEqual([
    ["c", "waiting", null],
    ["b", "lost", "nobody answers"],
    ["a", "delivered", null],
  ]);
});

test("the last hundred are kept", () => {
  const history = new MessageHistory();
  for (let index = 0; index < 130; index++) history.put(notice(`n${index}`));
  const ids = history.list().map(({ id }) => id);
  expect([ids.length, ids[0], ids[99]]).toEqual([100, "n129", "n30"]);
});
