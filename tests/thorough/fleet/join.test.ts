// A node that comes back while the database of its fleet is silent.
import { expect, test } from "bun:test";
import { join } from "../../../src/fleet/join.ts";
import { queryTimes } from "../../../src/fleet/postgres-connection.ts";
import { PostgresSource } from "../../../src/fleet/postgres-source.ts";

test("a node that knows its fleet starts before a silent database counts as unreachable", async () => {
  // It accepts connections and says nothing, as a network that drops packets.
  using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  const urls = [`postgres://sluice@127.0.0.1:${server.port}/sluice`];
  const [other, source] = [1, 2].map(
    () => new PostgresSource({ urls, rootCertificate: null, ...queryTimes }),
  );
  const unreachable = other!.open().then(
    () => "it answers",
    () => "it is unreachable",
  );
  const lines: unknown[] = [];
  const membership = await join({
    source: source!,
    store: {
      fleetId: () => "0197b1f2-0000-7000-8000-000000000000",
      mark: () => ({ position: 2, id: "a" }),
      isEmpty: () => false,
    } as never,
    box: { keyId: "k", derive: () => new Uint8Array(32), onReplaced: () => undefined } as never,
    id: "n1",
    node: "n1",
    presentMs: 5000,
    log: { warn: (...line: unknown[]) => lines.push(line) } as never,
  });
  expect(await Promise.race([unreachable, membership.joined()])).toBe(false);
  expect(lines).toEqual([[expect.stringContaining("starts with what it has"), {}]]);
  expect(await unreachable).toBe("it is unreachable");
});
