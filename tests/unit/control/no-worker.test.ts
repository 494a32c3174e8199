// What needs a worker responds with 503 while none runs, and says what to do.
import { expect, test } from "bun:test";
import { configOf, controlPlane, options, route } from "./fixture.ts";

const { explain, connections } = controlPlane(configOf({ routes: [route("a")] })).control;

const cases: [what: string, run: () => Promise<unknown>][] = [
  ["an explanation", () => explain.explain({ url: "http://a.test/" })],
  ["the list of connections of a route", () => connections.ofRoute("a")],
  ["the end of a connection", () => connections.kill("1-w1-x", options.by)],
];
test.each(cases)("%s", async (_, run) => {
  const error = await run().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
  expect((error as Error).message).toStartWith("no worker is running at the moment; the gateway");
});
