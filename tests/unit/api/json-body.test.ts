// Reading a body times out when the client does not finish it.
import { expect, test } from "bun:test";
import { readJson } from "../../../src/api/json-body.ts";
import type { ApiError } from "../../../src/model/error.ts";

/** A request whose body continues until `next` returns nothing. */
function dripping(next: (count: number) => Promise<string | null>) {
  const seen = { isCancelled: false };
  let count = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const text = await next(count++);
      if (text === null) controller.close();
      else controller.enqueue(Buffer.from(text));
    },
    cancel() {
      seen.isCancelled = true;
    },
  });
  const headers = { "content-type": "application/json" };
  return { seen, request: new Request("http://localhost/", { method: "POST", headers, body }) };
}

test("a body that drips byte by byte gets 408 at the deadline, and the rest is not read", async () => {
  const { seen, request } = dripping(async (count) => {
    await Bun.sleep(1);
    return count === 0 ? "[" : " ";
  });
  const limits = { maxBytes: 1_048_576, deadlineMs: 50 };
  const error = (await readJson(request, limits).catch((reason: unknown) => reason)) as ApiError;
  expect([error.status, error.message, error.headers]).toEqual([
    408,
    "the body did not arrive within 0.05 seconds",
    { connection: "close" },
  ]);
  expect(seen.isCancelled).toBe(true);
});

test("a body that ends before the deadline is read", async () => {
  const parts = ['{"a"', ":1", "}", null];
  const { request } = dripping((count) => Promise.resolve(parts[count] ?? null));
  expect(await readJson(request)).toEqual({ a: 1 });
});
