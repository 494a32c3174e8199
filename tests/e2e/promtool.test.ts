// Prometheus's own tool accepts the output of `/metrics` after traffic of every kind.
import { expect } from "bun:test";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { startOrigin } from "../support/origin.ts";
import { eventually } from "../support/poll.ts";

const { test } = needs("promtool");

test("promtool check metrics reports no problem", async () => {
  const origin = startOrigin();
  const gateway = await startGateway({ workers: 2 });
  try {
    await gateway.ok("POST", "/api/v1/services", {
      name: "shop",
      targets: [{ host: "127.0.0.1", port: origin.port }],
    });
    await gateway.ok("POST", "/api/v1/routes", { name: "a", service_id: "shop", paths: ["/a"] });
    await gateway.ok("POST", "/api/v1/certificates", {
      name: "own",
      source: "self_signed",
      domains: ["a.test"],
    });
    await gateway.ok("POST", "/api/v1/plugins", { name: "cors", config: {} });
    for (const path of ["/a", "/nothing"])
      await (await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`)).text();
    const text = await eventually(async () => {
      const metrics = await (await gateway.api("GET", "/metrics")).text();
      return metrics.includes('route="a"') && metrics.includes('route="_none"') ? metrics : null;
    });
    const checked = Bun.spawn(["promtool", "check", "metrics"], {
      stdin: new Blob([text]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const read = (stream: ReadableStream) => new Response(stream).text();
    const said = (await read(checked.stdout)) + (await read(checked.stderr));
    expect([await checked.exited, said]).toEqual([0, ""]);
  } finally {
    await gateway.stop();
    await origin.stop();
  }
}, 30_000);
