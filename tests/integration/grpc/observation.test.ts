// gRPC calls in the request list, the statistics, the and metrics of a running gateway.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import {
  answer,
  answerOpen,
  GrpcClient,
  type GrpcServer,
  startGrpcServer,
} from "../../support/grpc-calls.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";

let gateway: Gateway;
let server: GrpcServer;
let client: GrpcClient;
const port = quietPort();

interface Entry {
  readonly path: string;
  readonly status: number;
  readonly grpc: { readonly status: number; readonly name: string } | null;
}

beforeAll(async () => {
  server = await startGrpcServer(({ headers, ...call }) => {
    const status = String(headers[":path"]).slice("/calls.S/".length);
    if (status === "open") answerOpen({ headers, ...call }, "first");
    else answer({ headers, ...call }, [], { "grpc-status": status });
  });
  gateway = await startGateway({ workers: 1 });
  await gateway.ok("POST", "/api/v1/listeners", {
    name: "grpc",
    address: "127.0.0.1",
    port,
    engine: "sluice",
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "calls",
    protocol: "grpc",
    targets: [{ host: "127.0.0.1", port: server.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "calls",
    service_id: "calls",
    paths: ["/calls.S"],
  });
  client = GrpcClient.connectPlain(port);
  for (const status of [0, 14, 5]) await client.unary(`/calls.S/${status}`);
  await client.unary("/none.S/M");
});
afterAll(async () => {
  client?.close();
  await gateway?.stop();
  await server?.stop();
});

const list = (query: string): Promise<Entry[]> => gateway.ok("GET", `/api/v1/requests?${query}`);

test("the request list has the status of calls, and filters by it", async () => {
  const all = await eventually(async () => {
    const found = await list("kind=http");
    return found.length >= 4 ? found : null;
  });
  expect(all.map(({ path, status, grpc }) => [path, status, grpc?.name])).toEqual([
    ["/none.S/M", 404, "UNIMPLEMENTED"],
    ["/calls.S/5", 404, "NOT_FOUND"],
    ["/calls.S/14", 503, "UNAVAILABLE"],
    ["/calls.S/0", 200, "OK"],
  ]);
  const paths = async (query: string) => (await list(query)).map(({ path }) => path);
  expect(await paths("grpc=14")).toEqual(["/calls.S/14"]);
  expect(await paths("grpc=not_found")).toEqual(["/calls.S/5"]);
  expect(await paths("grpc=error")).toEqual(["/none.S/M", "/calls.S/5", "/calls.S/14"]);
  expect(await paths("status=5xx")).toEqual(["/calls.S/14"]);
  const refused = await gateway.api("GET", "/api/v1/requests?grpc=17");
  expect(refused.status).toBe(400);
});

test("metrics count calls by status", async () => {
  const family = await eventually(async () => {
    const text = await (await gateway.api("GET", "/metrics")).text();
    return readMetrics(text, "prometheus").families.get("sluice_grpc_requests_total");
  });
  const counts = family.samples.map(({ labels, value }) => [labels["grpc_status"], value]);
  expect(Object.fromEntries(counts)).toEqual({
    OK: 1,
    UNAVAILABLE: 1,
    NOT_FOUND: 1,
    UNIMPLEMENTED: 1,
  });
});

test("a call that its client cancels is listed as such, not as a failure", async () => {
  const call = client.open("/calls.S/open");
  await eventually(() => call.messages.length === 1);
  call.stream.close(8);
  const [entry] = await eventually(async () => {
    const found = await list("grpc=cancelled");
    return found.length > 0 ? found : null;
  });
  expect(entry).toMatchObject({ path: "/calls.S/open", status: 499 });
});
