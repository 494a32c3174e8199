// The default timeouts in their real length, against the executable: five and a half minutes, so only on request.
import { expect } from "bun:test";
import {
  isUsedAndThenClosed,
  listensFor,
  startSlowOrigin,
  uploadsFor,
  waitsFor,
} from "../integration/promise/idle-times.ts";
import { slowClients } from "../integration/promise/slow-clients.ts";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const isWanted = process.env["SLUICE_LONG_TESTS"] === "1";
const { test } = needs("executable", {
  lacks: isWanted ? null : "SLUICE_LONG_TESTS=1, for it takes five and a half minutes",
});
const MINUTE_MS = 60_000;

test(
  "uploads of 100 s, 90 s to the first byte and event streams that are silent for 5 minutes",
  async () => {
    const origin = startSlowOrigin();
    const gateway = await startGateway({ binary: executable, workers: 1 });
    try {
      await gateway.ok("POST", "/api/v1/services", {
        name: "slow",
        targets: [{ host: "127.0.0.1", port: origin.port }],
        response_timeout: 2 * MINUTE_MS,
        read_timeout: 6 * MINUTE_MS,
      });
      await gateway.ok("POST", "/api/v1/routes", { name: "slow", service_id: "slow" });
      const [{ idle_timeout: idleS }] = await gateway.ok("GET", "/api/v1/listeners");
      expect(idleS).toBe(75);
      const idleMs = idleS * 1000;
      const cases = slowClients.flatMap((client) => {
        const scene = { client, port: client.tls ? gateway.httpsPort : gateway.httpPort, idleMs };
        const upload = { forMs: 100_000, bytesEachSecond: 20_000 };
        return [
          uploadsFor(scene, upload).then((used) => isUsedAndThenClosed(scene, used)),
          waitsFor(scene, 90_000).then((used) => isUsedAndThenClosed(scene, used)),
          listensFor(scene, 5 * MINUTE_MS).then((used) => used.close()),
        ];
      });
      await Promise.all(cases);
    } finally {
      await gateway.stop();
      origin.stop();
    }
  },
  7 * MINUTE_MS,
);
