// The setting SLUICE_DNS_SERVERS in the whole product: workers in threads of their own ask the servers that it names.
import { expect, test } from "bun:test";
import { startDnsServer } from "../../support/dns-server.ts";
import { startGateway } from "../../support/gateway.ts";
import { reply, startOrigin } from "../../support/origin.ts";

test("targets are found through the name servers of SLUICE_DNS_SERVERS", async () => {
  const origin = startOrigin({ hostname: "127.0.0.2", answer: reply("found") });
  const dns = await startDnsServer({ "app.test": [{ type: "A", value: "127.0.0.2" }] });
  const gateway = await startGateway({ env: { SLUICE_DNS_SERVERS: dns.address } });
  try {
    await gateway.ok("POST", "/api/v1/services", {
      name: "app",
      targets: [{ host: "app.test", port: origin.port }],
    });
    await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "app" });
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`);
    expect([response.status, await response.text()]).toEqual([200, "found"]);
    expect(dns.questions).toContain("A app.test");
  } finally {
    await gateway.stop();
    dns.stop();
    origin.stop();
  }
});
