// Handlers of a plugin from a directory: which plugin runs, how long they may wait, and what their errors say.
import { describe, expect, test } from "bun:test";
import { guardHandlers } from "../../../src/dataplane/plugin/guarded-handlers.ts";
import type { PluginHandlers } from "../../../src/pdk/definition.ts";
import { reply } from "../../../src/pdk/response.ts";
import { eventually } from "../../support/poll.ts";

const guarded = (handlers: PluginHandlers, timeoutMs = 1000) => {
  const running = new Float64Array(1);
  const failures: string[] = [];
  const failed = ({ message }: Error) => void failures.push(message);
  return {
    running,
    failures,
    ...guardHandlers(handlers, { number: 7, running, timeoutMs, failed }),
  };
};
const context = {} as never;

describe("the cell of the worker", () => {
  test("holds the plugin while it runs, and the one before after that", () => {
    const seen: unknown[] = [];
    const outer: ReturnType<typeof guarded> = guarded({
      access() {
        seen.push(outer.running[0]);
        outer.running[0] = 9;
        return undefined;
      },
    });
    outer.running[0] = 3;
    outer.access?.(context);
    expect([...seen, outer.running[0]]).toEqual([7, 3]);
  });

  test("is empty again after an error", () => {
    const plugin = guarded({
      log() {
        throw new Error("no");
      },
    });
    expect(() => plugin.log?.(context)).toThrow("log: no");
    expect(plugin.running[0]).toBe(0);
  });
});

describe("a promise", () => {
  test("may take as long as the timeout, and no longer", async () => {
    const settles = Promise.withResolvers<undefined>();
    const waiting = guarded({ access: () => settles.promise }, 200).access?.(context);
    settles.resolve(undefined);
    expect(await waiting).toBeUndefined();
    const never = guarded({ access: () => new Promise(() => {}) }, 1);
    await expect(Promise.resolve(never.access?.(context))).rejects.toThrow(
      "access: no result within 1 ms",
    );
  });

  test("expires in the order of the calls", async () => {
    const order: number[] = [];
    const { access } = guarded({ access: () => new Promise(() => {}) }, 20);
    const waits = [1, 2, 3].map(async (call) => {
      await Promise.resolve(access?.(context)).catch(() => order.push(call));
    });
    await Promise.all(waits);
    expect(order).toEqual([1, 2, 3]);
  });

  test("that settles too late has the body of its response closed", async () => {
    const late = Promise.withResolvers<ReturnType<typeof reply>>();
    let isClosed = false;
    const close = () => {
      isClosed = true;
    };
    const { access } = guarded({ access: () => late.promise }, 1);
    await Promise.resolve(access?.(context)).catch(() => undefined);
    const body = { next: () => null, close };
    late.resolve({ ...reply(200, "late"), body: body as never });
    await eventually(() => isClosed);
  });

  test("of a handler that cannot wait is reported when it fails", async () => {
    const { response, failures } = guarded({
      response: (async () => {
        await Promise.resolve();
        throw new Error("too late");
      }) as never,
    });
    expect(response?.(context, context)).toBeUndefined();
    await eventually(() => failures.length > 0);
    expect(failures).toEqual(["response: too late"]);
  });
});

test("handlers of a class keep their object", () => {
  class Handlers {
    word = "mine";
    access() {
      return { kind: "reply", reason: this.word } as never;
    }
  }
  expect(guarded(new Handlers()).access?.(context)).toMatchObject({ reason: "mine" });
});
