// A worker does not leak over many configurations: former versions leave no objects of any kind behind.
import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";

const ROUNDS = 150;
/** The engine creates some of these itself as code gets hot. */
const CODE =
  /CodeBlock|Executable|Structure|SymbolTable|PropertyTable|^JIT|WeakRef|^(string|symbol)$/;

test("after hundreds of changes there are as many objects as after the first ones", async () => {
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  const plane = await startDataPlane({
    services: [{ name: "main", targets: [{ port: origin.port ?? 0 }] }],
    routes: [{ name: "main", service_id: "main", paths: ["/main"] }],
  });
  try {
    await changeOften(plane, origin.port ?? 0);
    const before = countObjects();
    await changeOften(plane, origin.port ?? 0);
    await changeOften(plane, origin.port ?? 0);
    // The collector looks at the stack as well, where something of the last version may lie for a moment.
    await eventually(() => {
      const more = [...countObjects()].filter(
        ([kind, count]) => count - (before.get(kind) ?? 0) > ROUNDS / 3,
      );
      if (more.length > 0) throw new Error(`there are more of ${JSON.stringify(more)}`);
      return true;
    });
  } finally {
    await plane.stop();
    await origin.stop(true);
  }
});

async function changeOften(plane: RunningDataPlane, port: number): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const name = `round-${round}`;
    await plane.apply({
      services: [{ name, targets: [{ port }] }],
      routes: [{ name, service_id: name, paths: [`/${name}`] }],
      plugins: [{ name: "rate-limit", label: name, routeId: name, config: { limits } }],
    });
    const response = await fetch(`${plane.url}/${name}`);
    expect(await response.text()).toBe("ok");
    await plane.apply({
      removedServices: [name],
      removedRoutes: [name],
      removedPlugins: [name],
    });
  }
}

const limits = [{ requests: 1000, window: 1 }];

function countObjects(): Map<string, number> {
  Bun.gc(true);
  Bun.gc(true);
  const { objectTypeCounts } = heapStats();
  return new Map(Object.entries(objectTypeCounts).filter(([kind]) => !CODE.test(kind)));
}
