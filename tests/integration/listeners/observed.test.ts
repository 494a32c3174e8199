// What metrics and the list of requests tell of listeners that end TLS at the front.
import { expect, test } from "bun:test";
import { readMetrics } from "../../support/metrics-text.ts";
import { eventually } from "../../support/poll.ts";
import { usePeople } from "./people.ts";
import { ask, useListeners } from "./world.ts";

const { api, listener } = useListeners();
const people = usePeople(api);
const { required, shown } = people;

test("handshakes are counted, and requests tell the TLS version", async () => {
  const port = await listener("shaken", required());
  for (let round = 0; round < 3; round++)
    await ask(port, { servername: "a.test", minVersion: "TLSv1.3", ...shown(people.good) });
  const handshakes = (result: string) => async () => {
    const text = await (await api.gateway.api("GET", "/metrics")).text();
    const { sum } = readMetrics(text, "prometheus");
    return sum("sluice_tls_handshakes_total", { listener: "shaken", result });
  };
  await eventually(async () => (await handshakes("ok")()) === 3);
  const [request] = await api.gateway.ok("GET", "/api/v1/requests?limit=1");
  expect(request).toMatchObject({ scheme: "https", tls_version: "TLSv1.3" });
  expect(await handshakes("failed")()).toBe(0);
});
