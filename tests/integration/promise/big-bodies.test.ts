// Bodies pass through at the speed of the slower side, in constant memory, and stop when the client disconnects.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import {
  abandonDownload,
  type BigOrigin,
  digestOf,
  downloadSlowly,
  peakMemory,
  startBigOrigin,
  upload,
} from "./big-bodies.ts";

const MEGABYTES = 200;
/** Long enough for every buffer on the way to fill. */
const PAUSE_MS = 1500;
/** Far less than the bodies, so that none is kept as a whole. */
const MOST_GROWTH_MB = 60;

const cleanups = cleanupsOf(afterEach);

async function scene(): Promise<{ gateway: Gateway; origin: BigOrigin }> {
  const origin = startBigOrigin({ pauseMs: PAUSE_MS });
  cleanups.push(() => origin.stop());
  const gateway = await startGateway({ workers: 1 });
  cleanups.push(() => gateway.stop());
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "big", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "big", service_id: "big" });
  return { gateway, origin };
}

test("a download to a client that pauses reading arrives whole, in constant memory", async () => {
  const { gateway } = await scene();
  const before = peakMemory(gateway.pid);
  const got = await downloadSlowly(gateway.httpPort, { megabytes: MEGABYTES, pauseMs: PAUSE_MS });
  expect(got).toEqual(digestOf(MEGABYTES));
  expect(peakMemory(gateway.pid) - before).toBeLessThan(MOST_GROWTH_MB);
});

test("an upload to a target that pauses reading arrives whole, in constant memory", async () => {
  const { gateway } = await scene();
  const before = peakMemory(gateway.pid);
  expect(await upload(gateway.httpPort, MEGABYTES)).toEqual(digestOf(MEGABYTES));
  expect(peakMemory(gateway.pid) - before).toBeLessThan(MOST_GROWTH_MB);
});

test("a client that disconnects during a download ends the request to the target", async () => {
  const { gateway, origin } = await scene();
  await abandonDownload(gateway.httpPort, { megabytes: MEGABYTES, after: 10 });
  await eventually(() => origin.open === 0);
});
