// Versions with thousands of objects: a worker takes them in slices and serves its clients meanwhile, and forgets what was discarded.
import { afterEach, expect, test } from "bun:test";
import { Pace } from "../../../src/pace.ts";
import { cleanupsOf, stopsIn } from "../../support/cleanups.ts";
import {
  type DataPlaneChange,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import { startOrigin } from "../../support/origin.ts";

const started = stopsIn(cleanupsOf(afterEach));

/** Objects in one slice. */
const MOST = 50;
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

async function startScene() {
  const slices: number[] = [];
  const pace = new Pace({ objects: MOST, ms: 1e6, rested: (objects) => slices.push(objects) });
  const origin = started(startOrigin());
  const gateway = started(
    await startDataPlane({
      services: [{ name: "app", targets: [{ port: origin.port }] }],
      routes: [{ name: "all", service_id: "app", hosts: ["all.test"] }],
      pace,
    }),
  );
  return { slices, origin, gateway };
}

const get = async ({ url }: RunningDataPlane, host: string, path = "/") => {
  const response = await fetch(url + path, { headers: { host } });
  return `${response.status} ${await response.text()}`;
};

const routes = (count: number, fields = {}) =>
  numbers(count).map((index) => ({
    name: `r-${index}`,
    service_id: "app",
    hosts: [`site-${index}.test`],
    paths: ["/"],
    ...fields,
  }));

test("no slice of the work exceeds its number of objects, and requests are served between slices", async () => {
  const { slices, gateway } = await startScene();
  const change: DataPlaneChange = {
    routes: routes(3_000),
    services: numbers(700).map((index) => ({
      name: `s-${index}`,
      targets: [{ port: 1 + index }],
    })),
  };
  let isDone = false;
  const applied = gateway.apply(change).finally(() => {
    isDone = true;
  });
  let served = 0;
  while (!isDone) {
    expect(await get(gateway, "all.test")).toBe("200 ok");
    if (!isDone) served++;
  }
  await applied;
  expect(Math.max(...slices)).toBe(MOST);
  // 3,000 routes, 700 services, and what is claimed for those.
  expect(slices.length).toBeGreaterThanOrEqual((3_000 + 700 + 700) / MOST - 12);
  expect(served).toBeGreaterThan(0);
  expect(await get(gateway, "site-2999.test")).toBe("200 ok");
});

test("a small change is made in one slice", async () => {
  const { slices, gateway } = await startScene();
  await gateway.apply({ routes: routes(1) });
  expect(slices).toEqual([]);
});

test("each of very many routes equals the one written, requested or not", async () => {
  const { gateway } = await startScene();
  await gateway.apply({ routes: routes(2_000) });
  // Some are known by now, most are not.
  for (const index of [3, 700, 1_999])
    expect(await get(gateway, `site-${index}.test`)).toBe("200 ok");
  const removedRoutes = numbers(600).map((index) => `r-${index}`);
  const changed = routes(1_300, { paths: ["/new"] }).slice(600);
  await gateway.apply({ routes: changed, removedRoutes });
  expect(await get(gateway, "site-3.test")).toStartWith("404");
  expect(await get(gateway, "site-700.test")).toStartWith("404");
  expect(await get(gateway, "site-700.test", "/new")).toBe("200 ok");
  expect(await get(gateway, "site-1299.test", "/new")).toBe("200 ok");
  expect(await get(gateway, "site-1300.test")).toBe("200 ok");
});

test("a discarded large version leaves the live one, and the next one starts anew", async () => {
  const { gateway, origin } = await startScene();
  await gateway.apply({ routes: routes(1_000) });
  const gone = { removedRoutes: numbers(1_000).map((index) => `r-${index}`) };
  expect(await gateway.discard({ ...gone, routes: [{ name: "all", service_id: "app" }] })).toEqual(
    [],
  );
  expect(await get(gateway, "site-999.test")).toBe("200 ok");
  expect(await get(gateway, "other.test")).toStartWith("404");
  await gateway.apply({ routes: [{ name: "one", service_id: "app", hosts: ["one.test"] }] });
  expect(await get(gateway, "one.test")).toBe("200 ok");
  expect(await get(gateway, "site-1.test")).toBe("200 ok");
  expect(origin.connections.length).toBeLessThan(3);
});
