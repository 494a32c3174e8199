// On-demand certificates: which permission checks the gateway makes for a name, and how often.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { AcmeWorld } from "./scene.ts";

let world: AcmeWorld;
let judge: ReturnType<typeof Bun.serve>;
const asked: string[] = [];

beforeEach(async () => {
  asked.length = 0;
  judge = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      asked.push(new URL(request.url).searchParams.get("domain") ?? "");
      return new Response();
    },
  });
  world = await AcmeWorld.start();
});
afterEach(async () => {
  await world.stop();
  await judge.stop(true);
});

test("a name with a certificate is not checked: workers may report handshakes late", async () => {
  const ask_url = `http://127.0.0.1:${judge.port}/`;
  await world.order("template", {
    domains: [],
    on_demand: { ask_url, hosts: ["*.shops.test"] },
  });
  const { engine } = world.control.acme;
  engine.wanted("a.shops.test");
  await eventually(() => world.becomes("template a.shops.test", "valid").catch(() => null));
  expect(asked).toEqual(["a.shops.test"]);
  engine.wanted("a.shops.test");
  engine.wanted("b.shops.test");
  await eventually(() => asked.includes("b.shops.test"));
  expect(asked).toEqual(["a.shops.test", "b.shops.test"]);
});
