// A gigabyte each way through the executable, with a peer that pauses reading: complete, and in little memory.
import { expect } from "bun:test";
import {
  abandonDownload,
  type BigOrigin,
  digestOf,
  downloadSlowly,
  peakMemory,
  startBigOrigin,
  upload,
} from "../integration/promise/big-bodies.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable");

const MEGABYTES = 1000;
const PAUSE_MS = 3000;
/** Of the whole gateway: control plane, store and one worker. */
const MOST_MEMORY_MB = 160;

let gateway: Gateway;
let origin: BigOrigin;

beforeAll(async () => {
  origin = startBigOrigin({ pauseMs: PAUSE_MS });
  gateway = await startGateway({ binary: executable, workers: 1 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "big", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "big", service_id: "big" });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

test("a gigabyte is downloaded by a slow reader and the gateway stays small", async () => {
  const got = await downloadSlowly(gateway.httpPort, { megabytes: MEGABYTES, pauseMs: PAUSE_MS });
  expect(got).toEqual(digestOf(MEGABYTES));
  expect(peakMemory(gateway.pid)).toBeLessThan(MOST_MEMORY_MB);
});

test("a gigabyte is uploaded to a slow target and the gateway stays small", async () => {
  expect(await upload(gateway.httpPort, MEGABYTES)).toEqual(digestOf(MEGABYTES));
  expect(peakMemory(gateway.pid)).toBeLessThan(MOST_MEMORY_MB);
});

test("clients that disconnect during a download end the requests to the target", async () => {
  const leaving = Array.from({ length: 20 }, () =>
    abandonDownload(gateway.httpPort, { megabytes: MEGABYTES, after: 2 }),
  );
  await Promise.all(leaving);
  await eventually(() => origin.open === 0);
  expect(peakMemory(gateway.pid)).toBeLessThan(MOST_MEMORY_MB);
});
