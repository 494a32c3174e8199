// Prometheus's own tool accepts the output of `/metrics` after traffic of every kind.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { startOrigin } from "../support/origin.ts";
import { eventually } from "../support/poll.ts";

const { test } = needs("promtool");

async function promtool(words: readonly string[], input = "") {
  const child = Bun.spawn(["promtool", ...words], {
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const read = (stream: ReadableStream) => new Response(stream).text();
  const output = (await read(child.stdout)) + (await read(child.stderr));
  return { code: await child.exited, output };
}

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
    expect(await promtool(["check", "metrics"], text)).toEqual({ code: 0, output: "" });
  } finally {
    await gateway.stop();
    await origin.stop();
  }
});

/** Two nodes, one of them with two routes. */
const RULE_TEST = {
  rule_files: ["rules.yaml"],
  tests: [
    {
      interval: "1m",
      input_series: [
        { series: 'sluice_node_info{instance="a:9080",node="n1",node_id="1"}', values: "1x10" },
        { series: 'sluice_node_info{instance="b:9080",node="n2",node_id="2"}', values: "1x10" },
        { series: 'sluice_requests_total{instance="a:9080",route="x"}', values: "0+60x10" },
        { series: 'sluice_requests_total{instance="a:9080",route="y"}', values: "0+120x10" },
        { series: 'sluice_requests_total{instance="b:9080",route="x"}', values: "0+240x10" },
      ],
      promql_expr_test: [
        {
          expr: "node:sluice_requests:rate5m",
          eval_time: "10m",
          exp_samples: [
            { labels: 'node:sluice_requests:rate5m{node="n1"}', value: 3 },
            { labels: 'node:sluice_requests:rate5m{node="n2"}', value: 4 },
          ],
        },
      ],
    },
  ],
};

test("the rules in the docs give requests the name of their node", async () => {
  const page = await Bun.file("docs/metrics.md").text();
  const rules = /```yaml\n(groups:[^`]*)```/.exec(page)?.[1] ?? "";
  const directory = mkdtempSync(join(tmpdir(), "sluice-rules-"));
  try {
    await Bun.write(join(directory, "rules.yaml"), rules);
    await Bun.write(join(directory, "test.yaml"), JSON.stringify(RULE_TEST));
    expect(await promtool(["check", "rules", join(directory, "rules.yaml")])).toMatchObject({
      code: 0,
    });
    const tested = await promtool(["test", "rules", join(directory, "test.yaml")]);
    expect(tested).toMatchObject({ code: 0 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
