// Open gRPC streams through changes of the configuration, and through a drain.
import { afterEach, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type DataPlaneChange, startDataPlane } from "../../support/data-plane.ts";
import { answerOpen, type Call, GrpcClient, startGrpcServer } from "../../support/grpc-calls.ts";
import { eventually } from "../../support/poll.ts";

const cleanups = cleanupsOf(afterEach);

async function scene(streams: number) {
  const server = await startGrpcServer((call) => answerOpen(call, "first"));
  cleanups.push(() => server.stop());
  const plane = await startDataPlane({
    tls: await selfSigned(),
    listener: { engine: "sluice" },
    services: [
      { name: "calls", protocol: "grpc", targets: [{ port: server.port }] },
      { name: "other", protocol: "grpc", targets: [{ port: server.port }] },
    ],
    routes: [
      { name: "calls", paths: ["/calls.S"], service_id: "calls" },
      { name: "other", paths: ["/other.S"], service_id: "other" },
    ],
  });
  cleanups.push(() => plane.stop());
  const client = GrpcClient.connect(plane.port);
  cleanups.push(() => client.close());
  const open = async (path: string): Promise<Call> => {
    const call = client.open(path);
    await eventually(() => call.messages.length === 1);
    return call;
  };
  const calls: Call[] = [];
  for (let count = 0; count < streams; count++) calls.push(await open("/calls.S/M"));
  /** Each stream still passes a message each way, and ends as the target says. */
  const finish = async (): Promise<void> => {
    for (const call of calls) call.send("second");
    await eventually(() =>
      server.calls.slice(0, streams).every((call) => call.messages().length === 1),
    );
    for (const { stream } of server.calls.slice(0, streams)) stream.end();
    for (const call of calls) {
      call.stream.end();
      expect((await call.ended).status).toBe(0);
    }
  };
  return { plane, client, calls, finish };
}

test.each<[string, DataPlaneChange]>([
  ["the removal of another route", { removedRoutes: ["other"] }],
  ["the removal of its own route", { removedRoutes: ["calls"] }],
  ["the removal of its own service", { removedRoutes: ["calls"], removedServices: ["calls"] }],
  ["a plugin that would refuse it", { plugins: [{ name: "key-auth" }] }],
  [
    "limits that it exceeds",
    {
      routes: [
        { name: "calls", paths: ["/calls.S"], service_id: "calls", grpc_max_message_bytes: 1 },
      ],
    },
  ],
])("an open stream outlives %s", async (_what, change) => {
  const { plane, finish } = await scene(2);
  await plane.apply(change);
  await finish();
});

test("new calls follow the change at once", async () => {
  const { plane, client, finish } = await scene(1);
  await plane.apply({ removedRoutes: ["calls"] });
  expect((await client.unary("/calls.S/M")).status).toBe(12);
  await finish();
});

test("twenty streams outlive fifty changes", async () => {
  const { plane, finish } = await scene(20);
  for (let count = 0; count < 50; count++)
    await plane.apply({
      routes: [{ name: `r${count % 5}`, paths: [`/p${count}`], service_id: "other" }],
    });
  await finish();
});

test("a drain waits for streams", async () => {
  const { plane, finish } = await scene(3);
  const drained = plane.drain(10_000);
  await finish();
  expect(await drained).toBe(0);
});

test("a drain whose time ends ends calls with a status", async () => {
  const { plane, calls } = await scene(3);
  expect(await plane.drain(100)).toBe(3);
  for (const call of calls) {
    const { status, message } = await call.ended;
    expect([status, message]).toEqual([14, "the gateway stops"]);
  }
});
