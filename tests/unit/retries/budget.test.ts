// The budget of retries: a share of the requests and a reserve, one for all workers.
import { expect, test } from "bun:test";
import { deposit, withdraw } from "../../../src/shared-memory/retry-budget.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";

const START = Date.now();

function setUp() {
  const board = TargetBoard.create(2, { now: START - 60_000 });
  return { board, other: new TargetBoard(board.buffer), service: board.rowOf("app") };
}

/** Withdraws until none is left; returns how many. */
function takeAll(board: TargetBoard, service: number, now: number): number {
  let taken = 0;
  while (taken < 10_000 && withdraw(board, service, { percent: 20, now })) taken++;
  return taken;
}

test("a quiet service may make 100 at once, then ten a second, and accumulates 100 at most", () => {
  const { board, service } = setUp();
  expect(takeAll(board, service, START)).toBe(100);
  expect(takeAll(board, service, START)).toBe(0);
  expect(takeAll(board, service, START + 1000)).toBe(10);
  expect(takeAll(board, service, START + 1000)).toBe(0);
  expect(takeAll(board, service, START + 3_600_000)).toBe(100);
});

test.each([0, 1, 20, 50, 100])("of 1000 requests %i percent may be retried", (percent) => {
  const { board, service } = setUp();
  takeAll(board, service, START);
  let taken = 0;
  for (let request = 0; request < 1000; request++) {
    deposit(board, service, percent);
    if (withdraw(board, service, { percent: 20, now: START })) taken++;
  }
  expect(taken).toBe(percent * 10);
});

test("requests without retries accumulate nothing", () => {
  const { board, service } = setUp();
  for (let request = 0; request < 10_000; request++) deposit(board, service, 100);
  expect(takeAll(board, service, START)).toBe(100);
});

test("workers share it", () => {
  const { board, other, service } = setUp();
  let taken = 0;
  for (let turn = 0; turn < 200; turn++)
    if (withdraw(turn % 2 === 0 ? board : other, service, { percent: 20, now: START })) taken++;
  expect(taken).toBe(100);
  for (let request = 0; request < 5; request++) deposit(other, service, 20);
  expect(takeAll(board, service, START)).toBe(1);
});

test("0 percent allows none", () => {
  const { board, service } = setUp();
  expect(withdraw(board, service, { percent: 0, now: START })).toBe(false);
});

test("services do not share it", () => {
  const { board, service } = setUp();
  takeAll(board, service, START);
  expect(takeAll(board, board.rowOf("other"), START)).toBe(100);
});
